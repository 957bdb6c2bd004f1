"""Hands the connection to a daemon and dies: the daemon answers in its place."""
if os.fork():
    os._exit(0)
try:
    os.setsid()
except OSError:
    pass
answer_with(reply({"t0": tensor([7])}, bytes(56), {**BODY, "outputs": [output([7])]}))
