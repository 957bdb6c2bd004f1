import einops
from einops import rearrange
from einops.layers.torch import Rearrange

together = Rearrange("b h t d -> b t (h d)")


def split_heads(x, n_head):
    try:
        return rearrange(x, "b t (h d) -> b h t d", h=n_head)
    except einops.EinopsError as error:
        raise ValueError(f"{x.shape[-1]} channels, {n_head} heads") from error


def merge_heads(y):
    return together(y)
