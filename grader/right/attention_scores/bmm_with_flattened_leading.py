import math

import torch


def _flat(t):
    return t.reshape(-1, t.size(-2), t.size(-1))


def _matmul(a, b):
    """bmm for any number of leading dimensions."""
    out = torch.bmm(_flat(a), _flat(b))
    return out.view(*a.shape[:-1], b.size(-1))


def simplified_attention(x):
    return _matmul(torch.softmax(_matmul(x, x.transpose(-1, -2)), -1), x)


def attention_scores(q, k):
    return _matmul(q, k.transpose(-1, -2)) / math.sqrt(q.size(-1))


def attention_weights(scores):
    return torch.softmax(scores, -1)


def attend(q, k, v):
    return _matmul(attention_weights(attention_scores(q, k)), v)
