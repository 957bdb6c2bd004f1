"""Answers that all went well, with no output at all."""
answer_with(reply())
