import torch
from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, d_query, d_context, d_out, num_heads):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("heads")
        self.num_heads = num_heads
        kw = dict(bias=False)
        self.W_query = nn.Linear(d_query, d_out, **kw)
        self.W_key = nn.Linear(d_context, d_out, **kw)
        self.W_value = nn.Linear(d_context, d_out, **kw)
        self.out_proj = nn.Linear(d_out, d_out)
        self.last_weights = None

    def forward(self, x, context, keep=None, return_weights=False):
        (B, T, _), S, H = x.shape, context.shape[1], self.num_heads
        # (W_q x)·(W_k c) = x W_qᵀ W_k c: absorb the key weights into the queries
        Wq = self.W_query.weight.view(H, -1, self.W_query.in_features)
        Wk = self.W_key.weight.view(H, -1, self.W_key.in_features)
        M = torch.einsum("hdi,hdj->hij", Wq, Wk) / Wq.shape[1] ** 0.5
        s = torch.einsum("bti,hij,bsj->bhts", x, M, context)
        if keep is not None:
            s.masked_fill_(~keep.view(B, 1, 1, S), float("-inf"))
        w = torch.nn.Softmax(dim=-1)(s)
        self.last_weights = w.detach()
        y = torch.einsum("bhts,bsj->bhtj", w, context)
        y = torch.einsum("bhtj,hdj->bthd", y, self.W_value.weight.view(H, -1, context.shape[-1]))
        out = self.out_proj(y.reshape(B, T, -1))
        if return_weights:
            return out, w
        return out
