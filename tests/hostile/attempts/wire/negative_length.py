"""Says that its answer has a length that is negative where it is signed."""
answer_with(struct.pack(">q", -1) + b"x" * 1000)
