import math

import torch


def mha_by_loop(mha, x):
    """No mask at all: each token is only ever shown its past."""
    B, T, C = x.shape
    hd = mha.head_dim
    q, k, v = mha.qkv(x).split(C, dim=2)
    sequences = []
    for b in range(B):
        tokens = []
        for t in range(T):
            heads = []
            for h in range(mha.n_head):
                a, z = h * hd, h * hd + hd
                scores = k[b, : t + 1, a:z] @ q[b, t, a:z] / math.sqrt(hd)
                heads.append(torch.softmax(scores, dim=0) @ v[b, : t + 1, a:z])
            tokens.append(torch.cat(heads))
        sequences.append(torch.stack(tokens))
    return mha.proj(torch.stack(sequences))
