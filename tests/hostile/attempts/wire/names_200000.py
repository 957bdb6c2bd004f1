"""Answers with 200,000 tensors of no elements."""
header = {f"t{i}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for i in range(200000)}
answer_with(reply(header))
