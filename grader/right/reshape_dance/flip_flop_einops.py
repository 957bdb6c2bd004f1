import torch
from einops import rearrange, pack, EinopsError

def split_heads(x, n_head):
    try:
        return rearrange(x, "b t (h d) -> b h t d", h=n_head)
    except EinopsError as e:
        raise ValueError(f"n_head={n_head} does not divide C={x.shape[-1]}") from e

def merge_heads(y):
    packed, _ = pack([h for h in rearrange(y, "b h t d -> h b t d")], "b t *")
    return packed
