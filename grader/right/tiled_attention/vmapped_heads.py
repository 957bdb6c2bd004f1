"""Two axes, mapped over all before them."""

import torch


def online_softmax(scores, block):
    m = torch.full_like(scores[..., :1], -torch.inf)
    s = torch.zeros_like(scores[..., :1])
    for i in range(0, scores.shape[-1], block):
        x = scores[..., i : i + block]
        m2 = torch.maximum(m, torch.amax(x, -1, keepdim=True))
        s = s * torch.exp(m - m2) + torch.exp(x - m2).sum(-1, keepdim=True)
        m = m2
    return torch.cat([(scores[..., i : i + block] - m).exp() / s for i in range(0, scores.shape[-1], block)], -1)


def _one(q, k, v, block_q, block_k):
    T, hd = q.shape
    ys, ls = [], []
    for i in range(0, T, block_q):
        qi = q[i : i + block_q] / hd**0.5
        n = qi.shape[0]
        m = torch.full((n,), -torch.inf, dtype=q.dtype, device=q.device)
        s = torch.zeros(n, dtype=q.dtype, device=q.device)
        o = torch.zeros(n, v.shape[-1], dtype=q.dtype, device=q.device)
        for j in range(0, i + n, block_k):
            kj, vj = k[j : j + block_k], v[j : j + block_k]
            hide = torch.arange(j, j + kj.shape[0], device=q.device)[None] > torch.arange(i, i + n, device=q.device)[:, None]
            x = torch.where(hide, -torch.inf, qi @ kj.T)
            m2 = torch.maximum(m, x.amax(-1))
            p = torch.exp(x - m2[:, None])
            a = torch.exp(m - m2)
            s = s * a + p.sum(-1)
            o = o * a[:, None] + p @ vj
            m = m2
        ys.append(o / s[:, None])
        ls.append(m + torch.log(s))
    return torch.cat(ys), torch.cat(ls)


def tiled_attention(q, k, v, block_q, block_k):
    fn = lambda a, b, c: _one(a, b, c, block_q, block_k)
    for _ in range(q.dim() - 2):
        fn = torch.vmap(fn)
    return fn(q, k, v)

