import torch
from torch import nn


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0, flash=True):
        super().__init__()
        if n_embd % n_head:
            raise ValueError("n_embd=%d, n_head=%d" % (n_embd, n_head))
        self.n_head = n_head
        self.block_size = block_size
        self.flash = flash
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.attn_drop = nn.Dropout(dropout)
        self.out_drop = nn.Dropout(dropout)
        self.mask = None

    def get_mask(self, t, device):
        if self.mask is None or self.mask.device != device:
            n = torch.arange(self.block_size, device=device)
            self.mask = n.view(-1, 1) < n.view(1, -1)
        return self.mask[:t, :t]

    def forward(self, x):
        b, t, c = x.shape
        if t > self.block_size:
            raise ValueError("%d tokens but block_size=%d" % (t, self.block_size))
        d = c // self.n_head
        q, k, v = self.qkv(x).chunk(3, dim=2)
        if self.flash:
            q, k, v = [z.view(b, t, self.n_head, d).permute(0, 2, 1, 3) for z in (q, k, v)]
            p = self.attn_drop.p if self.training else 0.0
            out = nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)
            out = out.permute(0, 2, 1, 3).reshape(b, t, c)
        else:
            parts = []
            for qh, kh, vh in zip(q.split(d, 2), k.split(d, 2), v.split(d, 2)):
                att = torch.einsum("bid,bjd->bij", qh, kh) / d**0.5
                att = att.masked_fill(self.get_mask(t, x.device), -float("inf"))
                att = self.attn_drop(att.softmax(2))
                parts.append(torch.einsum("bij,bjd->bid", att, vh))
            out = torch.cat(parts, 2)
        return self.out_drop(self.proj(out))


def max_path_difference(module, x):
    def run(flag):
        module.flash = flag
        return module(x)

    saved = module.flash, module.training
    module.eval()
    try:
        with torch.no_grad():
            gap = run(True).sub(run(False)).abs().max()
    finally:
        module.flash = saved[0]
        module.train(saved[1])
    return gap.item()
