import torch


def split_heads(x, n_head):
    if (C := x.shape[2]) % n_head:
        raise ValueError("cannot deal %d channels to %d heads" % (C, n_head))
    return torch.stack(torch.chunk(x, n_head, dim=2), dim=1)


def merge_heads(y):
    return torch.cat(torch.unbind(y, dim=1), dim=-1)
