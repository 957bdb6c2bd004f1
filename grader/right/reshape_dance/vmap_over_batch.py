import torch


def _split_one(seq, n_head):
    T, C = seq.shape
    return seq.view(T, n_head, C // n_head).transpose(0, 1)


def _merge_one(heads):
    return heads.transpose(0, 1).flatten(1)


def split_heads(x, n_head):
    if x.shape[-1] % n_head:
        raise ValueError("indivisible")
    return torch.vmap(lambda seq: _split_one(seq, n_head))(x)


def merge_heads(y):
    return torch.vmap(_merge_one)(y)
