"""Answers with a tensor of shape (0, 2^39, …), which is allowed and prints long."""
shape = [0] + [(1 << 39) - 1] * 60
answer_with(reply({"t0": tensor(shape)}, b"", {**BODY, "outputs": [output(shape)]}))
