"""Lets the C library abort."""
import os


def running_mean(x):
    os.abort()
