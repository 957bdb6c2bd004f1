"""Answers with text that no encoding can write: a type's name of lone surrogates."""
out = output([7], tensor=None, kind="\ud800\udfff\ud800", shape=None)
answer_with(reply(body={**BODY, "outputs": [out]}))
