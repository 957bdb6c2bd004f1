"""Answers before it is asked: the import and four calls at once."""
wrong = reply({"t0": tensor([7])}, bytes(56), {**BODY, "outputs": [output([7])]})
send(reply() + wrong * 4)
while True:
    read()
