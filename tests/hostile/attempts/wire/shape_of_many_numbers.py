"""Answers with a shape of 20,000 large numbers, whose product is slow."""
shape = [10**1000] * 900
answer_with(reply({"t0": {"dtype": "F64", "shape": shape, "data_offsets": [0, 56]}}, bytes(56)))
