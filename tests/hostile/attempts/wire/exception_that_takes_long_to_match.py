"""Answers with an exception whose text makes a pattern backtrack."""
text = "The size of tensor a " * 190
raised = {"$": "Raised", "type": "RuntimeError", "bases": ["RuntimeError"], "message": text, "stage": "call", "line": 1}
answer_with(reply(body={**BODY, "raised": raised}))
