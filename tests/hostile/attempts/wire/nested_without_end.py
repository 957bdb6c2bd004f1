"""Answers with JSON that is nested 100,000 deep."""
answer_with(reply(text=b'{"__metadata__": ' + b"[" * 100000))
