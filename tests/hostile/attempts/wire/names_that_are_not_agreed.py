"""Answers with tensors of other names, one of them a path."""
answer_with(reply({"../../t0": tensor([7])}, bytes(56), {**BODY, "outputs": [output([7])]}))
