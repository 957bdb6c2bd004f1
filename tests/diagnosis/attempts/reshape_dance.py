import torch

def split_heads(x, n_head):
    hd = x.shape[-1] // n_head
    return torch.stack(x.split(hd, dim=-1)[:n_head], dim=1)

def merge_heads(y):
    return y.transpose(1, 2).flatten(2)
