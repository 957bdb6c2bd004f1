"""Answers with no bytes at all, by the rules."""
answer_with(frame(b""))
