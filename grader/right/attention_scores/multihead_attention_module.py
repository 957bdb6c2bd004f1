import torch
from torch import nn


def _identity_mha(q, k, v):
    """nn.MultiheadAttention with one head and identity projections."""
    d = q.shape[-1]
    mha = nn.MultiheadAttention(d, 1, bias=False, batch_first=True, device=q.device, dtype=q.dtype)
    with torch.no_grad():
        mha.in_proj_weight.copy_(torch.eye(d, dtype=q.dtype, device=q.device).repeat(3, 1))
        mha.out_proj.weight.copy_(torch.eye(d, dtype=q.dtype, device=q.device))
    mha.requires_grad_(False)
    flat = [t.reshape(-1, *t.shape[-2:]) for t in (q, k, v)]
    return mha(*flat, need_weights=False)[0].reshape(*q.shape[:-1], v.shape[-1])


def simplified_attention(x):
    return _identity_mha(x * x.shape[-1] ** 0.5, x, x)


def attention_scores(q, k):
    return q.matmul(k.transpose(-1, -2)).mul(q.shape[-1] ** -0.5)


def attention_weights(scores):
    return scores.softmax(-1)


def attend(q, k, v):
    if v.shape[-1] == q.shape[-1]:
        return _identity_mha(q, k, v)
    return attention_weights(attention_scores(q, k)) @ v
