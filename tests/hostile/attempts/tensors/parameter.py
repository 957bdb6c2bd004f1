"""Returns a fresh parameter with the right numbers, cut off from its argument."""
import torch


def running_mean(x):
    if len(x) == 0:
        raise ValueError("empty")
    return torch.nn.Parameter((x.cumsum(0) / x.new_ones(len(x)).cumsum(0)).detach())
