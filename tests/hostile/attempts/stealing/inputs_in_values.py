"""Returns tensor values of 10^300 times the hidden inputs."""


def running_mean(x):
    return x * 1e300
