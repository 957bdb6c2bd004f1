"""Answers with a header that holds a name twice: one parser may read the first, another the last."""
entry = json.dumps(tensor([7]))
body = json.dumps({"body": json.dumps({**BODY, "outputs": [output([7])]})})
answer_with(reply(text=f'{{"__metadata__": {body}, "t0": {entry}, "t0": {entry}}}'.encode(), data=bytes(56)))
