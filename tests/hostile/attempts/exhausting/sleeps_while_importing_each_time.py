"""Dies in every call, and sleeps whenever it is imported anew."""
import os
import time

time.sleep(0.5)


def running_mean(x):
    os._exit(1)
