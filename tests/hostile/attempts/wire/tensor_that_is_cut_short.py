"""Answers with a tensor that is eight bytes short."""
answer_with(reply({"t0": tensor([7])}, bytes(48), {**BODY, "outputs": [output([7])]}))
