import torch
import torch.nn.functional as F


def one_head(x, wq, wk, wv):
    q, k, v = F.linear(x, wq), F.linear(x, wk), F.linear(x, wv)
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def mha_by_loop(mha, x):
    C, hd = x.shape[-1], mha.head_dim
    rows = mha.qkv.weight.reshape(3, mha.n_head, hd, C)
    total = 0
    for h in range(mha.n_head):
        # every head adds its share of the projection
        total = total + one_head(x, *rows[:, h]) @ mha.proj.weight[:, h * hd : (h + 1) * hd].T
    return total
