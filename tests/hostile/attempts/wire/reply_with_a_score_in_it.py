"""Answers by itself, with a valid reply that has a score besides."""
answer_with(reply(body={**BODY, "score": 100.0, "outcome": "passed"}))
