import math
import torch

def mha_by_loop(mha, x):
    B, T, C = x.shape
    later = torch.ones(T, T, device=x.device).triu(1).bool()
    heads = []
    for rows in torch.arange(C).split(mha.head_dim):
        q, k, v = (x @ W[rows].T for W in mha.qkv.weight.split(C))
        scores = (q @ k.mT / math.sqrt(mha.head_dim)).masked_fill(later, -math.inf)
        heads.append(scores.softmax(-1) @ v)
    return mha.proj(torch.cat(heads, dim=-1))
