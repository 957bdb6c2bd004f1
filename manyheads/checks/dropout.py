"""Recognise dropout by the answers to copies of the same tokens."""

from __future__ import annotations

import torch
from torch import Tensor

from .asserts import expect
from .runner import ImplementationModule

COPIES = 512
# Copies of a single token. Only for a single token does a mask of the batch's size fit the scores,
# and this costs copies³.
LONE_COPIES = 192


def copies_of(x: Tensor) -> Tensor:
    """Return (1, T, C) as (COPIES, T, C), and a single token as (LONE_COPIES, 1, C)."""
    return x.expand(LONE_COPIES if x.shape[1] == 1 else COPIES, *x.shape[1:]).contiguous()


def is_dropped(output: Tensor, again: Tensor, heads: int) -> bool:
    """Return whether dropout alone can explain the differences between copies of one token.

    A single token has one weight for each head. So in each copy each head is there or not, or each
    channel is there or 0. Noise would give every copy other numbers. Weights that are made anew in
    every call would give all copies the same numbers, and other numbers with another seed.

    Args:
        output: the output for `copies_of` one token, (copies, 1, C).
        again: the same at another seed.
        heads: the number of heads.
    """
    if output.shape != again.shape:
        return False
    rows, again_rows = (
        (tensor[:, 0] / output.abs().max().clamp_min(1e-30)).mul(1e4).round()
        for tensor in (output, again)
    )
    outcomes, channels = len(rows.unique(dim=0)), [column.unique() for column in rows.T]
    dropped = outcomes <= 2**heads or all(len(c) <= 2 and bool((c == 0).any()) for c in channels)
    return (
        outcomes > 1
        and dropped
        and all(bool(torch.isin(c, o).any()) for c, o in zip(channels, again_rows.T, strict=True))
    )


# At this rate dropout is active, but no number is ever dropped, so that the output can be recorded.
RARE = 1e-12


def expect_gradients_awake(module: ImplementationModule, x: Tensor) -> None:
    """Fail if no gradient can be computed in training mode with dropout.

    Args:
        module: with a cotangent, and with the dropout rate RARE.
        x: its input.
    """
    evidence = (
        "in training with dropout no gradient can be computed: what backward needs was changed in"
        " place"
    )
    expect("inplace operation" not in module.training()(x).message, evidence, "dropout_in_place")
