"""Returns an integer that no float holds."""


def running_mean(x):
    return 10**400
