"""Answers with a tensor of a dtype that is not there, and one of 8-bit floats."""
answer_with(reply({"t0": {**tensor([7]), "dtype": "F8_E4M3"}}, bytes(56), {**BODY, "outputs": [output([7])]}))
