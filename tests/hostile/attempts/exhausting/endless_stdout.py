"""Prints without end."""
import sys


def running_mean(x):
    while True:
        sys.stdout.write("manyheads_leak" * 10000)
        sys.stderr.write("manyheads_leak" * 10000)
