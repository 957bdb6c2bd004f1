import torch
from torch import nn
import torch.nn.functional as F
import numpy as np

def manual(q, k, v, p):
    T = q.shape[-2]
    a = q.matmul(k.transpose(-1, -2)).mul(float(1 / np.sqrt(q.shape[-1])))
    a = torch.where(torch.ones(T, T, device=q.device).tril().bool(), a, torch.finfo(a.dtype).min)
    a = torch.exp(torch.log_softmax(a, -1))
    return F.dropout(a, p, training=p > 0).matmul(v)

def fused(q, k, v, p):
    return F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True, scale=q.shape[-1] ** -0.5)

PATHS = {True: fused, False: manual}

class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0, flash=True):
        super().__init__()
        if n_embd // n_head * n_head != n_embd:
            raise ValueError("n_embd=%d is not divisible by n_head=%d" % (n_embd, n_head))
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.cfg = (n_head, block_size, dropout)
        self.flash = flash

    def forward(self, x):
        n_head, block, p = self.cfg
        p = p if self.training else 0.0
        B, T, C = x.shape
        if T > block:
            raise ValueError("T=%d, block_size=%d" % (T, block))
        qkv = self.qkv(x).reshape(B, T, 3 * n_head, C // n_head).transpose(1, 2)
        y = PATHS[bool(self.flash)](*qkv.tensor_split(3, dim=1), p)
        y = torch.cat([y[:, h] for h in range(n_head)], dim=-1)
        return F.dropout(self.proj(y), p, self.training)

def max_path_difference(module, x):
    was = module.flash, module.training
    module.eval()
    y = {}
    with torch.set_grad_enabled(False):
        for module.flash in PATHS:
            y[module.flash] = module(x)
    module.flash = was[0]
    module.train(was[1])
    return max(abs(d) for d in (y[True] - y[False]).flatten().tolist())
