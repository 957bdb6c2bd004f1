import torch


class IndivisibleError(ValueError):
    pass


def split_heads(x, n_head):
    B, T, C = x.shape
    if C % n_head:
        raise IndivisibleError(f"{C} / {n_head}")
    hd = C // n_head
    return torch.as_strided(x, (B, n_head, T, hd), (T * C, hd, C, 1))


def merge_heads(y):
    return torch.hstack([y[:, h].mT for h in range(y.shape[1])]).mT
