"""Answers of single tiles, joined by their log-sum-exp."""

import torch


def online_softmax(scores, block):
    total = None
    for piece in scores.split(block, -1):
        part = piece.logsumexp(-1, keepdim=True)
        total = part if total is None else torch.logaddexp(total, part)
    return torch.cat([(piece - total).exp() for piece in scores.split(block, -1)], -1)


def tiled_attention(q, k, v, block_q, block_k):
    T, hd = q.shape[-2:]
    out, logs = [], []
    for top in range(0, T, block_q):
        rows = q[..., top : top + block_q, :] * hd**-0.5
        last = top + rows.shape[-2]
        y = lse = None
        for left in range(0, last, block_k):
            keys, values = k[..., left : left + block_k, :], v[..., left : left + block_k, :]
            scores = rows @ keys.transpose(-1, -2)
            ahead = (
                torch.arange(left, left + keys.shape[-2], device=q.device)
                - torch.arange(top, last, device=q.device)[:, None]
            )
            scores = scores.masked_fill(ahead > 0, -1e30)
            here = scores.logsumexp(-1, keepdim=True)
            mine = (scores - here).exp() @ values
            if y is None:
                y, lse = mine, here
            else:
                both = torch.logaddexp(lse, here)
                y, lse = y * (lse - both).exp() + mine * (here - both).exp(), both
        out.append(y)
        logs.append(lse.squeeze(-1))
    return torch.cat(out, -2), torch.cat(logs, -1)
