"""Answers with 64 outputs that are one large tensor."""
big = [1 << 18]
answer_with(reply({"t0": tensor(big)}, bytes(8 << 18), {**BODY, "outputs": [output(big)] * 64}))
