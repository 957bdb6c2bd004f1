"""Answers with a header that is not UTF-8, then with all 256 bytes."""
answer_with(reply(text=bytes(range(256)) * 4))
