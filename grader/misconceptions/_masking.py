"""How masks and softmaxes go wrong."""

import math
from functools import lru_cache

import torch
import torch.nn.functional as F

INF = math.inf

# The keys that a query may see, from the usual mask, which is True for the present and the past.
VISIBLE = {
    "causal": lambda mask: mask,
    "all": lambda mask: torch.ones_like(mask),
    "inverted": lambda mask: ~mask,
    "reversed": lambda mask: mask.mT,  # the future, and the present
    "excludes_self": lambda mask: mask.tril(-1),
    "excludes_self_but_first": lambda mask: torch.cat([mask[:1], mask.tril(-1)[1:]]),
    "excludes_self_later": lambda mask: torch.cat([torch.ones_like(mask[:1]), mask.tril(-1)[1:]]),
    "peeks_one": lambda mask: torch.ones_like(mask).tril(1),
    "peeks_two": lambda mask: torch.ones_like(mask).tril(2),
    "peeks_three": lambda mask: torch.ones_like(mask).tril(3),
}

# Ways to hide scores, from the scores and a mask of the visible ones. `hidden` has other ways.
HIDE = {
    "missing": lambda scores, mask: scores + 0.0,
    "zero_row": lambda scores, mask: scores.masked_fill(~mask, -INF),
    "below_all": lambda scores, mask: torch.where(mask, scores, scores.min() - 1),
    "below_row": lambda scores, mask: torch.where(mask, scores, scores.amin(-1, keepdim=True) - 1),
    "below_head": lambda scores, mask: torch.where(
        mask, scores, scores.amin((0, -2, -1), keepdim=True) - 1
    ),
    "below_head_fixed": lambda scores, mask: torch.where(
        mask, scores, scores.detach().amin((0, -2, -1), keepdim=True) - 1
    ),
    "lowest": lambda scores, mask: torch.where(mask, scores, scores.min()),
    "minus_largest": lambda scores, mask: torch.where(mask, scores, -scores.abs().max() - 1),
    "add_seen": lambda scores, mask: scores + mask,
    "add_hidden": lambda scores, mask: scores + ~mask,
    "nan_product": lambda scores, mask: scores + (~mask).to(scores.dtype) * -INF,
    "nan_factor": lambda scores, mask: scores * torch.where(mask, 1.0, -INF).to(scores.dtype),
    "nan_zero_factor": lambda scores, mask: scores * torch.where(mask, 0.0, -INF).to(scores.dtype),
    "zero_twice": lambda scores, mask: scores.masked_fill(~mask, 0.0),
}

# changes of the weights after the softmax, for some ways of hiding
AFTER = {
    "zero_row": lambda weights, mask: weights.nan_to_num(0.0),
    "after_softmax": lambda weights, mask: weights.masked_fill(~mask, 0.0),
    "after_softmax_inf": lambda weights, mask: weights.masked_fill(~mask, -INF),
    "after_softmax_low": lambda weights, mask: weights.masked_fill(~mask, -1e9),
    "zero_twice": lambda weights, mask: weights * mask,
    "after_softmax_inf_and_sum": lambda weights, mask: SOFTMAX["sum"](
        weights.masked_fill(~mask, -INF)
    ),
}

# Scores to weights.
SOFTMAX = {
    "keys": lambda s: s.softmax(-1),
    "queries": lambda s: s.softmax(-2),
    "heads": lambda s: s.softmax(1),
    "batch": lambda s: s.softmax(0),
    "square": lambda s: s.flatten(-2).softmax(-1).view_as(s),
    "sequence": lambda s: s.flatten(1).softmax(-1).view_as(s),
    "everything": lambda s: s.flatten().softmax(0).view_as(s),
    "head": lambda s: (
        s.transpose(0, 1).flatten(1).softmax(-1).view_as(s.transpose(0, 1)).transpose(0, 1)
    ),
    "batch_and_heads": lambda s: s.flatten(0, 1).softmax(0).view_as(s),
    "queries_by_hand": lambda s: (
        (e := (s - s.amax(-1, keepdim=True)).exp()) / e.sum(-2, keepdim=True)
    ),
    "missing": lambda s: s,
    "missing_zero_filled": lambda s: s.masked_fill(s == -INF, 0.0),
    "sum": lambda s: s / s.sum(-1, keepdim=True),
    "sum_zero_filled": lambda s: SOFTMAX["sum"](SOFTMAX["missing_zero_filled"](s)),
    "sum_of_sizes": lambda s: s / s.abs().sum(-1, keepdim=True),
    "sum_of_sizes_zero_filled": lambda s: SOFTMAX["sum_of_sizes"](
        SOFTMAX["missing_zero_filled"](s)
    ),
    "norm_zero_filled": lambda s: F.normalize(SOFTMAX["missing_zero_filled"](s), dim=-1),
    "tokens_zero_filled": lambda s: SOFTMAX["tokens"](SOFTMAX["missing_zero_filled"](s)),
    "tokens": lambda s: s / s.shape[-1],
    "exp": lambda s: s.exp(),
    "exp_shifted": lambda s: (s - s.amax(-1, keepdim=True)).exp(),
    "sigmoid": lambda s: s.sigmoid(),
    "as_numbers": lambda s: s.softmax(-1).nan_to_num(0.0),
    "heads_as_numbers": lambda s: s.softmax(1).nan_to_num(0.0),
    "batch_as_numbers": lambda s: s.softmax(0).nan_to_num(0.0),
    "queries_as_numbers": lambda s: s.softmax(-2).nan_to_num(0.0),
}


def lower(n, device=None):
    """Return the usual mask, (n, n)."""
    return _lower(n, device).clone()


@lru_cache(maxsize=64)  # for GPT-2 it takes a millisecond
def _lower(n, device):
    return torch.ones(n, n, dtype=torch.bool, device=device).tril()


def of_mask(mask):
    """Return which keys may be seen, and how the rest is hidden.

    `mask` is a pair of both, or one of the two alone.
    """
    if isinstance(mask, tuple) and mask[0] in VISIBLE:
        return mask
    return (mask, -INF) if mask in VISIBLE else ("causal", mask)


def hidden(scores, mask, how):
    """Return the scores with those hidden that may not be seen.

    Args:
        mask: True at the scores that may be seen, or None without a mask.
        how: a number to fill in, ("add", a number), ("below", a number below the smallest score),
            or a name of HIDE. A name of AFTER alone leaves the scores as they are.
    """
    if mask is None or (how in AFTER and how not in HIDE):
        return scores
    if isinstance(how, tuple) and how[0] == "below":
        return scores.masked_fill(~mask, float(scores.detach().min()) - how[1])
    if isinstance(how, tuple):
        return scores + (~mask).to(scores.dtype) * how[1]
    return HIDE[how](scores, mask) if isinstance(how, str) else scores.masked_fill(~mask, how)


def weighed(scores, mask, how, softmax, softmaxes=SOFTMAX):
    """Return the weights from hidden scores.

    Args:
        softmax: an axis, or a name of `softmaxes`.
    """
    weights = scores.softmax(softmax) if isinstance(softmax, int) else softmaxes[softmax](scores)
    return weights if mask is None or how not in AFTER else AFTER[how](weights, mask)
