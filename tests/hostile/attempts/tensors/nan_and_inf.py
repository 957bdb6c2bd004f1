"""Returns NaN and infinities."""
import torch


def running_mean(x):
    return x * torch.tensor([float("nan"), float("inf")] * 8, dtype=x.dtype)[: len(x)]
