"""Returns its own argument, and then changes it."""


def running_mean(x):
    y = x.detach()
    y.zero_()
    return y
