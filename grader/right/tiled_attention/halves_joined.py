"""Two halves of the row, or of the keys, joined by their log-sum-exp."""

import math

import torch


def online_softmax(scores, block):
    def state(parts):
        if len(parts) == 1:
            m = parts[0].amax(-1, keepdim=True)
            return m, (parts[0] - m).exp().sum(-1, keepdim=True)
        (m1, s1), (m2, s2) = state(parts[: len(parts) // 2]), state(parts[len(parts) // 2 :])
        m = torch.maximum(m1, m2)
        return m, s1 * (m1 - m).exp() + s2 * (m2 - m).exp()

    m, s = state(scores.split(block, -1))
    return (scores - m).exp() / s


def tiled_attention(q, k, v, block_q, block_k):
    ys, lses = [], []
    for top, qb in zip(range(0, q.size(-2), block_q), q.split(block_q, -2)):
        parts = []
        for left, (kb, vb) in zip(range(0, q.size(-2), block_k), zip(k.split(block_k, -2), v.split(block_k, -2))):
            s = qb @ kb.mT / math.sqrt(q.size(-1))
            hide = torch.arange(left, left + kb.size(-2), device=q.device) > torch.arange(top, top + qb.size(-2), device=q.device)[:, None]
            s = s.masked_fill(hide, -1e9)
            lse = s.logsumexp(-1, keepdim=True)
            parts.append((lse, (s - lse).exp() @ vb))
        total = torch.logsumexp(torch.cat([a for a, _ in parts], -1), -1, keepdim=True)
        ys.append(sum((a - total).exp() * b for a, b in parts))
        lses.append(total.squeeze(-1))
    return torch.cat(ys, -2), torch.cat(lses, -1)
