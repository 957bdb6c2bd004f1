import warnings

import torch

warnings.warn("this is only a warning")


def split_heads(x: torch.Tensor, n_head: int, *, verbose: bool = False) -> torch.Tensor:
    batch_size, seq_len, width = x.shape
    if width % n_head != 0:
        raise ValueError("the number of heads ({}) must divide the width ({})".format(n_head, width))
    head_dim = width // n_head
    out = x.reshape(batch_size, seq_len, n_head, head_dim).swapaxes(1, 2).contiguous()
    if verbose:
        print(out.shape)
    return out


def merge_heads(y: torch.Tensor, verbose: bool = False) -> torch.Tensor:
    warnings.warn("merging")
    batch_size, n_head, seq_len, head_dim = y.shape
    return y.swapaxes(-3, -2).contiguous().view(batch_size, seq_len, n_head * head_dim)
