import torch
from torch import nn


def attend(q, k, v, drop):
    """One head: q, k, v (B, T, hd)."""
    T, d = q.shape[1:]
    scores = q.bmm(k.transpose(1, 2)).div(d**0.5)
    blocked = torch.full((T, T), float("-inf"), device=q.device, dtype=q.dtype).triu(1)
    weights = (scores + blocked).softmax(dim=-1)
    return drop(weights).bmm(v)


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0):
        super().__init__()
        if n_embd % n_head != 0:
            raise ValueError("n_embd={} n_head={}: no whole number of channels".format(n_embd, n_head))
        self.n_head = n_head
        self.head_dim = n_embd // n_head
        self.block_size = block_size
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        if x.shape[1] > self.block_size:
            raise ValueError("{} tokens, block_size {}".format(x.shape[1], self.block_size))
        Q, K, V = self.qkv(x).chunk(3, dim=-1)
        outs = []
        for h in range(self.n_head):
            mine = slice(h * self.head_dim, (h + 1) * self.head_dim)
            outs.append(attend(Q[..., mine], K[..., mine], V[..., mine], self.dropout))
        y = torch.cat(outs, dim=-1)
        y = self.proj(y)
        return self.dropout(y)


def gpt2_attention(size):
    names = ["small", "medium", "large", "xl"]
    if size not in names:
        raise ValueError("size must be one of " + ", ".join(names) + "; got " + str(size))
    widths = [768, 1024, 1280, 1600]
    C = widths[names.index(size)]
    return CausalSelfAttention(C, C // 64, 1024)
