"""Ends the process with status 0 in the middle of a call."""
import os


def running_mean(x):
    os._exit(0)
