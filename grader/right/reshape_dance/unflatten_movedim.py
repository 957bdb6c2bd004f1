import torch


def split_heads(x, n_head):
    C = x.shape[-1]
    if C % n_head != 0:
        raise ValueError("n_head must divide C: " + str(C) + " " + str(n_head))
    return x.unflatten(-1, (n_head, C // n_head)).movedim(2, 1)


def merge_heads(y):
    return torch.movedim(y, 1, 2).flatten(2)
