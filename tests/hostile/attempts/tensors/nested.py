"""Returns a nested tensor."""
import torch


def running_mean(x):
    return torch.nested.nested_tensor([x, x[:1]])
