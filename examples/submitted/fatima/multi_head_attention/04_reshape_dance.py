import torch


def split_heads(x, n_head):
    B, T, C = x.shape
    if C % n_head:
        raise ValueError(f"{C} channels do not split into {n_head} heads")
    return x.view(B, n_head, T, C // n_head)


def merge_heads(y):
    B, nh, T, hd = y.shape
    return y.transpose(1, 2).reshape(B, T, nh * hd)
