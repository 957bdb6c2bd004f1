from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Seen:
    tokens: torch.Tensor


class RunningMean(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.proj = nn.Linear(width, width, False)

    def forward(self, x, state=None):
        assert x.shape[1], "no tokens"
        whole = x if state is None else torch.cat([state.tokens, x], 1)
        means = torch.stack([self.proj(whole[:, : t + 1]).mean(1) for t in range(whole.shape[1])], 1)
        return [means[:, -x.shape[1] :], Seen(whole)]
