from typing import Optional, Union

import torch
from torch import Tensor

NEG_INF: float = -torch.inf


def causal_mask(T: int, device: Optional[Union[torch.device, str]] = None) -> Tensor:
    everything: Tensor = torch.ones((T, T), dtype=torch.bool, device=device)
    return torch.tril(everything)


def mask_scores(scores: Tensor, mask: Tensor) -> Tensor:
    hidden: Tensor = mask.logical_not()
    return scores.masked_fill(hidden, NEG_INF)


def causal_weights(scores: Tensor) -> Tensor:
    length: int = scores.shape[-2]
    allowed: Tensor = causal_mask(length, device=scores.device)
    return mask_scores(scores, allowed).softmax(dim=-1)
