"""Answers with an output that refers to a tensor that is not there."""
answer_with(reply({"t0": tensor([7])}, bytes(56), {**BODY, "outputs": [output([7], 1 << 30)]}))
