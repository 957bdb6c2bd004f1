import torch
import numpy as np

def split_heads(x, n_head):
    B, T, C = x.shape
    assert C % n_head == 0, f"C={C} n_head={n_head}"
    channels = np.arange(C).reshape(n_head, C // n_head)
    idx = torch.as_tensor(channels, device=x.device)
    picked = x[:, :, idx]              # B, T, nh, hd
    return torch.moveaxis(picked, -2, 1)

def merge_heads(y):
    return torch.hstack([h.swapaxes(1, 2) for h in y.unbind(1)]).swapaxes(1, 2)
