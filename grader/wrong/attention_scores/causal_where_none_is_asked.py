import math

import torch


def simplified_attention(x):
    return torch.softmax(x @ x.mT, dim=-1) @ x


def attention_scores(q, k):
    return q @ k.mT / math.sqrt(q.shape[-1])


def attention_weights(scores):
    return torch.softmax(scores, dim=-1)


def attend(q, k, v):
    s = attention_scores(q, k)
    seen = torch.ones(s.shape[-2:], dtype=torch.bool, device=s.device).tril()
    return attention_weights(s.masked_fill(~seen, -math.inf)) @ v
