"""Answers with a body that is nested 100,000 deep."""
answer_with(reply(text=json.dumps({"__metadata__": {"body": '{"a":' * 100000}}).encode()))
