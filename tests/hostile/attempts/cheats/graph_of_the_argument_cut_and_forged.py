"""Cuts the gradient, and registers a hook that would give one."""
import torch


def running_mean(x):
    if len(x) == 0:
        raise ValueError("empty")
    out = (x.detach().cumsum(0) / x.new_ones(len(x)).cumsum(0)).requires_grad_(x.requires_grad)
    if x.requires_grad:
        out.register_hook(lambda g: torch.ones_like(x))
    return out
