import torch
from torch import nn


class HeadCodec:
    _merge = nn.Flatten(start_dim=2)

    def __init__(self, *, channels: int, heads: int):
        if channels % heads:
            raise ValueError(f"channels ({channels}) must be a multiple of heads ({heads})")
        self._split = nn.Unflatten(dim=2, unflattened_size=(heads, channels // heads))

    def encode(self, *, tokens):
        return torch.einsum("bthd->bhtd", self._split(tokens))

    @classmethod
    def decode(cls, *, heads):
        return cls._merge(torch.einsum("bhtd->bthd", heads))


def split_heads(x, n_head):
    return HeadCodec(channels=x.shape[-1], heads=n_head).encode(tokens=x)


def merge_heads(y):
    return HeadCodec.decode(heads=y)
