"""Returns a tensor subclass that holds the right numbers: nothing is wrong with that."""
import torch


class Mean(torch.Tensor):
    """Adds nothing."""


def running_mean(x):
    if len(x) == 0:
        raise ValueError("empty")
    return (x.cumsum(0) / x.new_ones(len(x)).cumsum(0)).as_subclass(Mean)
