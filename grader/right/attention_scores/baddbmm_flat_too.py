import math

import torch


def _flat(t: torch.Tensor) -> torch.Tensor:
    rows, cols = t.shape[-2:]
    return t.reshape(-1, rows, cols)


def _table(a: torch.Tensor, b: torch.Tensor, factor: float) -> torch.Tensor:
    nothing = a.new_zeros(1, 1, 1)
    out = torch.baddbmm(nothing, _flat(a), _flat(b).transpose(1, 2), beta=0, alpha=factor)
    return out.reshape(*a.shape[:-1], b.shape[-2])


def attention_scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    return _table(q, k, 1.0 / math.sqrt(q.shape[-1]))


def attention_weights(scores: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.softmax(scores, -1)


def _mix(w: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.bmm(_flat(w), _flat(v)).reshape(*w.shape[:-1], v.shape[-1])


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return _mix(attention_weights(attention_scores(q, k)), v)


def simplified_attention(x: torch.Tensor) -> torch.Tensor:
    return _mix(attention_weights(_table(x, x, 1.0)), x)
