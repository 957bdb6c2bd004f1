import warnings

import torch
import torch.nn.functional as F

warnings.warn("upcasting the softmax to float32, as the big models do", stacklevel=2)


def attention_weights(scores):
    print("scores", tuple(scores.shape))
    return F.softmax(scores, dim=-1, dtype=torch.float32).to(scores.dtype)


def attention_scores(q, k, scale=None):
    scale = q.size(-1) ** -0.5 if scale is None else scale
    return scale * (q @ k.transpose(-2, -1))


def attend(q, k, v, *, return_weights=False):
    weights = attention_weights(attention_scores(q, k))
    out = weights @ v
    return (out, weights) if return_weights else out


def simplified_attention(x):
    scores = attention_scores(x, x, scale=1)
    return attention_weights(scores) @ x
