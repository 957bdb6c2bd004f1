"""Keys by queries throughout: tiles stand on their side, state in a row."""

import math

import torch


def online_softmax(scores, block):
    turned = scores.movedim(-1, 0)  # (T, ...)
    m, s = None, None
    for x in turned.split(block):
        here = x.amax(0)
        new = here if m is None else torch.maximum(m, here)
        add = torch.exp(x - new).sum(0)
        s = add if m is None else s * torch.exp(m - new) + add
        m = new
    return torch.cat([torch.exp(x - m) / s for x in turned.split(block)]).movedim(0, -1)


def tiled_attention(q, k, v, block_q, block_k):
    T, hd = q.shape[-2:]
    qt, vt = q.transpose(-2, -1), v.transpose(-2, -1)
    ys, logs = [], []
    for i in range(0, T, block_q):
        x = qt[..., :, i : i + block_q]
        n = x.shape[-1]
        m = s = o = None
        for j in range(0, i + n, block_k):
            keys = k[..., j : j + block_k, :]
            c = keys.shape[-2]
            scores = keys @ x * (hd**-0.5)  # (..., bk, bq)
            index = torch.arange(c, device=q.device)[:, None] + j
            hidden = index > torch.arange(n, device=q.device) + i
            scores = torch.where(hidden, -math.inf, scores)
            here = scores.amax(-2, keepdim=True)
            new = here if m is None else torch.maximum(m, here)
            p = (scores - new).exp()
            if m is None:
                s, o = p.sum(-2, keepdim=True), vt[..., j : j + c] @ p
            else:
                f = (m - new).exp()
                s, o = s * f + p.sum(-2, keepdim=True), o * f + vt[..., j : j + c] @ p
            m = new
        ys.append(o / s)
        logs.append(m + s.log())
    return torch.cat(ys, -1).transpose(-2, -1), torch.cat(logs, -1).squeeze(-2)
