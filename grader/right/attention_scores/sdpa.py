import torch.nn.functional as F


def simplified_attention(x):
    return F.scaled_dot_product_attention(x, x, x, scale=1.0)


def attention_scores(q, k):
    return q @ k.swapaxes(-2, -1) * q.shape[-1] ** -0.5


def attention_weights(scores):
    return F.softmax(scores, dim=-1)


def attend(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)
