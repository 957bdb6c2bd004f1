import math

import torch
from torch import nn


def mha_by_loop(mha: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """No mask at all: token t is simply never shown what comes after it."""
    B, T, C = x.shape
    nh, hd = mha.n_head, mha.head_dim
    q, k, v = mha.qkv(x).chunk(3, dim=-1)

    columns = []
    for h in range(nh):
        lo, hi = h * hd, (h + 1) * hd
        qh, kh, vh = q[..., lo:hi], k[..., lo:hi], v[..., lo:hi]
        rows = []
        for t in range(T):
            past_k = kh[:, : t + 1]
            past_v = vh[:, : t + 1]
            score = (past_k * qh[:, t : t + 1]).sum(-1) / math.sqrt(hd)
            share = torch.softmax(score, dim=1)
            rows.append((share.unsqueeze(-1) * past_v).sum(dim=1))
        columns.append(torch.stack(rows, dim=1))
    joined = torch.cat(columns, dim=2)
    return mha.proj(joined)
