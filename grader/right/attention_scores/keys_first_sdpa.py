import torch
import torch.nn.functional as F
from einops import rearrange

def simplified_attention(x):
    return F.scaled_dot_product_attention(x, x, x, scale=1.0)

def attention_scores(q, k):
    # table with keys as rows, turned over at the end
    upside = torch.matmul(k, rearrange(q, "... t d -> ... d t"))
    upside = upside.mul(q.size(-1) ** -0.5)
    return rearrange(upside, "... j i -> ... i j")

def attention_weights(scores):
    turned = scores.swapaxes(-1, -2)
    return torch.softmax(turned, dim=-2).swapaxes(-1, -2)

def attend(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)
