"""Asks for one tensor of 64 GiB."""
import torch


def running_mean(x):
    return torch.ones(1 << 33, dtype=torch.float64)
