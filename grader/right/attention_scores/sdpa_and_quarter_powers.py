import torch
import torch.nn.functional as F


def simplified_attention(x):
    return F.scaled_dot_product_attention(x, x, x, scale=1.0)


def attention_scores(q, k):
    quarter = q.shape[-1] ** 0.25
    return (q / quarter) @ (k / quarter).transpose(-1, -2)


def attention_weights(scores):
    return F.softmax(scores, dim=-1, dtype=torch.float32).to(scores.dtype)


def attend(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)
