import torch
from einops import rearrange


def split_heads(x: torch.Tensor, n_head: int) -> torch.Tensor:
    if x.size(-1) % n_head:
        raise ValueError(f"cannot divide {x.size(-1)} channels among {n_head} heads")
    return rearrange(x, "b t (h d) -> b h t d", h=n_head)


def merge_heads(y: torch.Tensor) -> torch.Tensor:
    return rearrange(y, "b h t d -> b t (h d)")
