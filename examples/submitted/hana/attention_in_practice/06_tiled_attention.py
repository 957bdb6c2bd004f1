import math

import torch


def online_softmax(scores, block):
    m = torch.full_like(scores[..., :1], float("-inf"))
    total = torch.zeros_like(scores[..., :1])
    for start in range(0, scores.shape[-1], block):
        s = scores[..., start : start + block]
        m_new = torch.maximum(m, s.amax(dim=-1, keepdim=True))
        total = total * torch.exp(m - m_new) + torch.exp(s - m_new).sum(dim=-1, keepdim=True)
        m = m_new
    return torch.exp(scores - m) / total


def tiled_attention(q, k, v, block_q, block_k):
    T = q.shape[-2]
    out, lse = [], []
    for qs in range(0, T, block_q):
        qb = q[..., qs : qs + block_q, :]
        rows = torch.arange(qs, qs + qb.shape[-2], device=q.device)
        m = torch.full_like(qb[..., :1], float("-inf"))
        total = torch.zeros_like(m)
        acc = torch.zeros(*qb.shape[:-1], v.shape[-1], dtype=q.dtype, device=q.device)
        for ks in range(0, T, block_k):
            if ks > rows[-1]:
                break
            kb, vb = k[..., ks : ks + block_k, :], v[..., ks : ks + block_k, :]
            cols = torch.arange(ks, ks + kb.shape[-2], device=q.device)
            s = qb @ kb.transpose(-2, -1) / math.sqrt(q.shape[-1])
            s = s.masked_fill(cols > rows[:, None], float("-inf"))
            m_new = torch.maximum(m, s.amax(dim=-1, keepdim=True))
            p = torch.exp(s - m_new)
            total = total * torch.exp(m - m_new) + p.sum(dim=-1, keepdim=True)
            acc = acc * torch.exp(m - m_new) + p @ vb
            m = m_new
        out.append(acc / total)
        lse.append(torch.log(total).squeeze(-1))
    return torch.cat(out, dim=-2), torch.cat(lse, dim=-1)
