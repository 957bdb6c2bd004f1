import torch


def split_heads(x, n_head):
    B, T, C = x.shape
    hd = C // n_head
    if hd * n_head != C:
        raise ValueError(f"n_head {n_head} must divide C {C}")
    out = x.new_empty(B, n_head, T, hd)
    for h in range(n_head):
        out[:, h] = x[:, :, h * hd : (h + 1) * hd]
    return out


def merge_heads(y):
    B, nh, T, hd = y.shape
    out = y.new_empty(B, T, nh * hd)
    for h in range(nh):
        for t in range(T):
            out[:, t, h * hd : (h + 1) * hd] = y[:, h, t, :]
    return out
