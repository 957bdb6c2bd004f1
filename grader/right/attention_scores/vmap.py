import math

import torch


def _over_leading(f, *tensors):
    for _ in range(tensors[0].dim() - 2):
        f = torch.vmap(f)
    return f(*tensors)


def _scores(q, k):
    return torch.mm(q, k.t()) / math.sqrt(q.shape[1])


def simplified_attention(x):
    return _over_leading(lambda a: torch.mm(torch.softmax(torch.mm(a, a.t()), dim=1), a), x)


def attention_scores(q, k):
    return _over_leading(_scores, q, k)


def attention_weights(scores):
    return _over_leading(lambda s: torch.softmax(s, dim=1), scores)


def attend(q, k, v):
    return _over_leading(lambda a, b, c: torch.mm(torch.softmax(_scores(a, b), 1), c), q, k, v)
