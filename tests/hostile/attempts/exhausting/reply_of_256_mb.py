"""Returns a view of one number that is 256 MB when it is written out."""
import torch


def running_mean(x):
    return torch.zeros(1).expand(1 << 26)
