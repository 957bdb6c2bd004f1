"""What dropout leaves behind in copies of the same tokens."""

COPIES = 512


def copies_of(x):
    """(1, T, C) as (COPIES, T, C)."""
    return x.expand(COPIES, *x.shape[1:]).contiguous()


def is_dropped(output, heads):
    """Whether dropout alone can have made these differ: the output of `copies_of` one token, (COPIES, 1, C).

    A token alone has one weight a head, so each head is there or not; or each channel is there or 0. Noise would give
    every copy numbers of its own, and weights made anew in every call would give all copies the same.
    """
    rows = (output[:, 0] / output.abs().max().clamp_min(1e-30)).mul(1e4).round()
    kinds = len(rows.unique(dim=0))
    channels = [column.unique() for column in rows.T]
    return kinds > 1 and (kinds <= 2**heads or all(len(c) <= 2 and bool((c == 0).any()) for c in channels))
