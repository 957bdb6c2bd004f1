"""Answers with an output that has no numbers, as a meta tensor has none, where numbers were asked for."""
answer_with(reply(body={**BODY, "outputs": [output([7], tensor=None, device="meta")]}))
