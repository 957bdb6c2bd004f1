"""The textbook loop with preallocated state, filled by slices of new lists; positions by broadcasting."""

import torch


def online_softmax(scores, block):
    m = scores.new_full(scores.shape[:-1], float("-inf"))
    s = scores.new_zeros(scores.shape[:-1])
    T = scores.size(-1)
    for start in range(0, T, block):
        x = scores[..., start : min(start + block, T)]
        m_new = torch.maximum(m, x.max(dim=-1).values)
        s = s * torch.exp(m - m_new) + torch.exp(x - m_new.unsqueeze(-1)).sum(-1)
        m = m_new
    out = torch.empty_like(scores)
    for start in range(0, T, block):
        out[..., start : start + block] = torch.exp(scores[..., start : start + block] - m[..., None]) / s[..., None]
    return out


def tiled_attention(q, k, v, block_q, block_k):
    T, hd = q.shape[-2], q.shape[-1]
    y = v.new_zeros(*q.shape[:-1], v.shape[-1])
    lse = q.new_zeros(q.shape[:-1])
    for i in range(0, T, block_q):
        qi = q[..., i : i + block_q, :]
        n = qi.shape[-2]
        m = qi.new_full((*qi.shape[:-1],), float("-inf"))
        s = qi.new_zeros(qi.shape[:-1])
        o = v.new_zeros(*qi.shape[:-1], v.shape[-1])
        for j in range(0, T, block_k):
            if j > i + n - 1:
                break
            kj, vj = k[..., j : j + block_k, :], v[..., j : j + block_k, :]
            x = torch.einsum("...qd,...kd->...qk", qi, kj) * hd**-0.5
            rows = torch.arange(i, i + n, device=q.device).unsqueeze(1)
            cols = torch.arange(j, j + kj.shape[-2], device=q.device).unsqueeze(0)
            x = torch.where(cols <= rows, x, torch.tensor(float("-inf"), dtype=x.dtype, device=x.device))
            m_new = torch.maximum(m, x.amax(-1))
            p = torch.exp(x - m_new[..., None])
            alpha = torch.exp(m - m_new)
            s = alpha * s + p.sum(-1)
            o = alpha[..., None] * o + torch.einsum("...qk,...kd->...qd", p, vj)
            m = m_new
        y[..., i : i + n, :] = o / s[..., None]
        lse[..., i : i + n] = m + torch.log(s)
    return y, lse
