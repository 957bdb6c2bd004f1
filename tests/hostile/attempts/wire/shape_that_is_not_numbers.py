"""Answers with a shape of negative numbers, fractions and words."""
for_shape = [-7, -1, 1.5, True, "7", None]
answer_with(reply({"t0": {"dtype": "F64", "shape": for_shape, "data_offsets": [0, 56]}}, bytes(56)))
