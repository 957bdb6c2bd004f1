"""Returns a tensor of shape (0, 2^62)."""
import torch


def running_mean(x):
    return torch.empty(0, 1 << 62)
