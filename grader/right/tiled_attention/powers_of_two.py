"""Leading dimensions folded into one, and powers of two in place of exponentials."""

import math

import torch


def online_softmax(scores, block):
    m = torch.full_like(scores[..., :1], -math.inf)
    s = torch.zeros_like(m)
    for part in scores.split(block, dim=-1):
        new = torch.maximum(m, part.amax(-1, keepdim=True))
        s = s * (m - new).exp() + (part - new).exp().sum(-1, keepdim=True)
        m = new
    return torch.cat([(part - m).exp() / s for part in scores.split(block, dim=-1)], dim=-1)
def tiled_attention(q, k, v, block_q, block_k):
    lead, (T, hd) = q.shape[:-2], q.shape[-2:]
    q, k, v = q.reshape(-1, T, hd), k.reshape(-1, T, hd), v.reshape(-1, T, v.shape[-1])
    c = math.log2(math.e) / math.sqrt(hd)
    lse = []
    outs = []
    for a in range(0, T, block_q):
        qb = q[:, a:a + block_q]
        m = torch.full((len(q), qb.size(1)), -1e30, dtype=q.dtype, device=q.device)
        s, o = torch.zeros_like(m), torch.zeros(len(q), qb.size(1), v.size(-1), dtype=v.dtype, device=v.device)
        for b in range(0, a + qb.size(1), block_k):
            kb = k[:, b:b + block_k]
            t = torch.bmm(qb, kb.transpose(1, 2)) * c
            t = t + torch.full(t.shape[1:], -math.inf, dtype=t.dtype, device=t.device).triu(a - b + 1)
            n = torch.maximum(m, t.amax(-1))
            p, f = torch.exp2(t - n[..., None]), torch.exp2(m - n)
            s, o, m = s * f + p.sum(-1), o * f[..., None] + torch.bmm(p, v[:, b:b + block_k]), n
        outs.append(o / s[..., None])
        lse.append((m + torch.log2(s)) * math.log(2))
    return torch.cat(outs, 1).reshape(*lead, T, -1), torch.cat(lse, 1).reshape(*lead, T)
