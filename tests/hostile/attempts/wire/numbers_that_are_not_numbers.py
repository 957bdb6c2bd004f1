"""Answers with NaN, infinities and integers of 4000 digits where counts stand."""
operations = '{"$": "Operations", "fused": false, "made": [NaN], "mixed": false, "recorded": %s}' % ("9" * 4000)
body = json.dumps({**BODY, "operations": "HERE"}).replace('"HERE"', operations)
answer_with(reply(text=json.dumps({"__metadata__": {"body": body}}).encode()))
