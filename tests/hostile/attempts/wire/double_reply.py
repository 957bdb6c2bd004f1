"""Answers every call twice."""
wrong = reply({"t0": tensor([7])}, bytes(56), {**BODY, "outputs": [output([7])]})
answer_with(wrong + wrong)
