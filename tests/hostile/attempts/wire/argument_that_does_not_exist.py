"""Answers that arguments changed which nobody gave: names that are looked up and printed."""
mutated = ["args.x", "args.-1", "kwargs.\n::error::manyheads_leak", "manyheads_leak"]
answer_with(reply({"t0": tensor([7])}, bytes(56), {**BODY, "outputs": [output([7])], "mutated": mutated}))
