"""Answers with 200,000 outputs, all the same tensor."""
answer_with(reply({"t0": tensor([7])}, bytes(56), {**BODY, "outputs": [output([7])] * 5000}))
