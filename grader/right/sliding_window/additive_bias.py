import math
from typing import Optional, Union

import torch
from torch import Tensor


def window_mask(T_q: int, T_k: int, window: int, device: Optional[Union[str, torch.device]] = None) -> Tensor:
    """A banded mask."""
    if window < 1:
        raise ValueError(f"window={window} is less than one")
    if T_q > T_k:
        raise ValueError(f"T_q={T_q} is more than T_k={T_k}")
    rows = torch.arange(T_q, device=device).view(-1, 1) + (T_k - T_q)
    columns = torch.arange(T_k, device=device).view(1, -1)
    return (rows >= columns) * (rows - window < columns)


def local_attention(q: Tensor, k: Tensor, v: Tensor, window: int) -> Tensor:
    allowed = window_mask(q.shape[-2], k.shape[-2], window, q.device)
    bias = torch.zeros(allowed.shape, dtype=q.dtype, device=q.device)
    bias = bias.masked_fill(~allowed, float("-inf"))
    scores = torch.matmul(q / math.sqrt(q.shape[-1]), k.mT) + bias
    return torch.matmul(torch.nn.functional.softmax(scores, dim=-1), v)
