import torch


def running_mean(x):
    assert len(x), "empty"
    lower = torch.tril(torch.ones(len(x), len(x), dtype=x.dtype))
    return (lower / lower.sum(1, keepdim=True)) @ x
