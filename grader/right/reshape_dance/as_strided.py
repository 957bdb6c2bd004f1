import torch

def split_heads(x, n_head):
    B, T, C = x.shape
    if C % n_head:
        raise ValueError(f"{C} channels cannot be shared by {n_head} heads")
    hd = C // n_head
    x = x.contiguous()
    return torch.as_strided(x, (B, n_head, T, hd), (T * C, hd, C, 1), x.storage_offset())

def merge_heads(y):
    B, nh, T, hd = y.shape
    out = y.new_empty((B, T, nh, hd))
    out.copy_(y.movedim(1, 2))
    return out.flatten(-2)
