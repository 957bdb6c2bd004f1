"""Returns a quantised tensor."""
import torch


def running_mean(x):
    return torch.quantize_per_tensor(x.detach().float(), 0.1, 0, torch.qint8)
