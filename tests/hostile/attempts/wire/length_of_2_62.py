"""Says that its answer is 2^62 bytes long."""
answer_with(struct.pack(">Q", 1 << 62) + b"x" * 1000)
