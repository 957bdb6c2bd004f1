import torch


class MultiHeadAttention(torch.nn.Module):
    # heads and batch folded together, (B*nh, T, hd), so that everything is a plain bmm

    def __init__(self, d_in, d_out, context_length, num_heads, dropout=0.0, qkv_bias=False):
        torch.nn.Module.__init__(self)
        if d_out != (d_out // num_heads) * num_heads:
            raise ValueError(f"num_heads={num_heads} does not divide d_out={d_out}")
        self.H = num_heads
        self.D = d_out // num_heads
        self.N = context_length
        self.W_query = torch.nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = torch.nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = torch.nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = torch.nn.Linear(d_out, d_out)
        self.dropout = torch.nn.Dropout(p=dropout)
        neg = torch.zeros(context_length, context_length)
        i, j = torch.triu_indices(context_length, context_length, offset=1)
        neg[i, j] = float("-inf")
        self.register_buffer("neg", neg, persistent=False)

    def fold(self, t):
        B, T, _ = t.shape
        t = t.view(B, T, self.H, self.D)
        t = t.permute(0, 2, 1, 3)
        return t.reshape(B * self.H, T, self.D)

    def unfold(self, t, B):
        _, T, _ = t.shape
        t = t.reshape(B, self.H, T, self.D)
        t = t.permute(0, 2, 1, 3)
        return t.reshape(B, T, self.H * self.D)

    def forward(self, x):
        B, T = x.shape[0], x.shape[1]
        if T > self.N:
            raise ValueError(f"T={T} is more than context_length={self.N}")
        q = self.fold(self.W_query(x))
        k = self.fold(self.W_key(x))
        v = self.fold(self.W_value(x))
        neg = self.neg[:T, :T].to(q.dtype).expand(B * self.H, T, T)
        s = torch.baddbmm(neg, q, k.transpose(1, 2), beta=1.0, alpha=self.D ** -0.5)
        w = s.softmax(dim=2)
        w = self.dropout(w)
        o = w.bmm(v)
        o = self.unfold(o, B)
        return self.out_proj(o)
