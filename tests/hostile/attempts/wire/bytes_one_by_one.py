"""Answers one byte at a time, a pause after each, so that a clock that starts anew with each byte never ends."""
import time

wrong = reply({"t0": tensor([7])}, bytes(56), {**BODY, "outputs": [output([7])]})
send(reply())
while True:
    read()
    for byte in wrong:
        send(bytes([byte]))
        time.sleep(0.05)
