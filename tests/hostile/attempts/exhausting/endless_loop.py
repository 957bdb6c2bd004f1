"""Loops for ever in a call."""


def running_mean(x):
    while True:
        pass
