import torch
import torch.nn as nn
import torch.nn.functional as F
import math
import warnings

class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0, flash=True, verbose=False):
        super().__init__()
        if n_embd % n_head != 0:
            raise ValueError("n_embd %d, n_head %d" % (n_embd, n_head))
        self.n_embd = n_embd
        self.n_head = n_head
        self.head_dim = n_embd // n_head
        self.block_size = block_size
        self.dropout = dropout
        self.flash = flash
        self.verbose = verbose
        if not hasattr(F, "scaled_dot_product_attention"):
            warnings.warn("PyTorch is too old for the fast path")
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.dropout_weights = nn.Dropout(dropout)
        self.dropout_output = nn.Dropout(dropout)
        self.register_buffer("mask", torch.tril(torch.ones(block_size, block_size)))

    def to_heads(self, t):
        B, T, C = t.shape
        t = t.reshape(B, T, self.n_head, self.head_dim)
        t = t.transpose(1, 2)
        return t

    def forward(self, x):
        B, T, C = x.shape
        if T > self.block_size:
            raise ValueError("T %d, block_size %d" % (T, self.block_size))
        all_three = self.qkv(x)
        q = self.to_heads(all_three[:, :, 0:self.n_embd])
        k = self.to_heads(all_three[:, :, self.n_embd:2 * self.n_embd])
        v = self.to_heads(all_three[:, :, 2 * self.n_embd:])
        if self.flash:
            if self.training:
                p = self.dropout
            else:
                p = 0.0
            y = F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)
        else:
            y = self.slow_attention(q, k, v, T)
        y = y.transpose(1, 2)
        y = y.contiguous()
        y = y.view(B, T, C)
        y = self.proj(y)
        y = self.dropout_output(y)
        return y

    def slow_attention(self, q, k, v, T):
        scores = torch.matmul(q, k.transpose(2, 3))
        scores = torch.div(scores, math.sqrt(self.head_dim))
        scores = scores.masked_fill(self.mask[:T, :T] < 0.5, -math.inf)
        weights = torch.softmax(scores, dim=3)
        weights = self.dropout_weights(weights)
        return torch.matmul(weights, v)

def max_path_difference(module, x):
    flash_before = module.flash
    training_before = module.training
    module.eval()
    with torch.no_grad():
        module.flash = True
        y1 = module(x)
        module.flash = False
        y2 = module(x)
    module.flash = flash_before
    if training_before:
        module.train()
    difference = torch.max(torch.abs(y1 - y2))
    print("difference", float(difference))
    return float(difference)
