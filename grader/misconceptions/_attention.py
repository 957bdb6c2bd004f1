"""The steps of attention, each with the wrong ways to do it."""

from itertools import permutations

import torch
import torch.nn.functional as F

# (B, T, C) to (B, nh, T, hd).
SPLITS = {
    "heads": lambda t, s: t.view(s.B, s.T, s.nh, s.hd).transpose(1, 2),
    "straight": lambda t, s: t.reshape(s.B, s.nh, s.T, s.hd),
    "straight_hd_first": lambda t, s: t.reshape(s.B, s.nh, s.hd, s.T).transpose(2, 3),
    "interleaved": lambda t, s: t.view(s.B, s.T, s.hd, s.nh).permute(0, 3, 1, 2),
    "sizes_swapped": lambda t, s: t.view(s.B, s.T, s.hd, s.nh).transpose(1, 2),
    "swapped_first": lambda t, s: t.transpose(1, 2).reshape(s.B, s.nh, s.T, s.hd),
    "last_swapped": lambda t, s: (
        t.view(s.B, s.T, s.nh, s.hd).transpose(2, 3).reshape(s.B, s.nh, s.T, s.hd)
    ),
    "wrong_swap": lambda t, s: (
        t.view(s.B, s.T, s.nh, s.hd).transpose(1, 3).reshape(s.B, s.nh, s.T, s.hd)
    ),
    "moved_then_straight": lambda t, s: (
        SPLITS["heads"](t, s).reshape(s.B, s.T, s.nh, s.hd).transpose(1, 2)
    ),
    "batch_after_heads": lambda t, s: t.reshape(s.nh, s.B, s.T, s.hd).transpose(0, 1),
    "batch_swapped": lambda t, s: (
        t.view(s.B, s.T, s.nh, s.hd).permute(2, 0, 1, 3).reshape(s.B, s.nh, s.T, s.hd)
    ),
    "batch_and_tokens": lambda t, s: t.reshape(s.T, s.B, s.nh, s.hd).permute(1, 2, 0, 3),
    "reversed": lambda t, s: t.view(s.B, s.T, s.nh, s.hd).transpose(1, 2).flip(1),
    "rolled": lambda t, s: t.view(s.B, s.T, s.nh, s.hd).transpose(1, 2).roll(1, 1),
}

# (B, nh, T, hd) to (B, T, C).
MERGES = {
    "heads": lambda y, s: y.transpose(1, 2).reshape(s.B, s.T, s.C),
    "flattened": lambda y, s: y.transpose(1, 2).flatten(2),
    "straight": lambda y, s: y.reshape(s.B, s.T, s.C),
    "view": lambda y, s: y.transpose(1, 2).view(s.B, s.T, s.C),
    "view_after_permute": lambda y, s: y.permute(0, 2, 3, 1).view(s.B, s.T, s.C),
    "contiguous_too_early": lambda y, s: y.contiguous().transpose(1, 2).view(s.B, s.T, s.C),
    "mean": lambda y, s: y.mean(1),
    "sum": lambda y, s: y.sum(1),
    "mean_repeated": lambda y, s: y.mean(1).repeat(1, 1, s.nh),
    "sum_repeated": lambda y, s: y.sum(1).repeat(1, 1, s.nh),
    "mean_interleaved": lambda y, s: y.mean(1).repeat_interleave(s.nh, -1),
    "sum_interleaved": lambda y, s: y.sum(1).repeat_interleave(s.nh, -1),
    "mean_padded": lambda y, s: F.pad(y.mean(1), (0, s.C - s.hd)),
    "sum_padded": lambda y, s: F.pad(y.sum(1), (0, s.C - s.hd)),
    "reversed": lambda y, s: MERGES["heads"](y.flip(1), s),
    "rolled": lambda y, s: MERGES["heads"](y.roll(1, 1), s),
    "rolled_back": lambda y, s: MERGES["heads"](y.roll(-1, 1), s),
    "sizes_of_transposed": lambda y, s: y.transpose(1, 2).reshape(s.B, s.nh, s.T * s.hd),
    "batch_viewed": lambda y, s: (
        y.reshape(s.nh, s.B, s.T, s.hd).permute(1, 2, 0, 3).reshape(s.B, s.T, s.C)
    ),
    "heads_from_batch": lambda y, s: MERGES["heads"](
        y.transpose(0, 1).reshape(s.B, s.nh, s.T, s.hd), s
    ),
}
MERGES |= {
    f"axes_{order}": lambda y, s, order=order: y.permute(order).reshape(s.B, s.T, s.C)
    for order in permutations(range(4))
}
WRONG_AXES = [f"axes_{(0, *order)}" for order in ((1, 3, 2), (2, 3, 1), (3, 1, 2), (3, 2, 1))]
HEADS_LAST = "axes_(0, 2, 3, 1)"


# Sources of queries, keys and values, (q, k, v, x in heads) -> (q, k, v).
SOURCES = {
    "own": lambda q, k, v, x: (q, k, v),
    "v_is_k": lambda q, k, v, x: (q, k, k),
    "v_is_x": lambda q, k, v, x: (q, k, x),
    "v_is_q": lambda q, k, v, x: (q, k, q),
}


def mix_all_heads(w, v):
    """Return every head's mix of the values of all heads side by side: (B, nh, T, C)."""
    return w @ v.transpose(1, 2).flatten(2)[:, None]


# From weights and values to the answer of each head. The first two are the same, until a size is 1
# by mistake.
MIXES = {
    "matmul": lambda w, v: w @ v,
    "einsum": lambda w, v: torch.einsum("bhqk,bhkd->bhqd", w, v),
    "whole_mean": lambda w, v: (
        mix_all_heads(w, v).mean(1).unflatten(-1, v.shape[1::2]).transpose(1, 2)
    ),
    "whole_sum": lambda w, v: (
        mix_all_heads(w, v).sum(1).unflatten(-1, v.shape[1::2]).transpose(1, 2)
    ),
}
