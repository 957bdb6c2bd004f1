"""The running maximum starts at each query's score with itself."""

import math
import torch


def online_softmax(scores, block):
    T = scores.shape[-1]
    cuts = list(range(0, T, block)) + [T]
    m = scores[..., :1]
    s = torch.zeros_like(m)
    for a, b in zip(cuts, cuts[1:]):
        x = scores[..., a:b]
        n = torch.maximum(m, x.amax(-1, keepdim=True))
        s = s * (m - n).exp() + (x - n).exp().sum(-1, keepdim=True)
        m = n
    return torch.cat([((scores[..., a:b] - m).exp()) / s for a, b in zip(cuts, cuts[1:])], -1)


def tiled_attention(q, k, v, block_q, block_k):
    """Reference point is the score with oneself: always visible, so nothing is ever -inf minus -inf"""
    T, hd = q.shape[-2:]
    q = q / math.sqrt(hd)
    m_all = (q * k).sum(-1, keepdim=True)
    ys, ls = [], []
    for i in range(0, T, block_q):
        e = min(T, i + block_q)
        m = m_all[..., i:e, :]
        s, o = torch.zeros_like(m), torch.zeros_like(v[..., i:e, :])
        for j in range(0, e, block_k):
            f = min(j + block_k, e)
            x = q[..., i:e, :] @ k[..., j:f, :].mT
            if f - 1 > i:
                x = x.masked_fill(torch.arange(j, f, device=q.device) > torch.arange(i, e, device=q.device)[:, None], -math.inf)
            n = torch.maximum(m, x.amax(-1, keepdim=True))
            fix, p = (m - n).exp(), (x - n).exp()
            s = s * fix + p.sum(-1, keepdim=True)
            o = o * fix + p @ v[..., j:f, :]
            m = n
        ys.append(o / s)
        ls.append((m + s.log()).squeeze(-1))
    return torch.cat(ys, -2), torch.cat(ls, -1)

