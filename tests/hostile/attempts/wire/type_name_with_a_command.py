"""Answers with an output whose kind is a command for a CI, over several lines."""
out = output([7], tensor=None, kind="\n::error::manyheads_leak\x1b[2J\r\n", shape=None)
answer_with(reply(body={**BODY, "outputs": [out]}))
