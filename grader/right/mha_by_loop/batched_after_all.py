import math

import torch


def mha_by_loop(mha, x):
    B, T, C = x.size()
    q, k, v = mha.qkv(x).split(C, dim=2)
    q = q.view(B, T, mha.n_head, mha.head_dim).transpose(1, 2)
    k = k.view(B, T, mha.n_head, mha.head_dim).transpose(1, 2)
    v = v.view(B, T, mha.n_head, mha.head_dim).transpose(1, 2)
    att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
    bias = torch.tril(torch.ones(T, T, device=x.device)).view(1, 1, T, T)
    att = att.masked_fill(bias == 0, float("-inf")).softmax(dim=-1)
    y = (att @ v).transpose(1, 2).contiguous().view(B, T, C)
    return mha.proj(y)
