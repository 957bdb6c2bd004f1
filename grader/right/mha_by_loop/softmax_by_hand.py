import torch
from torch import nn


class Head(nn.Module):
    """A head of its own, for one use."""

    def __init__(self, head_dim):
        super().__init__()
        self.scale = head_dim**0.5
        self.drop = nn.Dropout(0.0)

    def forward(self, q, k, v):
        T = q.shape[1]
        scores = torch.matmul(q, k.swapaxes(-1, -2)).div(self.scale)
        seen = torch.tril(torch.ones(T, T, dtype=scores.dtype, device=q.device))
        e = torch.exp(scores - scores.detach().amax(dim=-1, keepdim=True)) * seen
        return self.drop(e / e.sum(dim=-1, keepdim=True)) @ v


def mha_by_loop(mha, x, verbose=False):
    C = x.shape[-1]
    heads = []
    for first in range(0, C, mha.head_dim):
        own = torch.arange(first, first + mha.head_dim)
        q, k, v = (x @ mha.qkv.weight[own + part * C].T for part in range(3))
        heads.append(Head(mha.head_dim)(q, k, v))
    joined = torch.stack(heads, dim=2).flatten(2)
    if verbose:
        print(joined.shape)
    return mha.proj(joined)
