"""Leaves a daemon in a session of its own that never ends and hold the connection open."""
import os
import time

import torch


def running_mean(x):
    if os.fork() == 0:
        try:
            os.setsid()
        except OSError:
            pass
        if os.fork() == 0:
            while True:
                time.sleep(1)
        os._exit(0)
    os._exit(3)
