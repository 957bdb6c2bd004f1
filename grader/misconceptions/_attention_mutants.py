"""Mutants that exercises with a fused projection have in common."""

from manyheads.checks import Mutant

from ._attention import CUTS, HEADS_LAST, MERGES, WRONG_AXES
from ._masking import INF
from ._module_edits import SIZES, on_a_device
from ._mutants import (
    FILLS_TRIED,
    LOW_FILLS,
    OF_HEADS,
    SCALES_TRIED,
    SUPER_INIT_LATE,
    variants,
    written_in,
)

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
    """Mutants of exercises 7 and 8 and of grouped queries, in the order of their lists."""

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

    OVER_AXES = (
        *variants("softmax_wrong_axis", softmax=AXES),
        Mutant("softmax_query_axis", variant={"softmax": "queries_by_hand"}),
        *variants("softmax_wrong_axis", softmax=("heads_as_numbers", "batch_as_numbers")),
    )
    WRONG_AXES_FINITE = (
        *variants("softmax_wrong_axis", softmax=("heads", "batch", "batch_and_heads"), mask=-1e9),
    )
    NO_SOFTMAX = (
        *variants(
            "softmax_missing", softmax=("missing", "missing_zero_filled", "sum_zero_filled", "sum")
        ),
        *variants("softmax_missing", softmax=("sum_of_sizes_zero_filled", "exp", "sigmoid")),
        *variants(
            "softmax_missing", softmax=("missing", "sum", "sigmoid"), mask=(0.0, -1e9, "missing")
        ),
        *variants(
            "softmax_missing", softmax=("norm_zero_filled", "tokens_zero_filled", "exp_shifted")
        ),
    )
    FILLED = (
        *variants("mask_zero_fill", mask=(1e-3, -1e-3, 0.01, -0.01, 0.1, -0.1)),
        *variants("mask_weak_fill", mask=(*WEAK, *added(*WEAK, -50.0))),
        *variants("mask_weak_fill", scaled=(..., "hidden"), mask=(*LOW_FILLS, *OF_HEADS)),
    )
    ADDED = (
        *variants("mask_added", mask=("add_seen", "add_hidden", ("reversed", "add_seen"))),
        *variants("mask_added", mask=("add_seen", "add_hidden"), scaled="hidden"),
        *variants("mask_weak_fill", mask=(*WEAK[:3], *added(*WEAK[:3])), scaled="hidden"),
    )
    NOT_SLICED = (
        Mutant("mask_not_sliced", variant={"holder": "rows_only", "mix": "einsum"}),
        Mutant("mask_not_sliced", variant={"holder": "whole_stretched"}),
        *variants("mask_not_sliced", holder="whole", mix="einsum", merge=(..., "flattened")),
    )
    WRONG_SIZES = (
        *variants(
            "size_wrong_axis", mix=(..., "einsum"), holder=("cut_to_batch", "made_for_heads")
        ),
        *variants(
            "size_wrong_axis",
            holder=("made_for_batch", "made_for_heads"),
            mix="einsum",
            merge="flattened",
        ),
        Mutant("size_wrong_axis", variant={"merge": "sizes_of_transposed"}),
    )
    ROUNDED = (
        *variants("scale_rounded", scale=("rounded_down", "rounded", "rounded_up")),
        *variants(
            "scale_rounded",
            scaled=(..., "hidden"),
            scores=("rounded_down", "rounded_down_without_gradient"),
        ),
    )
    WITH_THE_BATCH = variants(
        "qkv_mix_batch", cut=("batch_then_three", "batch_then_heads", "three_from_batch")
    )
    WRONG_CUTS = (
        *variants("qkv_mix_batch", cut=("three_outermost", "three_outermost_straight")),
        *variants(
            "reshape_out_of_order", cut=("three_before_tokens", "three_before_tokens_straight")
        ),
        *variants("reshape_out_of_order", cut=("heads_before_tokens", "heads_then_three")),
        *variants(
            "reshape_out_of_order",
            cut=("three_outermost_straight", "heads_before_tokens"),
            merge="straight",
        ),
    )
    HEADS_ASTRAY = (
        *variants("heads_mismatched", split=("reversed", "rolled"), split_of=("v", "q", "k", "qk")),
        *variants("heads_mix_batch", split=("batch_after_heads", "batch_swapped")),
        *variants("reshape_out_of_order", split="batch_and_tokens"),
        *variants(
            "heads_mix_batch",
            split=("batch_after_heads", ...),
            merge=("axes_(1, 2, 0, 3)", "heads_from_batch"),
        ),
        Mutant("heads_mix_batch", variant={"merge": "batch_viewed"}),
    )
    PACKED = (
        *variants(
            "qkv_packed_per_head",
            cut=("per_channel", "hd_first", "three_last_heads_innermost", "every_third_row"),
        ),
        *variants(
            "qkv_packed_per_head",
            cut=[cut for cut in CUTS if cut.startswith("per_head_") and len(cut) == 12],
        ),
        *variants("qkv_sliced_by_columns", cut=[cut for cut in CUTS if cut.startswith("columns")]),
        *variants(
            "weight_not_transposed", cut=[cut for cut in CUTS if cut.startswith("untransposed")]
        ),
    )
    STATE_KEPT = (
        *variants("state_kept", holder=("first_call", "first_call_cut")),
        *variants("state_kept", kept=("batch", "tokens")),
    )
    HARD_CODED = (
        *variants(
            "hard_coded_shape",
            fixed=written_in(nh=(4, 2, 8, 12, 6, 3), hd=(64, 16, 8, 4), B=(1, 2, 4, 8)),
        ),
        *variants("hard_coded_shape", fixed=written_in(T=(4, 6, 8, 10, 16), C=(64, 12, 768))),
        *variants("hard_coded_shape", fixed=[{"T": "block"}, {"B": 2, "T": 8, "C": 64, "nh": 4}]),
        *variants("hard_coded_device", holder="made_on_default_device"),
        *on_a_device(SIZES),
    )

    # for a fused projection and for grouped queries
    LIKELY = (
        Mutant("softmax_query_axis", variant={"softmax": "queries"}),
        Mutant("product_turned", variant={"softmax_of": "keys_by_queries"}),
        Mutant("mask_zero_fill", variant={"mask": 0.0}),
        Mutant("mask_after_softmax", variant={"mask": "after_softmax"}),
        Mutant("mask_reversed", variant={"mask": "inverted"}),
        Mutant("mask_excludes_self", variant={"mask": "excludes_self"}),
        Mutant("mask_peeks_one", variant={"mask": "peeks_one"}),
        *variants("mask_peeks_ahead", mask=("peeks_two", "peeks_three")),
        Mutant("view_not_contiguous", variant={"merge": "view"}),
        SUPER_INIT_LATE,
    )
    AXES_MASKED_OR_NOT = (
        *OVER_AXES,
        *variants("softmax_wrong_axis", softmax=("heads", "batch"), mask="missing"),
        *WRONG_AXES_FINITE,
    )
    HIDDEN = (
        *FILLED,
        Mutant("mask_plus_inf", variant={"mask": INF}),
        *variants("mask_high_fill", mask=(1e9, ("add", 1e9))),
        *variants(
            "mask_nan",
            mask=(
                "nan_product",
                "nan_factor",
                "nan_zero_factor",
                "after_softmax_inf",
                "after_softmax_inf_and_sum",
            ),
        ),
        Mutant("mask_after_softmax", variant={"mask": "after_softmax_low"}),
        *ADDED,
        Mutant("mask_not_sliced", variant={"holder": "whole"}),
        *NOT_SLICED,
        *variants("mask_not_moved", holder=("attribute", "kept_by_length")),
        *variants("mask_is_parameter", holder=("parameter", "float_parameter")),
        Mutant("context_unchecked", variant={"context": "open", "holder": "made_in_forward"}),
        Mutant("context_unchecked", variant={"context": "cut"}),
        *WRONG_SIZES,
    )


# parametric mutants: the number can have any value
ATTENTION_FAMILIES = (
    ("scale_constant", lambda c: {"scale": c}, SCALES_TRIED),
    ("mask_weak_fill", lambda c: {"mask": -c}, FILLS_TRIED),
    ("mask_weak_fill", lambda c: {"mask": ("add", -c)}, FILLS_TRIED),
    ("mask_weak_fill", lambda c: {"mask": ("below", c)}, FILLS_TRIED),
)
