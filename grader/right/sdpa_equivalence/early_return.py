import math
import torch
import torch.nn.functional as F


class CausalSelfAttention(torch.nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0, flash=True):
        super().__init__()
        hd = n_embd / n_head
        if hd != int(hd):
            raise ValueError(f"head_dim would be {n_embd}/{n_head} = {hd}")
        self.hd = int(hd)
        self.nh = n_head
        self.block_size = block_size
        self.rate = dropout
        self.flash = flash
        self.qkv = torch.nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = torch.nn.Linear(n_embd, n_embd, bias=False)

    def finish(self, y):
        # y: (B, nh, T, hd)
        y = torch.cat([y[:, h] for h in range(self.nh)], dim=-1)
        y = self.proj(y)
        return F.dropout(y, self.rate, self.training)

    def forward(self, x):
        B, T, C = x.shape
        if T > self.block_size:
            raise ValueError(f"{T} > {self.block_size}")
        qkv = self.qkv(x)
        q = qkv[:, :, :C]
        k = qkv[:, :, C:2 * C]
        v = qkv[:, :, 2 * C:]
        q = torch.stack(q.split(self.hd, dim=2), dim=1)
        k = torch.stack(k.split(self.hd, dim=2), dim=1)
        v = torch.stack(v.split(self.hd, dim=2), dim=1)
        if self.flash:
            rate = 0.0
            if self.training:
                rate = self.rate
            return self.finish(F.scaled_dot_product_attention(q, k, v, None, rate, True))
        scores = torch.matmul(q, k.transpose(2, 3))
        scores = scores / math.sqrt(self.hd)
        hide = torch.ones(T, T, device=x.device, dtype=torch.bool)
        hide = torch.triu(hide, 1)
        scores = scores.masked_fill(hide, torch.finfo(scores.dtype).min)
        weights = torch.softmax(scores, dim=3)
        weights = F.dropout(weights, self.rate, self.training)
        return self.finish(torch.matmul(weights, v))


def max_path_difference(module, x):
    before = (module.training, module.flash)
    module.train(False)
    module.flash = not before[1]
    try:
        with torch.no_grad():
            a = module(x)
            module.flash = before[1]
            b = module(x)
    finally:
        module.training, module.flash = before
        module.train(before[0])
    biggest = 0.0
    for row_a, row_b in zip(a, b):
        biggest = max(biggest, (row_a - row_b).abs().max().item())
    return biggest
