"""Returns a tuple."""


def running_mean(x):
    return x, x
