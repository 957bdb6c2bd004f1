from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, d_query, d_context, d_out, num_heads):
        super().__init__()
        self.W_query = nn.Linear(d_query, d_out, bias=False)
        self.W_key = nn.Linear(d_context, d_out, bias=False
