import torch
from torch import nn
from torch.nn import functional as F


class Fused(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(
            q, k, v, dropout_p=self.p if self.training else 0.0, is_causal=True
        )


class Written(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.drop = nn.Dropout(p)

    def forward(self, q, k, v):
        B, nh, T, hd = q.shape
        q, k, v = (z.reshape(B * nh, T, hd) for z in (q, k, v))
        bias = torch.zeros(T, T, dtype=q.dtype, device=q.device)
        i, j = torch.triu_indices(T, T, 1, device=q.device)
        bias[i, j] = float("-inf")
        s = torch.baddbmm(bias.expand(B * nh, T, T), q, k.transpose(1, 2), alpha=hd**-0.5)
        s = s - s.max(-1, keepdim=True).values
        e = s.exp()
        w = e / e.sum(-1, keepdim=True)
        return torch.bmm(self.drop(w), v).view(B, nh, T, hd)


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0, flash=True):
        super().__init__()
        assert n_embd % n_head == 0, f"{n_embd} % {n_head} != 0"
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.paths = nn.ModuleDict({"True": Fused(dropout), "False": Written(dropout)})
        self.drop = nn.Dropout(dropout)
        self.flash = flash
        self.heads = n_head
        self.limit = block_size

    def forward(self, x):
        B, T, C = x.shape
        assert T <= self.limit, f"{T} tokens, at most {self.limit}"
        qkv = self.qkv(x).view(B, T, 3, self.heads, C // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).contiguous().unbind(0)
        y = self.paths[str(bool(self.flash))](q, k, v)
        y = y.transpose(1, 2).reshape(B, T, C)
        return self.drop(self.proj(y))


def max_path_difference(module, x):
    flash = module.flash
    training = module.training
    try:
        module.eval()
        with torch.inference_mode():
            outs = {}
            for flag in (False, True):
                module.flash = flag
                outs[flag] = module(x)
            gap = (outs[True] - outs[False]).abs().amax()
        return float(gap)
    finally:
        module.flash = flash
        module.train(training)
