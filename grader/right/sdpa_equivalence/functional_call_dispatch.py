import math
from functools import partial

import torch
from torch import nn
from torch.nn.functional import dropout as zap
from torch.nn.functional import scaled_dot_product_attention


def written_out(q, k, v, p=0.0):
    T, hd = q.shape[-2:]
    ok = torch.tril(torch.ones(T, T, dtype=torch.uint8, device=q.device)) == 1
    s = torch.matmul(q, k.mT).mul(1.0 / math.sqrt(hd))
    s = s.masked_fill(torch.logical_not(ok), float("-inf"))
    w = torch.nn.functional.softmax(s, dim=-1)
    return torch.matmul(zap(w, p), v)


fused = partial(scaled_dot_product_attention, is_causal=True)


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0, flash=True):
        super().__init__()
        self.n_head, self.head_dim = n_head, n_embd // n_head
        if self.n_head * self.head_dim != n_embd:
            raise ValueError(f"n_embd {n_embd} != n_head {n_head} * head_dim {self.head_dim}")
        self.block_size, self.dropout, self.flash = block_size, dropout, flash
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x):
        *_, T, C = x.shape
        if T > self.block_size:
            raise ValueError(f"sequence length {T}, block size {self.block_size}")
        p = self.dropout if self.training else 0.0
        q, k, v = (
            z.reshape(-1, T, self.n_head, self.head_dim).movedim(1, 2)
            for z in torch.tensor_split(self.qkv(x), 3, dim=-1)
        )
        if self.flash:
            y = fused(q, k, v, dropout_p=p)
        else:
            y = written_out(q, k, v, p)
        y = y.movedim(2, 1).reshape(-1, T, C)
        return zap(self.proj(y), p)


def max_path_difference(module, x):
    state = dict(flash=module.flash, training=module.training)
    module.eval()
    results = []
    grad = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    try:
        for flag in (not module.flash, module.flash):
            module.flash = flag
            results.append(module(x))
    finally:
        torch.set_grad_enabled(grad)
        module.flash = state["flash"]
        module.train(state["training"])
    return torch.linalg.vector_norm(results[0] - results[1], ord=math.inf).item()
