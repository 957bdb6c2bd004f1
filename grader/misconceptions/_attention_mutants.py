"""Mutants that cross-attention shares with the steps of attention."""

from manyheads.checks import Mutant

from ._attention import HEADS_LAST, MERGES, WRONG_AXES
from ._mutants import FILLS_TRIED, SCALES_TRIED, variants

# Ways to split whose reshape has its axes in another order than the numbers; "straight" is the
# likeliest of all.
OUT_OF_ORDER = (
    "straight_hd_first",
    "swapped_first",
    "last_swapped",
    "wrong_swap",
    "moved_then_straight",
)
PARTS = ("v", "q", "k", "qk", "qv", "kv")
CONSTANTS = (0.125, 0.5, 0.25, 8.0, 64.0, 1 / 64, 1 / 3, 3**-0.5, 768**-0.5, 1 / 768)


def added(*numbers):
    """Return masks that add one of these numbers where they hide.

    −1 is left out, because it gives the same as a mask of ones, mask_added.
    """
    return [("add", number) for number in numbers if number != -1.0]


# The sweep of a parametric mutant covers all other fills. It lacks some of these, because its calls
# hardly tell them apart.
WEAK = (-10.0, -1.0, -5.0, -8.0, -9.0, -12.0, -13.0, -14.0, -15.0, -16.0, -20.0, -40.0)
AXES = ("heads", "batch", "square", "everything", "sequence", "head", "batch_and_heads")


class Runs:
    """Mutants of modules with several heads, in the order of their lists."""

    # for all modules with several heads
    HEADS = (
        *variants("merge_wrong_axes", merge=WRONG_AXES),
        *variants("heads_interleaved", split="interleaved", merge=(..., HEADS_LAST)),
        *variants("heads_one_width", merge=("mean", "sum")),
        *variants(
            "heads_averaged", merge=[merge for merge in MERGES if merge.startswith(("mean", "sum"))]
        ),
        *variants("heads_reversed", merge=("reversed", "rolled", "rolled_back")),
        *variants("view_not_contiguous", merge=("view_after_permute", "contiguous_too_early")),
        Mutant("proj_transposed", variant={"proj": "untransposed"}),
        Mutant("proj_twice", variant={"proj": "twice"}),
    )


# parametric mutants: the number can have any value
ATTENTION_FAMILIES = (
    ("scale_constant", lambda c: {"scale": c}, SCALES_TRIED),
    ("mask_weak_fill", lambda c: {"mask": -c}, FILLS_TRIED),
    ("mask_weak_fill", lambda c: {"mask": ("add", -c)}, FILLS_TRIED),
    ("mask_weak_fill", lambda c: {"mask": ("below", c)}, FILLS_TRIED),
)
