"""Answers by itself, in words: ok, 100."""
answer_with(frame(b'{"ok": true, "score": 100, "outcome": "passed"}'))
