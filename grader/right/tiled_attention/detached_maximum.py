"""The maximum is a reference point and nothing else: it is detached, everywhere the same one."""

import math

import torch


def online_softmax(scores, block):
    blocks = torch.split(scores, block, -1)
    m = blocks[0].detach().amax(-1, keepdim=True)
    s = torch.exp(blocks[0] - m).sum(-1, keepdim=True)
    for b in blocks[1:]:
        n = torch.max(m, b.detach().amax(-1, keepdim=True))
        s = s * torch.exp(m - n) + torch.exp(b - n).sum(-1, keepdim=True)
        m = n
    return torch.cat([torch.exp(b - m) / s for b in blocks], -1)


def tiled_attention(q, k, v, block_q, block_k):
    T = q.shape[-2]
    ys, lses = [], []
    for a in range(0, T, block_q):
        rows = q[..., a : a + block_q, :]
        end = a + rows.shape[-2]
        m = torch.full(rows.shape[:-1] + (1,), -1e30, dtype=q.dtype, device=q.device)
        s = torch.zeros_like(m)
        o = torch.zeros(*rows.shape[:-1], v.shape[-1], dtype=v.dtype, device=v.device)
        for b in range(0, end, block_k):
            keys = k[..., b : b + block_k, :]
            x = rows @ keys.mT / math.sqrt(q.shape[-1])
            late = (
                torch.arange(b, b + keys.shape[-2], device=q.device)[None]
                > torch.arange(a, end, device=q.device)[:, None]
            )
            x = x.masked_fill(late, -torch.inf)
            with torch.no_grad():
                n = torch.maximum(m, x.amax(-1, keepdim=True))
                fix = torch.exp(m - n)
            p = torch.exp(x - n)
            s, o, m = s * fix + p.sum(-1, keepdim=True), o * fix + p @ v[..., b : b + block_k, :], n
        ys.append(o / s)
        lses.append((m + s.log())[..., 0])
    return torch.cat(ys, -2), torch.cat(lses, -1)
