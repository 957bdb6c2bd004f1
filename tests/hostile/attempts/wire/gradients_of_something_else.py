"""Answers with gradients of names that are not there, of other shapes and of no numbers."""
grads = {"$": "map", "items": {"args.0": {"$": "tensor", "index": 0}, "manyheads_leak": None, "args.99": None}}
answer_with(reply({"t0": tensor([7])}, bytes(56), {**BODY, "outputs": [output([7])], "gradients": grads}))
