import torch
import torch.nn as nn


class Merge(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.heads = heads

    def fold(self, z):
        n, t, c = z.shape
        return z.view(n, t, self.heads, c // self.heads).transpose(1, 2).reshape(n * self.heads, t, c // self.heads)

    def unfold(self, z):
        nh, t, d = z.shape
        return z.view(nh // self.heads, self.heads, t, d).transpose(1, 2).reshape(nh // self.heads, t, self.heads * d)


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0):
        super().__init__()
        if n_embd // n_head * n_head != n_embd:
            raise ValueError(f"n_embd: {n_embd}, n_head: {n_head}")
        self.qkv = nn.Linear(in_features=n_embd, out_features=3 * n_embd, bias=False)
        self.proj = nn.Linear(in_features=n_embd, out_features=n_embd, bias=False)
        self.merge = Merge(n_head)
        self.scale = (n_embd // n_head) ** -0.5
        self.drops = nn.ModuleList([nn.Dropout(dropout), nn.Dropout(dropout)])
        rows = torch.arange(block_size).view(-1, 1)
        cols = torch.arange(block_size).view(1, -1)
        self.register_buffer("seen", cols <= rows)

    def forward(self, x):
        t = x.size(1)
        if t > self.seen.size(0):
            raise ValueError(f"{t} tokens are too many, {self.seen.size(0)} at most")
        q, k, v = torch.tensor_split(self.qkv(x), 3, dim=-1)
        q = self.merge.fold(q) * self.scale
        k = self.merge.fold(k)
        v = self.merge.fold(v)
        logits = torch.bmm(q, k.mT)
        logits = torch.where(self.seen[:t, :t], logits, torch.full_like(logits, float("-inf")))
        weights = torch.exp(logits - torch.logsumexp(logits, dim=-1, keepdim=True))
        weights = self.drops[0](weights)
        out = self.merge.unfold(torch.bmm(weights, v))
        return self.drops[1](self.proj(out))


SIZES = (("small", 768, 12), ("medium", 1024, 16), ("large", 1280, 20), ("xl", 1600, 25))


def gpt2_attention(size):
    for name, n_embd, n_head in SIZES:
        if name == size:
            return CausalSelfAttention(n_embd=n_embd, n_head=n_head, block_size=1024, dropout=0.0)
    raise ValueError("known sizes: " + " ".join(name for name, *_ in SIZES))
