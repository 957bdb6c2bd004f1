"""How the scale of the scores goes wrong."""

import math

import torch

from manyheads.checks import Mutant

# The factors of q kᵀ, from the sizes s. A number stands for itself.
SCALES = {
    "sqrt_hd": lambda s: s.hd**-0.5,
    "sqrt_c": lambda s: s.C**-0.5,
    "c": lambda s: 1 / s.C,
    "missing": lambda s: 1.0,
    "hd": lambda s: 1 / s.hd,
    "times_sqrt_hd": lambda s: s.hd**0.5,
    "times_hd": lambda s: float(s.hd),
    "times_c": lambda s: float(s.C),
    "sqrt_heads": lambda s: s.nh**-0.5,
    "heads": lambda s: 1 / s.nh,
    "sqrt_tokens": lambda s: s.T**-0.5,
    "tokens": lambda s: 1 / s.T,
    "sqrt_keys": lambda s: s.T_k**-0.5,
    "block": lambda s: 1 / s.block,
    "sqrt_block": lambda s: s.block**-0.5,
    "sqrt_d_query": lambda s: s.d_query**-0.5,
    "sqrt_d_context": lambda s: s.d_context**-0.5,
    "sqrt_sets": lambda s: s.nkv**-0.5,
    "sqrt_group": lambda s: (s.nh // s.nkv) ** -0.5,
    "sqrt_kv_width": lambda s: (s.nkv * s.hd) ** -0.5,
    "sqrt_c_over_sets": lambda s: (s.C / s.nkv) ** -0.5,
    "sqrt_3c": lambda s: (3 * s.C) ** -0.5,
    "three_times": lambda s: s.hd**-1.5,
    "sqrt_c_and_hd": lambda s: (s.C * s.hd) ** -0.5,
    "sqrt_batch": lambda s: s.B**-0.5,
    "sqrt_batch_and_heads": lambda s: (s.B * s.nh) ** -0.5,
    "rounded_down": lambda s: 1 / math.floor(math.sqrt(s.hd)),
    "rounded": lambda s: 1 / round(math.sqrt(s.hd)),
    "rounded_up": lambda s: 1 / math.ceil(math.sqrt(s.hd)),
    # the results of missing brackets
    "half_of_one_over_hd": lambda s: 1 / s.hd / 2,  # / hd ** 1 / 2
    "one_over_half_hd": lambda s: 2 / s.hd,  # / (hd ** 1 / 2)
    "one_over_half_hd_floored": lambda s: 1 / max(s.hd // 2, 1),
    "times_half_hd": lambda s: s.hd / 2,  # * hd ** 1 / 2
    "c_over_root_nh": lambda s: s.nh**0.5 / s.C,  # / (C / nh ** 0.5)
    "c_over_root_nh_floored": lambda s: 1 / (s.C // s.nh**0.5),
    "root_of_c_over_root_nh": lambda s: (s.C // s.nh**0.5) ** -0.5,
}
PRECEDENCE_OF_HD = (
    "half_of_one_over_hd",
    "one_over_half_hd",
    "one_over_half_hd_floored",
    "times_half_hd",
)
PRECEDENCE = (
    *PRECEDENCE_OF_HD,
    "c_over_root_nh",
    "c_over_root_nh_floored",
    "root_of_c_over_root_nh",
)

# The misconception behind each way to get the scale wrong.
_SCALED = {
    "missing": "missing",
    "no_sqrt": "hd",
    "c": "c",
    "twice": "three_times",
    "multiplied": "times_sqrt_hd times_hd times_c",
    "sqrt_c": "sqrt_c sqrt_3c sqrt_kv_width sqrt_c_over_sets sqrt_d_query sqrt_d_context",
    "sqrt_heads": "sqrt_heads sqrt_sets sqrt_group",
    "heads": "heads",
    "sqrt_tokens": "sqrt_tokens sqrt_block sqrt_keys",
    "tokens": "tokens block",
    "wrong_axis": "sqrt_batch sqrt_batch_and_heads",
    "rounded": "rounded_down rounded rounded_up",
    "precedence": " ".join(PRECEDENCE),
}
SCALE_IDS = {
    scale_name: f"scale_{suffix}"
    for suffix, scale_names in _SCALED.items()
    for scale_name in scale_names.split()
}

# ways to round the scores after they are scaled
ROUNDED_SCORES = {
    "no": lambda scores: scores,
    "rounded_down": lambda scores: torch.div(scores, 1, rounding_mode="floor"),
    "rounded_down_without_gradient": lambda scores: scores // 1,
}


def factor(scale, sizes):
    """Return the number that q kᵀ is multiplied by."""
    return SCALES[scale](sizes) if isinstance(scale, str) else scale


def scales(*names):
    """Return a mutant for each of these scales, with the misconception behind it."""
    return tuple(Mutant(SCALE_IDS[name], variant={"scale": name}) for name in names)
