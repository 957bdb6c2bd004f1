"""Asks Python to exit with status 0 in the middle of a call."""
import sys


def running_mean(x):
    sys.exit(0)
