"""Says that its answer is 256 MB long, and begins to send that."""
answer_with(struct.pack(">Q", 1 << 28), b"x" * (1 << 28))
