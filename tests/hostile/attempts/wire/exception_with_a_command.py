"""Answers with an exception whose every field is a command for a CI, on line 2^39."""
text = "\n::error::manyheads_leak\x1b[2J"
raised = {"$": "Raised", "type": text, "bases": [text, "RuntimeError"], "message": text, "stage": "call", "line": 1 << 39}
answer_with(reply(body={**BODY, "raised": raised}))
