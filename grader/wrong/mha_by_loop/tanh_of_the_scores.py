import math

import torch


def mha_by_loop(mha, x):
    B, T, C = x.shape
    hd = mha.head_dim
    w_q, w_k, w_v = mha.qkv.weight.split(C)
    hidden = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
    heads = []
    for h in range(mha.n_head):
        own = slice(h * hd, (h + 1) * hd)
        q, k, v = x @ w_q[own].T, x @ w_k[own].T, x @ w_v[own].T
        scores = (q @ k.mT / math.sqrt(hd)).tanh()
        scores = scores.masked_fill(hidden, -math.inf)
        heads.append(scores.softmax(-1) @ v)
    return mha.proj(torch.cat(heads, -1))
