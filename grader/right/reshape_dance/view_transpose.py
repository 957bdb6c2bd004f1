import torch


def split_heads(x, n_head):
    B, T, C = x.shape
    if C % n_head != 0:
        raise ValueError(f"C={C} is not divisible by n_head={n_head}")
    return x.view(B, T, n_head, C // n_head).transpose(1, 2)


def merge_heads(y):
    B, nh, T, hd = y.shape
    return y.transpose(1, 2).contiguous().view(B, T, nh * hd)
