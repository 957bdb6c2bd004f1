"""Closes all descriptors, the connection among them."""
import os


def running_mean(x):
    os.closerange(0, 4096)
