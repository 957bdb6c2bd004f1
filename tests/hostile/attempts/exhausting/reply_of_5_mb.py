"""Returns a tensor that fits in memory and is more than a reply may be."""
import torch


def running_mean(x):
    return torch.zeros(5 << 17, dtype=torch.float64)
