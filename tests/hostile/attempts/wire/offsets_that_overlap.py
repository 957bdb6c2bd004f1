"""Answers with two tensors on the same bytes, and one beyond the end."""
header = {"t0": tensor([7]), "t1": tensor([7]), "t2": {**tensor([7]), "data_offsets": [1 << 20, (1 << 20) + 56]}}
answer_with(reply(header, bytes(56), {**BODY, "outputs": [output([7])]}))
