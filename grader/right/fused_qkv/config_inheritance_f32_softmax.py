from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class AttnConfig:
    n_embd: int
    n_head: int
    block_size: int
    dropout: float = 0.0

    @property
    def hd(self):
        return self.n_embd // self.n_head


class SplitHeads(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg

    def forward(self, t):
        return t.unflatten(-1, (self.cfg.n_head, self.cfg.hd)).movedim(-2, -3)


class Attention(nn.Module):
    def __init__(self, cfg: AttnConfig):
        super().__init__()
        if cfg.n_embd % cfg.n_head:
            raise ValueError(f"n_head {cfg.n_head} must divide n_embd {cfg.n_embd}")
        self.cfg = cfg
        self.qkv = nn.Linear(cfg.n_embd, 3 * cfg.n_embd, bias=False)
        self.proj = nn.Linear(cfg.n_embd, cfg.n_embd, bias=False)
        self.split = SplitHeads(cfg)

    def scores(self, q, k):
        return torch.matmul(q, k.transpose(-1, -2)) / self.cfg.hd**0.5

    def drop(self, t):
        return F.dropout(t, self.cfg.dropout) if self.training else t


class CausalSelfAttention(Attention):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0):
        super().__init__(AttnConfig(n_embd, n_head, block_size, dropout))
        mask = torch.full((block_size, block_size), float("-inf"))
        self.register_buffer("mask", torch.triu(mask, diagonal=1))

    def forward(self, x):
        n = x.shape[-2]
        if n > self.cfg.block_size:
            raise ValueError(f"{n} tokens in a block of {self.cfg.block_size}")
        q, k, v = [self.split(part) for part in self.qkv(x).chunk(3, -1)]
        s = self.scores(q, k) + self.mask[:n, :n].to(x.dtype)
        precise = torch.promote_types(s.dtype, torch.float32)
        w = s.to(precise).softmax(-1).to(x.dtype)
        o = torch.matmul(self.drop(w), v)
        o = o.movedim(-3, -2).flatten(-2)
        return self.drop(self.proj(o))


GPT2 = {
    "small": AttnConfig(768, 12, 1024),
    "medium": AttnConfig(1024, 16, 1024),
    "large": AttnConfig(1280, 20, 1024),
    "xl": AttnConfig(1600, 25, 1024),
}


def gpt2_attention(size):
    cfg = GPT2.get(size)
    if cfg is None:
        raise ValueError(f"{size} is unknown: {sorted(GPT2)}")
    return CausalSelfAttention(cfg.n_embd, cfg.n_head, cfg.block_size, cfg.dropout)
