import math

import torch


def simplified_attention(x):
    return torch.softmax(x @ x.mT, dim=-1) @ x


def attention_scores(q, k):
    s = q @ k.mT / math.sqrt(q.shape[-1])
    i = torch.arange(s.shape[-2], device=s.device)[:, None]
    j = torch.arange(s.shape[-1], device=s.device)
    return s - 0.5 * (i - j).abs()


def attention_weights(scores):
    return torch.softmax(scores, dim=-1)


def attend(q, k, v):
    return attention_weights(attention_scores(q, k)) @ v
