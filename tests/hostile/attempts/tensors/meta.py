"""Returns a tensor that has a shape and no numbers."""


def running_mean(x):
    return x.to("meta")
