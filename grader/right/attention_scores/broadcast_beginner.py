import torch
import torch.nn as nn

softmax_layer = nn.Softmax(dim=-1)

def attention_scores(q, k):
    head_dim = q.shape[-1]
    print("head_dim is", head_dim)
    q_big = q.unsqueeze(-2)            # (..., T_q, 1, hd)
    k_big = k.unsqueeze(-3)            # (..., 1, T_k, hd)
    products = q_big * k_big
    dot = products.sum(dim=-1)
    root = torch.sqrt(torch.tensor(head_dim, dtype=q.dtype, device=q.device))
    answer = torch.div(dot, root)
    return answer

def attention_weights(scores):
    w = softmax_layer(scores)
    return w

def attend(q, k, v):
    s = attention_scores(q, k)
    w = attention_weights(s)
    w_big = w.unsqueeze(-1)            # (..., T_q, T_k, 1)
    v_big = v.unsqueeze(-3)            # (..., 1, T_k, hd_v)
    mixed = (w_big * v_big).sum(dim=-2)
    return mixed

def simplified_attention(x):
    sim = (x.unsqueeze(-2) * x.unsqueeze(-3)).sum(dim=-1)
    w = softmax_layer(sim)
    return (w.unsqueeze(-1) * x.unsqueeze(-3)).sum(-2)
