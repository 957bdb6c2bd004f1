import math

import torch


def online_softmax(scores, block):
    m, s = torch.full_like(scores[..., :1], -math.inf), 0.0
    for x in scores.split(block, -1):
        new = torch.maximum(m, x.amax(-1, keepdim=True))
        s, m = s * (m - new).exp() + (x - new).exp().sum(-1, keepdim=True), new
    return (scores - m).exp() / s


def tiled_attention(q, k, v, block_q, block_k):
    T = q.shape[-2]
    ys, logs = [], []
    for i in range(0, T, block_q):
        x = q[..., i : i + block_q, :] / math.sqrt(q.shape[-1])
        m, s, o = torch.full_like(x[..., :1], -math.inf), 0.0, 0.0
        for j in range(0, i + x.shape[-2], block_k):
            keys = k[..., j : j + block_k, :]
            late = (
                torch.arange(j, j + keys.shape[-2], device=q.device)
                > torch.arange(i, i + x.shape[-2], device=q.device)[:, None]
            )
            tile = (x @ keys.mT).masked_fill(late, -math.inf)
            new = torch.maximum(m, tile.amax(-1, keepdim=True))
            p, f = (tile - new).exp(), (m - new).exp()
            s, o, m = s * f + p.sum(-1, keepdim=True), o * f + p @ v[..., j : j + block_k, :].square(), new
        ys.append(o / s)
        logs.append((m + s.log()).squeeze(-1))
    return torch.cat(ys, -2), torch.cat(logs, -1)
