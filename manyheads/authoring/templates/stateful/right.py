import torch
from torch import nn


class @@class(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.proj = nn.Linear(width, width, bias=False)

    def forward(self, x, state=None):
        # FILL: a right attempt in another technique; the more of them, the fairer
        whole = x if state is None else torch.cat([state["seen"], x], 1)
        return self.proj(whole.cumsum(1)[:, -x.shape[1] :]), {"seen": whole}
