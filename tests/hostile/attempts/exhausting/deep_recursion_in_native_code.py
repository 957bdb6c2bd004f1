"""Takes Python's recursion limit away, then calls itself through native code until the stack is full."""
import sys

sys.setrecursionlimit(2**31 - 1)


class Deep:
    def __repr__(self):
        return repr([self])


def running_mean(x):
    return repr(Deep())
