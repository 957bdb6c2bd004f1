import functools
import sys
import warnings

import torch

LONGEST = 1024
_BIG = torch.tril(torch.ones(LONGEST, LONGEST, dtype=torch.bool))


@functools.lru_cache(maxsize=8)
def _big(device):
    warnings.warn(f"building the mask on {device}", stacklevel=2)
    return _BIG.to(device)


def causal_mask(T, device=None):
    if T > LONGEST:
        raise ValueError(f"T = {T} is longer than {LONGEST}")
    return _big(device or "cpu")[:T, :T]


def mask_scores(scores, mask):
    print("masking", tuple(scores.shape), file=sys.stderr)
    return torch.masked_fill(scores, torch.logical_not(mask), -float("inf"))


def causal_weights(scores):
    mask = causal_mask(scores.shape[-1], scores.device)
    return torch.softmax(mask_scores(scores, mask), dim=-1)
