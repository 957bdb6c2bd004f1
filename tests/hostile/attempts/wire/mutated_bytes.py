"""Answers with valid replies in which random bits are flipped."""
import random

whole = reply({"t0": tensor([7])}, bytes(56), {**BODY, "outputs": [output([7])]})
send(reply())
while True:
    read()
    mutated = bytearray(whole)
    for _ in range(20):
        mutated[random.randrange(8, len(whole) - 56)] ^= 1 << random.randrange(8)
    send(mutated)
