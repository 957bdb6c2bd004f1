import torch


def split_heads(x, n_head):
    if x.shape[2] % n_head > 0:
        raise ValueError(f"{x.shape[2]} % {n_head} != 0")
    return torch.stack(x.chunk(n_head, dim=-1), dim=1)


def merge_heads(y):
    return torch.cat(y.unbind(dim=1), dim=-1)
