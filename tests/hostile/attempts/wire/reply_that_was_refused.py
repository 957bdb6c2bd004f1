"""Answers every call, by itself, with a ValueError: only what asks for a refusal may believe it."""
raised = {"$": "Raised", "type": "ValueError", "bases": ["ValueError"], "message": "", "stage": "call", "line": 1}
answer_with(reply(body={**BODY, "raised": raised}))
