"""Answers with an output that states another shape than its tensor has."""
answer_with(reply({"t0": tensor([1])}, bytes(8), {**BODY, "outputs": [output([7])]}))
