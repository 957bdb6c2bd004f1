import torch
import math

def mha_by_loop(mha, x):
    B, T, C = x.shape
    nh, hd = mha.n_head, mha.head_dim
    Wq, Wk, Wv = mha.qkv.weight.chunk(3, dim=0)
    batch_out = []
    for b in range(B):
        heads = []
        for h in range(nh):
            lo, hi = h * hd, h * hd + hd
            q = x[b] @ Wq[lo:hi].t()
            k = x[b] @ Wk[lo:hi].t()
            v = x[b] @ Wv[lo:hi].t()
            rows = []
            for t in range(T):
                s = (k[: t + 1] @ q[t]) / math.sqrt(hd)
                w = torch.softmax(s, dim=0)
                rows.append(w @ v[: t + 1])
            heads.append(torch.stack(rows))
        batch_out.append(torch.cat(heads, dim=1) @ mha.proj.weight.t())
    return torch.stack(batch_out)
