import torch
import torch.nn.functional as F
from torch import nn

class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0, flash=True):
        super().__init__()
        if n_embd % n_head:
            raise ValueError(f"{n_embd}, {n_head}")
        self.qkv, self.proj = nn.Linear(n_embd, 3 * n_embd, bias=False), nn.Linear(n_embd, n_embd, bias=False)
        self.n_head, self.block_size, self.dropout, self.flash = n_head, block_size, dropout, flash

    def forward(self, x):
        T, p = x.shape[1], self.dropout if self.training else 0.0
        if T > self.block_size:
            raise ValueError(f"{T}, {self.block_size}")
        q, k, v = self.qkv(x).unflatten(-1, (3, self.n_head, -1)).permute(2, 0, 3, 1, 4)
        if self.flash:
            y = F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)
        else:
            future = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
            scores = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(future, -torch.inf)
            y = F.dropout(scores.softmax(-1), p) @ v
        return F.dropout(self.proj(y.transpose(1, 2).flatten(2)), self.dropout, self.training)

@torch.no_grad()
def max_path_difference(module, x):
    flash, training = module.flash, module.training
    module.eval().flash = True
    y = module(x)
    module.flash = False
    y = y - module(x)
    module.train(training).flash = flash
    return y.abs().max().item()
