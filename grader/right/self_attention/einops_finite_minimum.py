import torch
from einops import einsum, rearrange
from torch import nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout=0.0, qkv_bias=False, verbose=True):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.drop = nn.Dropout(p=dropout)
        self.scale = d_out**-0.5
        mask = torch.ones(context_length, context_length).tril()
        self.register_buffer("mask", rearrange(mask, "q k -> 1 q k"), persistent=False)
        if verbose:
            print("CausalAttention built", d_in, d_out)

    def forward(self, x):
        n = x.shape[-2]
        if n > self.mask.shape[-1]:
            raise ValueError(f"{n} tokens, context {self.mask.shape[-1]}")
        q = self.W_query(x) * self.scale
        sim = einsum(q, self.W_key(x), "b i d, b j d -> b i j")
        sim = sim.masked_fill(self.mask[:, :n, :n] == 0, torch.finfo(sim.dtype).min)
        print(sim.shape)
        attn = self.drop(sim.softmax(dim=-1))
        return einsum(attn, self.W_value(x), "b i j, b j d -> b i d")
