import torch
import torch.nn as nn

class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout=0.0, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key   = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.keep = nn.Dropout(p=dropout)
        self.register_buffer("tri", torch.ones(context_length, context_length).tril())

    def forward(self, x):
        num_tokens = x.shape[1]
        if num_tokens > self.tri.shape[1]:
            raise ValueError("sequence of %d is longer than context %d" % (num_tokens, self.tri.shape[1]))
        queries = self.W_query(x)
        keys = self.W_key(x)
        values = self.W_value(x)
        # scale the queries instead of the scores, same thing
        queries = queries / keys.shape[-1] ** 0.5
        scores = torch.einsum("bqd,bkd->bqk", queries, keys)
        tri = self.tri[:num_tokens, :num_tokens].to(scores.dtype)
        highest = scores.masked_fill(tri == 0, float("-inf")).max(dim=-1, keepdim=True).values
        unnorm = (scores - highest).clamp(max=0).exp() * tri
        attn = unnorm / unnorm.sum(dim=-1, keepdim=True)
        print("attn", tuple(attn.shape))
        return torch.einsum("bqk,bkd->bqd", self.keep(attn), values)
