import torch
import torch.nn as nn
import torch.nn.functional as F

class CausalSelfAttention(nn.Module):
    """The hand-written path runs key by key with a running max and sum for eval; with real weights in training."""
    def __init__(self, n_embd, n_head, block_size, dropout=0.0, flash=True):
        super().__init__()
        if n_embd % n_head != 0:
            raise ValueError(f"n_embd ({n_embd}) % n_head ({n_head}) != 0")
        self.n_head = n_head
        self.block_size = block_size
        self.flash = flash
        self.attn_drop = nn.Dropout(dropout)
        self.out_drop = nn.Dropout(dropout)
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def by_hand(self, q, k, v):
        T = q.size(2)
        out = []
        for t in range(T):
            s = (k[:, :, : t + 1] * q[:, :, t : t + 1]).sum(-1) * q.size(-1) ** -0.5
            w = self.attn_drop(torch.softmax(s, -1))
            out.append((w.unsqueeze(-1) * v[:, :, : t + 1]).sum(2))
        return torch.stack(out, dim=2)

    def forward(self, x):
        B, T, C = x.size()
        if T > self.block_size:
            raise ValueError(f"T={T} > block_size={self.block_size}")
        q, k, v = [t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in self.qkv(x).split(C, dim=2)]
        if self.flash:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.attn_drop.p if self.training else 0)
        else:
            y = self.by_hand(q, k, v)
        return self.out_drop(self.proj(y.transpose(1, 2).reshape(B, T, C)))

def max_path_difference(module, x):
    old_flash, old_training = module.flash, module.training
    try:
        module.train(False)
        with torch.no_grad():
            module.flash = True
            fast = module(x)
            module.flash = False
            slow = module(x)
    finally:
        module.flash = old_flash
        module.train(old_training)
    return (fast - slow).abs().max().item()
