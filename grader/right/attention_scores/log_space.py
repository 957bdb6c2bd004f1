import math
import torch


def attention_weights(scores):
    # p = exp(s - log sum exp s)
    return (scores - scores.logsumexp(dim=-1, keepdim=True)).exp()


def attention_scores(q, k):
    root = math.sqrt(k.shape[-1])
    return q.matmul(k.mT).div(root)


def attend(q, k, v):
    log_p = torch.log_softmax(attention_scores(q, k), dim=-1)
    return log_p.exp() @ v


def simplified_attention(x):
    return attention_weights(x @ x.mT) @ x
