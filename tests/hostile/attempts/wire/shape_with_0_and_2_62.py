"""Answers with a tensor of shape (0, 2^62), whose size overflows."""
answer_with(reply({"t0": tensor([0, 1 << 62])}, b"", {**BODY, "outputs": [output([0, 1 << 62])]}))
