"""What dropout leaves behind in copies of the same tokens."""

import torch

from manyheads.checks import expect

COPIES = 512
# of one token: only there does a mask of the batch's size fit the scores, and it costs copies³
LONE_COPIES = 192


def copies_of(x):
    """(1, T, C) as (COPIES, T, C), and one token as (LONE_COPIES, 1, C)."""
    return x.expand(LONE_COPIES if x.shape[1] == 1 else COPIES, *x.shape[1:]).contiguous()


def is_dropped(output, again, heads):
    """Whether dropout alone can have made these differ: outputs of `copies_of` one token, (copies,
    1, C), at two seeds.

    A token alone has one weight a head, so each head is there or not; or each channel is there or
    0. Noise would give every copy numbers of its own. Weights made anew in every call would give
    all copies the same, and another seed others.
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


# a rate at which dropout acts, and no number is ever dropped: what it gives can be recorded
RARE = 1e-12


def expect_gradients_awake(module, x):
    """In training with dropout gradients can be computed. module: with a cotangent, and with this
    rate of dropout.
    """
    evidence = (
        "in training with dropout no gradient can be computed: what backward needs was changed in"
        " place"
    )
    expect("inplace operation" not in module.training()(x).message, evidence, "dropout_in_place")
