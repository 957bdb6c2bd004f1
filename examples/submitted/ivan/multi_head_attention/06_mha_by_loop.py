import math

import torch
from torch import nn


def mha_by_loop(mha: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Compute causal multi-head attention one head after another.

    Args:
        mha: Holds qkv (Linear, C to 3C, no bias; rows stacked queries, keys, values), proj (Linear, C to C,
            no bias), n_head and head_dim, with C = n_head · head_dim. It has no forward pass.
        x: (B, T, C), in the dtype and on the device of the weights. Left as it was.

    Returns:
        (B, T, C): the heads' answers side by side, in order, then projected. No dropout.
    """
    T, C, hd = x.shape[1], x.shape[2], mha.head_dim
    w_q, w_k, w_v = mha.qkv.weight.split(C, dim=0)  # (C, C) each
    visible = torch.ones(T, T, dtype=torch.bool, device=x.device).tril()

    heads = []
    for h in range(mha.n_head):
        own = slice(h * hd, (h + 1) * hd)
        q, k, v = x @ w_q[own].T, x @ w_k[own].T, x @ w_v[own].T  # (B, T, hd) each
        scores = q @ k.transpose(1, 2) / math.sqrt(hd)  # (B, T, T)
        scores = scores.masked_fill(~visible, -math.inf)
        heads.append(scores.softmax(dim=-1) @ v)  # (B, T, hd)

    return mha.proj(torch.cat(heads, dim=-1))  # (B, T, C)
