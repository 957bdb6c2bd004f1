"""Returns complex numbers whose real parts are right."""
import torch


def running_mean(x):
    return torch.complex(x.cumsum(0) / x.new_ones(len(x)).cumsum(0), torch.ones_like(x))
