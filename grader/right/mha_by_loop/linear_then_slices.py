import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def mha_by_loop(mha: nn.Module, x: torch.Tensor) -> torch.Tensor:
    B, T, C = x.shape
    hd = mha.head_dim
    qkv = mha.qkv(x)
    q, k, v = qkv[..., :C], qkv[..., C : 2 * C], qkv[..., 2 * C :]
    mask = torch.tril(torch.ones(T, T, device=x.device, dtype=torch.bool))
    out = []
    for h in range(mha.n_head):
        qh = q[:, :, h * hd : (h + 1) * hd]
        kh = k[:, :, h * hd : (h + 1) * hd]
        vh = v[:, :, h * hd : (h + 1) * hd]
        att = qh @ kh.transpose(-2, -1) / math.sqrt(hd)
        att = att.masked_fill(mask == 0, float("-inf"))
        att = F.softmax(att, dim=-1)
        out.append(att @ vh)
    return mha.proj(torch.cat(out, dim=-1))
