"""Sleeps over the limit at every check, so that each costs a death."""
import time


def running_mean(x):
    time.sleep(3600)
