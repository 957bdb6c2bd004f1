import copy
import torch
from torch import nn
from torch.nn.functional import linear, dropout, scaled_dot_product_attention as sdpa
from einops import rearrange

class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0, flash=True):
        super().__init__()
        assert n_embd % n_head == 0, f"n_embd={n_embd}, n_head={n_head}"
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.h = n_head
        self.p = dropout
        self.flash = flash
        self.register_buffer("bias", torch.full((block_size, block_size), float("-inf")).triu(1), persistent=False)

    def forward(self, x):
        T = x.shape[1]
        assert T <= len(self.bias), f"T={T} is more than {len(self.bias)}"
        q, k, v = (rearrange(linear(x, w), "b t (h d) -> b h t d", h=self.h) for w in self.qkv.weight.chunk(3))
        p = self.p if self.training else 0.0
        if self.flash:
            y = sdpa(q, k, v, dropout_p=p, is_causal=True)
        else:
            s = torch.einsum("bhid,bhjd->bhij", q, k) * q.shape[-1] ** -0.5 + self.bias[:T, :T].to(q.dtype)
            y = torch.einsum("bhij,bhjd->bhid", dropout(s.softmax(-1), p), v)
        return dropout(self.proj(rearrange(y, "b h t d -> b t (h d)")), p, training=self.training)

def max_path_difference(module, x):
    # never touch the module itself: compare two copies
    a, b = copy.deepcopy(module).eval(), copy.deepcopy(module).eval()
    a.flash, b.flash = True, False
    with torch.inference_mode():
        gap = torch.sub(a(x), b(x)).abs_().amax()
    return float(gap)
