import torch


def simplified_attention(x):
    return torch.softmax(x @ x.mT, dim=-1) @ x


def attention_scores(q, k):
    return torch.nn.functional.normalize(q, dim=-1) @ torch.nn.functional.normalize(k, dim=-1).mT


def attention_weights(scores):
    return torch.softmax(scores, dim=-1)


def attend(q, k, v):
    return attention_weights(attention_scores(q, k)) @ v
