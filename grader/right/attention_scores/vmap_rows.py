import torch
from torch.func import vmap

# one query at a time; vmap does the rest

def _one_query(q, k):
    return (k * q).sum(-1) / k.size(-1) ** 0.5

def _table(q, k):
    return vmap(_one_query, in_dims=(0, None))(q, k)

def _lead(fn, *ts):
    for _ in range(ts[0].dim() - 2):
        fn = vmap(fn)
    return fn(*ts)

def simplified_attention(x):
    return _lead(lambda t: _norm(t @ t.t()) @ t, x)

def attention_scores(q, k):
    return _lead(_table, q, k)

def _norm(row):
    return torch.exp(torch.log_softmax(row, -1))

def attention_weights(scores):
    return _norm(scores)

def attend(q, k, v):
    return _lead(lambda w, u: w @ u, attention_weights(attention_scores(q, k)), v)
