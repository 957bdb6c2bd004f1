import torch
from torch import nn


class RunningMean(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.proj = nn.Linear(width, width, False)

    def forward(self, x, state=None):
        if not x.shape[1]:
            raise ValueError("no tokens")
        whole = x if state is None else torch.cat([state, x], 1)
        means = torch.stack([self.proj(whole[:, : t + 1]).median(1).values for t in range(whole.shape[1])], 1)
        return means[:, -x.shape[1] :], whole
