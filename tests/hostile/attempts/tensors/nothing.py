"""Returns None."""


def running_mean(x):
    return None
