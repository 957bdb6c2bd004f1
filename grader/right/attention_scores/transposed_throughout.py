import numpy as np
import torch


def attention_scores(q, k):
    """keys in rows first, then turned back; a negative and a positive axis name the same thing"""
    kq = torch.linalg.matmul(k, q.transpose(q.ndim - 1, q.ndim - 2))
    return kq.adjoint() / float(np.sqrt(q.shape[-1]))


def attention_weights(scores):
    return torch.softmax(scores.mT, dim=-2).mT.contiguous()


def attend(q, k, v):
    return (v.mT @ attention_weights(attention_scores(q, k)).mT).mT


def simplified_attention(x):
    w = torch.softmax(x @ x.mT, dim=-2)  # the table is symmetric, so its columns are its rows
    return w.mT @ x
