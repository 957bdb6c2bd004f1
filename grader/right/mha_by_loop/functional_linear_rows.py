import torch
import torch.nn.functional as F


def mha_by_loop(mha, x):
    B, T, C = x.shape
    hd = mha.head_dim
    Wq, Wk, Wv = mha.qkv.weight.split(C, dim=0)
    hidden = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
    outs = []
    for h in range(mha.n_head):
        rows = slice(h * hd, (h + 1) * hd)
        q = F.linear(x, Wq[rows])
        k = F.linear(x, Wk[rows])
        v = F.linear(x, Wv[rows])
        s = q @ k.transpose(-2, -1) / hd**0.5
        s = s.masked_fill(hidden, float("-inf"))
        w = F.softmax(s, dim=-1)
        outs.append(w @ v)
    return mha.proj(torch.cat(outs, dim=-1))
