import torch
from einops import einsum, rearrange


def causal(scores):
    n = scores.shape[-1]
    keep = torch.arange(n, device=scores.device)[:, None] >= torch.arange(n, device=scores.device)
    return torch.where(keep, scores, -torch.inf)


def head(q, k, v):
    scale = q.shape[-1] ** -0.5
    scores = einsum(q, k, "b i d, b j d -> b i j") * scale
    weights = causal(scores).softmax(dim=-1)
    return einsum(weights, v, "b i j, b j d -> b i d")


def mha_by_loop(mha, x):
    qkv = rearrange(mha.qkv(x), "b t (three h d) -> three h b t d", three=3, h=mha.n_head)
    q, k, v = qkv
    heads = [head(q[i], k[i], v[i]) for i in range(mha.n_head)]
    y = rearrange(heads, "h b t d -> b t (h d)")
    return mha.proj(y)
