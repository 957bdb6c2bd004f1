"""Returns a generator that never ends."""
import itertools


def running_mean(x):
    return (i for i in itertools.count())
