"""Sends SIGKILL to itself, by every name that it has."""
import os
import signal


def running_mean(x):
    signal.raise_signal(signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
    os.abort()
