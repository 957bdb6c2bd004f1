import torch


def stable_softmax(s):
    s = s - s.max(dim=-1, keepdim=True).values
    s = s.exp()
    return s / s.sum(-1, keepdim=True)


def attention_weights(scores):
    return stable_softmax(scores)


def attention_scores(q, k):
    # scale both sides by the fourth root: smaller numbers on the way
    c = q.shape[-1] ** -0.25
    return torch.matmul(q * c, torch.movedim(k * c, -1, -2))


def attend(q, k, v):
    return torch.matmul(stable_softmax(attention_scores(q, k)), v)


def simplified_attention(x):
    return torch.matmul(stable_softmax(torch.matmul(x, torch.movedim(x, -1, -2))), x)
