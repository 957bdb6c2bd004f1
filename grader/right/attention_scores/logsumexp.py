import torch
from torch import Tensor


def attention_weights(scores: Tensor) -> Tensor:
    return torch.exp(scores - scores.logsumexp(dim=-1, keepdim=True))


def attention_scores(q: Tensor, k: Tensor) -> Tensor:
    if q.ndim == 2:
        return torch.tensordot(q, k, dims=([1], [1])) / q.shape[1] ** 0.5
    return (q.unsqueeze(-2) * k.unsqueeze(-3)).sum(-1) / q.shape[-1] ** 0.5


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    weights = attention_weights(attention_scores(q, k))
    return (weights.unsqueeze(-1) * v.unsqueeze(-3)).sum(-2)


def simplified_attention(x: Tensor) -> Tensor:
    weights = attention_weights((x.unsqueeze(-2) * x.unsqueeze(-3)).sum(-1))
    return (weights.unsqueeze(-1) * x.unsqueeze(-3)).sum(-2)
