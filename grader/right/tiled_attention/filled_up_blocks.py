"""Everything is filled up to whole blocks first."""

import torch
import torch.nn.functional as F


def online_softmax(scores, block):
    T = scores.shape[-1]
    pad = -T % block
    x = F.pad(scores, (0, pad), value=float("-inf")).unflatten(-1, (-1, block))
    m = torch.full_like(x[..., 0, :1], float("-inf"))
    s = torch.zeros_like(m)
    for b in x.unbind(-2):
        n = torch.maximum(m, b.amax(-1, keepdim=True))
        s = s * (m - n).exp() + (b - n).exp().sum(-1, keepdim=True)
        m = n
    return ((x - m.unsqueeze(-2)).exp() / s.unsqueeze(-2)).flatten(-2)[..., :T]


def tiled_attention(q, k, v, block_q, block_k):
    T, hd = q.shape[-2:]
    Tq, Tk = T + -T % block_q, T + -T % block_k
    q = F.pad(q, (0, 0, 0, Tq - T)) * hd**-0.5
    k, v = F.pad(k, (0, 0, 0, Tk - T)), F.pad(v, (0, 0, 0, Tk - T))
    ys, ls = [], []
    for i in range(0, Tq, block_q):
        qi = q[..., i : i + block_q, :]
        m = torch.full_like(qi[..., :1], float("-inf"))
        s = torch.zeros_like(m)
        o = torch.zeros_like(qi[..., :1] * v[..., :1, :])
        for j in range(0, min(Tk, i + block_q), block_k):
            sc = qi @ k[..., j : j + block_k, :].mT
            mask = (i + torch.arange(block_q, device=q.device))[:, None] < (j + torch.arange(block_k, device=q.device))
            sc = sc.masked_fill(mask, float("-inf"))
            n = torch.maximum(m, sc.amax(-1, keepdim=True))
            p, a = (sc - n).exp(), (m - n).exp()
            s, o, m = s * a + p.sum(-1, keepdim=True), o * a + p @ v[..., j : j + block_k, :], n
        ys.append(o / s)
        ls.append(m + s.log())
    return torch.cat(ys, -2)[..., :T, :], torch.cat(ls, -2)[..., :T, 0]

