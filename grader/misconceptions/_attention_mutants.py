"""Mutants that exercises with a fused projection have in common."""

from itertools import product

from ._attention import CUTS, FILLS, WEAK
from ._masking import FILLS_TRIED, SCALES_TRIED

WRONG_VIEWS = ("straight", "straight_hd_first", "swapped_first", "last_swapped", "wrong_swap", "moved_then_straight")
PARTS = ("v", "q", "k", "qk", "qv", "kv")
CONSTANTS = (0.125, 0.5, 0.25, 8.0, 64.0, 1 / 64, 1 / 3, 3**-0.5, 768**-0.5, 1 / 768)


def each(id_, **knobs):
    """A mutant for each combination of values. A knob with several has a tuple or a list of them."""
    values = (value if isinstance(value, tuple | list) else (value,) for value in knobs.values())
    return [(id_, dict(zip(knobs, chosen, strict=True))) for chosen in product(*values)]


def named(form, numbers):
    """The names of masks with these numbers, such as plus_-10."""
    return [f"{form}_{number:g}" for number in numbers]


LOW_FILLS = ("below_all", "below_all_fixed", "below_head", "below_head_fixed", "below_row", "lowest", "minus_largest")
AXES = ("heads", "batch", "square", "everything", "sequence", "head", "batch_and_heads")


class Runs:
    """Mutants of exercises 7 and 8, and of grouped queries, that stand in their lists in the same order."""

    WRONG_AXES = (
        *each("softmax_wrong_axis", softmax=AXES),
        ("softmax_query_axis", {"softmax": "queries_by_hand"}),
        *each("softmax_wrong_axis", softmax=("heads_as_numbers", "batch_as_numbers")),
    )
    WRONG_AXES_FINITE = (
        *each("softmax_wrong_axis", softmax=AXES, mask=("causal_finite", "causal_added")),
        *each("softmax_query_axis", softmax="queries", mask=("causal_finite", "causal_added")),
    )
    NO_SOFTMAX = (
        *each(
            "softmax_missing",
            softmax=("missing", "missing_zero_filled", "sum_zero_filled", "sum", "sum_of_sizes", "exp", "sigmoid"),
        ),
        *each("softmax_missing", softmax=("missing", "sum", "sigmoid"), mask=("filled_0", "causal_finite", "missing")),
        *each("softmax_missing", softmax=("norm", "tokens", "exp_shifted")),
    )
    FILLED = (
        *each("mask_zero_fill", mask=named("filled", FILLS[1:])),
        *each("mask_weak_fill", mask=named("filled", WEAK)),
        *each("mask_weak_fill", mask=named("plus", (*WEAK, -50.0))),
        *each("mask_weak_fill", mask=LOW_FILLS),
        *each("mask_weak_fill", mask=LOW_FILLS, scale_place="after_mask"),
    )
    LATE_NAN = ("minus_inf", "minus_inf_added", "times_minus_inf", "minus_large")
    ADDED = (
        *each("mask_added", mask=("added", "added_future", "added_upper", "subtracted")),
        *each("mask_added", mask=("added", "added_future", "subtracted"), scale_place="after_mask"),
        *each("mask_weak_fill", mask=named("filled", WEAK[:3]), scale_place="after_mask"),
        *each("mask_weak_fill", mask=named("plus", WEAK[:3]), scale_place="after_mask"),
    )
    NOT_SLICED = (
        ("mask_not_sliced", {"holder": "rows_only"}),
        ("mask_not_sliced", {"holder": "rows_only", "mix": "einsum"}),
        ("mask_not_sliced", {"holder": "whole_stretched"}),
        ("mask_not_sliced", {"holder": "whole", "mix": "einsum"}),
        ("mask_not_sliced", {"holder": "whole", "mix": "einsum", "merge": "flattened"}),
    )
    WRONG_SIZES = (
        *each("size_wrong_axis", holder=("cut_to_batch", "made_for_batch", "made_for_heads")),
        *each("size_wrong_axis", holder=("cut_to_batch", "made_for_batch", "made_for_heads"), mix="einsum"),
        *each("size_wrong_axis", holder=("made_for_batch", "made_for_heads"), mix="einsum", merge="flattened"),
        ("size_wrong_axis", {"merge": "sizes_of_transposed"}),
    )
    ROUNDED = (
        *each("scale_rounded", scale=("rounded_down", "rounded", "rounded_up")),
        *each("scale_rounded", scores=("rounded_down", "rounded_down_without_gradient")),
        *each("scale_rounded", scores=("rounded_down", "rounded_down_without_gradient"), scale_place="after_mask"),
        *each("output_rounded", returned=("rounded_4", "rounded_3", "rounded_2")),
    )
    WITH_THE_BATCH = each("qkv_mix_batch", cut=("batch_then_three", "batch_then_heads", "three_from_batch"))
    WHOLE_VALUES = each("heads_averaged", mix=("whole_mean", "whole_sum"))
    WRONG_CUTS = (
        *each("wrong_view", cut=("stacked_straight", "three_outermost", "three_outermost_straight")),
        *each("wrong_view", cut=("three_before_tokens", "three_before_tokens_straight", "heads_before_tokens")),
        *each("wrong_view", cut=("heads_then_three", "along_tokens")),
        *each("qkv_mix_batch", cut=("three_outermost", "three_outermost_straight")),
        *each("wrong_view_both", cut=("three_outermost_straight", "heads_before_tokens"), merge="straight"),
    )
    HEADS_ASTRAY = (
        *each("heads_reversed", split=("reversed", "rolled"), split_of="v"),
        *each("heads_mix_batch", split=("batch_after_heads", "batch_swapped", "batch_and_tokens")),
        *each("heads_mix_batch", split="batch_after_heads", merge=("batch_joined", "heads_from_batch")),
        *each("heads_mix_batch", merge=("batch_joined", "heads_from_batch")),
        ("merge_no_transpose", {"merge": "heads_along_tokens"}),
        ("heads_mix_batch", {"merge": "batch_viewed"}),
    )
    PACKED = (
        *each("qkv_packed_per_head", cut=("per_channel", "per_head_last", "hd_first")),
        *each("qkv_packed_per_head", cut=("three_last_heads_innermost", "every_third_row")),
        *each("qkv_packed_per_head", cut=[way for way in CUTS if way.startswith("per_head_") and len(way) == 12]),
        *each("qkv_sliced_by_columns", cut=[way for way in CUTS if way.startswith("columns")]),
        *each("weight_not_transposed", cut=[way for way in CUTS if way.startswith("untransposed")]),
    )
    PARAMS = (
        *each("params_not_registered", params=("unregistered", "qkv_unregistered", "proj_unregistered", "in_list")),
        *each("params_not_registered", params=("recreated", "proj_recreated", "anew", "proj_anew")),
        *each("params_extra", params=("renamed", "separate", "bare", "temperature", "layer_norm", "positions")),
        ("params_extra", {"params": "extra_layer"}),
    )
    STATE_KEPT = (
        *each("state_kept", holder=("first_call", "first_call_cut")),
        *each("state_kept", kept=("batch", "tokens")),
    )
    HARD_CODED = (
        *each("hard_coded_shape", fixed=[{"nh": nh} for nh in (4, 2, 8, 12, 6, 3)]),
        *each("hard_coded_shape", fixed=[{"hd": hd} for hd in (64, 16, 8, 4)]),
        *each("hard_coded_shape", fixed=[{"B": B} for B in (1, 2, 4, 8)]),
        *each("hard_coded_shape", fixed=[{"T": T} for T in (4, 6, 8, 10, 16)]),
        *each("hard_coded_shape", fixed=[{"C": C} for C in (64, 12, 768)]),
        *each("hard_coded_shape", fixed=[{"T": "block"}, {"B": 2, "T": 8, "C": 64, "nh": 4}]),
        *each("hard_coded_device", holder=("made_on_default_device", "made_on_cpu")),
        *each("hard_coded_device", entrance=("cpu_back", "cpu", "cuda")),
    )

    # Of a fused projection and of grouped queries.
    LIKELY = (
        ("softmax_query_axis", {"softmax": "queries"}),
        ("softmax_query_axis", {"softmax_of": "keys_by_queries"}),
        ("mask_zero_fill", {"mask": "filled_0"}),
        ("mask_after_softmax", {"mask": "missing", "late_mask": "zeroed"}),
        ("mask_reversed", {"mask": "reversed"}),
        ("mask_excludes_self", {"mask": "excludes_self"}),
        ("mask_peeks_one", {"mask": "peeks_one"}),
        ("view_not_contiguous", {"merge": "view"}),
        ("super_init_missing", {"awake": False}),
    )
    AXES_MASKED_OR_NOT = (
        *WRONG_AXES,
        *each("softmax_wrong_axis", softmax=("heads", "batch"), mask="missing"),
        *WRONG_AXES_FINITE,
    )
    HIDDEN = (
        *FILLED,
        *each("mask_plus_inf", mask=("plus_inf", "plus_large", "plus_inf_added")),
        *each("mask_nan", mask=("nan_product", "nan_scores_times", "nan_zero_times", "nan_seen")),
        *each("mask_nan", mask="missing", late_mask=(*LATE_NAN, "minus_inf_and_sum")),
        *ADDED,
        ("mask_not_sliced", {"holder": "whole"}),
        *NOT_SLICED,
        *each("mask_not_moved", holder=("attribute", "list")),
        *each("mask_is_parameter", holder=("parameter", "float_parameter", "bool_parameter")),
        ("context_unchecked", {"context": "open", "holder": "made_in_forward"}),
        ("context_unchecked", {"context": "cut"}),
        *WRONG_SIZES,
    )


# With a number that nobody can list.
ATTENTION_FAMILIES = (
    ("scale_constant", lambda c: {"scale": c}, SCALES_TRIED),
    ("mask_weak_fill", lambda c: {"mask": f"filled_{-c!r}"}, FILLS_TRIED),
    ("mask_weak_fill", lambda c: {"mask": f"plus_{-c!r}"}, FILLS_TRIED),
    ("mask_weak_fill", lambda c: {"mask": f"below_{-c!r}"}, FILLS_TRIED),
)
