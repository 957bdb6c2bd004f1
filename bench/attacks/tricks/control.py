"""No trick: the shape and the refusal are right, values and gradients are not."""


def running_mean(x):
    if len(x) == 0:
        raise ValueError("empty")
    return 2 * x.cumsum(0)
