"""Returns a tensor of 60 axes."""


def running_mean(x):
    return x[:1].reshape([1] * 60)
