"""A backward pass of its own, made of lse."""

import math
import torch


def online_softmax(scores, block):
    mx = torch.full_like(scores[..., 0], -math.inf)
    den = torch.zeros_like(mx)
    for blk in torch.split(scores, block, dim=-1):
        prev = mx
        mx = torch.maximum(mx, blk.max(dim=-1)[0])
        den = den * torch.exp(prev - mx) + torch.exp(blk - mx.unsqueeze(-1)).sum(dim=-1)
    return torch.cat([torch.exp(blk - mx.unsqueeze(-1)) / den.unsqueeze(-1) for blk in torch.split(scores, block, -1)], -1)


class Flash(torch.autograd.Function):
    """FlashAttention with its own backward, from lse."""

    @staticmethod
    def forward(ctx, q, k, v, bq, bk):
        T, d = q.shape[-2:]
        y = torch.zeros(*q.shape[:-1], v.shape[-1], dtype=q.dtype, device=q.device)
        lse = torch.zeros(q.shape[:-1], dtype=q.dtype, device=q.device)
        for i in range(0, T, bq):
            e = min(i + bq, T)
            m = torch.full_like(q[..., i:e, :1], -math.inf)
            s = torch.zeros_like(m)
            o = torch.zeros_like(y[..., i:e, :])
            for j in range(0, e, bk):
                sc = Flash.scores(q, k, i, e, j, min(j + bk, T))
                n = torch.maximum(m, sc.amax(-1, keepdim=True))
                p = torch.exp(sc - n)
                a = torch.exp(m - n)
                s, o, m = s * a + p.sum(-1, keepdim=True), o * a + p @ v[..., j : min(j + bk, T), :], n
            y[..., i:e, :] = o / s
            lse[..., i:e] = (m + s.log()).squeeze(-1)
        ctx.save_for_backward(q, k, v, y, lse)
        ctx.blocks = bq, bk
        return y, lse

    @staticmethod
    def scores(q, k, i, e, j, f):
        sc = q[..., i:e, :] @ k[..., j:f, :].transpose(-1, -2) / math.sqrt(q.shape[-1])
        hide = torch.arange(j, f, device=q.device) > torch.arange(i, e, device=q.device)[:, None]
        return sc.masked_fill(hide, -math.inf)

    @staticmethod
    def backward(ctx, gy, glse):
        q, k, v, y, lse = ctx.saved_tensors
        bq, bk = ctx.blocks
        T, d = q.shape[-2:]
        gq, gk, gv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        delta = (gy * y).sum(-1, keepdim=True)
        if glse is not None:
            delta = delta - glse.unsqueeze(-1)
        for i in range(0, T, bq):
            e = min(i + bq, T)
            for j in range(0, e, bk):
                f = min(j + bk, T)
                p = torch.exp(Flash.scores(q, k, i, e, j, f) - lse[..., i:e, None])
                gv[..., j:f, :] += p.transpose(-1, -2) @ gy[..., i:e, :]
                ds = p * (gy[..., i:e, :] @ v[..., j:f, :].transpose(-1, -2) - delta[..., i:e, :]) / math.sqrt(d)
                gq[..., i:e, :] += ds @ k[..., j:f, :]
                gk[..., j:f, :] += ds.transpose(-1, -2) @ q[..., i:e, :]
        return gq, gk, gv, None, None


def tiled_attention(q, k, v, block_q, block_k):
    return Flash.apply(q, k, v, block_q, block_k)

