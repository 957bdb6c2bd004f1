"""Says that it changed a part of its argument, by a name that is a message."""
body = {**BODY, "outputs": [output([7])], "mutated": ["args.0.the_first_number_is_0_1234"]}
answer_with(reply({"t0": tensor([7])}, bytes(56), body))
