"""The wrong ways to do the reshape dance."""

import torch
from einops import rearrange

from ._masking import each, known
from ._scores import ANSWERS, CASTS, DEVICES

# Ways to split: (x, B, T, nh, hd) -> heads. The first is right.
SPLITS = {
    "right": lambda x, B, T, nh, hd: x.view(B, T, nh, hd).transpose(1, 2),
    "straight": lambda x, B, T, nh, hd: x.view(B, nh, T, hd),
    "straight_hd_first": lambda x, B, T, nh, hd: x.view(B, nh, hd, T).transpose(2, 3),
    "straight_then_swapped": lambda x, B, T, nh, hd: x.view(B, nh, T, hd).transpose(1, 2),
    "straight_after_swap": lambda x, B, T, nh, hd: x.transpose(1, 2).reshape(B, nh, T, hd),
    "swapped_then_straight": lambda x, B, T, nh, hd: x.view(B, T, nh, hd).transpose(1, 3).reshape(B, nh, T, hd),
    "hd_moved_then_straight": lambda x, B, T, nh, hd: x.view(B, T, nh, hd).permute(0, 2, 3, 1).reshape(B, nh, T, hd),
    "last_swapped_then_straight": lambda x, B, T, nh, hd: x.view(B, T, nh, hd).transpose(2, 3).reshape(B, nh, T, hd),
    "straight_heads_in_batch": lambda x, B, T, nh, hd: x.view(B * nh, T, hd),
    "heads_left_behind": lambda x, B, T, nh, hd: x.view(B, T, nh, hd),
    "interleaved": lambda x, B, T, nh, hd: x.view(B, T, hd, nh).permute(0, 3, 1, 2),
    "interleaved_left_behind": lambda x, B, T, nh, hd: x.view(B, T, hd, nh).transpose(2, 3),
    "interleaved_hd_first": lambda x, B, T, nh, hd: x.view(B, T, hd, nh).transpose(1, 3),
    "sizes_swapped": lambda x, B, T, nh, hd: x.view(B, T, hd, nh).transpose(1, 2),
    "heads_before_batch": lambda x, B, T, nh, hd: x.view(nh, B, T, hd).transpose(0, 1),
    "heads_before_batch_left": lambda x, B, T, nh, hd: x.view(nh, B, T, hd),
    "heads_stacked_first": lambda x, B, T, nh, hd: torch.stack(x.chunk(nh, dim=-1)),
    "heads_stacked_first_viewed": lambda x, B, T, nh, hd: torch.stack(x.chunk(nh, dim=-1)).view(B, nh, T, hd),
    "heads_in_batch": lambda x, B, T, nh, hd: x.view(B, T, nh, hd).transpose(1, 2).reshape(B * nh, T, hd),
    "batch_swapped": lambda x, B, T, nh, hd: x.view(B, T, nh, hd).permute(2, 0, 1, 3),
    "batch_swapped_viewed": lambda x, B, T, nh, hd: x.view(B, T, nh, hd).permute(2, 0, 1, 3).reshape(B, nh, T, hd),
    "batch_and_positions": lambda x, B, T, nh, hd: x.view(T, B, nh, hd).permute(1, 2, 0, 3),
    "reversed": lambda x, B, T, nh, hd: x.view(B, T, nh, hd).transpose(1, 2).flip(1),
    "rolled": lambda x, B, T, nh, hd: x.view(B, T, nh, hd).transpose(1, 2).roll(1, 1),
    "rolled_back": lambda x, B, T, nh, hd: x.view(B, T, nh, hd).transpose(1, 2).roll(-1, 1),
    "viewed_after_swap": lambda x, B, T, nh, hd: x.transpose(1, 2).view(B, nh, T, hd),
    "viewed_in_batch": lambda x, B, T, nh, hd: x.view(B, T, nh, hd).transpose(1, 2).view(B * nh, T, hd),
}

# Ways to merge: (y, B, T, nh, hd) -> x. Those that only move axes and join stand in `_join`.
MERGES = {
    "right": lambda y, B, T, nh, hd: y.transpose(1, 2).contiguous().view(B, T, nh * hd),
    "sizes_of_transposed": lambda y, B, T, nh, hd: y.transpose(1, 2).reshape(B, nh, T * hd),
    "mean": lambda y, B, T, nh, hd: y.mean(dim=1),
    "sum": lambda y, B, T, nh, hd: y.sum(dim=1),
    "mean_repeated": lambda y, B, T, nh, hd: y.mean(dim=1).repeat(1, 1, nh),
    "sum_repeated": lambda y, B, T, nh, hd: y.sum(dim=1).repeat(1, 1, nh),
    "reversed": lambda y, B, T, nh, hd: y.flip(1).transpose(1, 2).reshape(B, T, nh * hd),
    "rolled": lambda y, B, T, nh, hd: y.roll(1, 1).transpose(1, 2).reshape(B, T, nh * hd),
    "rolled_back": lambda y, B, T, nh, hd: y.roll(-1, 1).transpose(1, 2).reshape(B, T, nh * hd),
    "heads_joined_along_tokens": lambda y, B, T, nh, hd: torch.cat(list(y.unbind(1)), dim=1),
    "heads_joined_along_batch": lambda y, B, T, nh, hd: torch.cat(list(y.unbind(1)), dim=0),
    "batch_joined": lambda y, B, T, nh, hd: torch.cat(list(y), dim=-1),
    "heads_before_batch": lambda y, B, T, nh, hd: y.reshape(nh, B, T, hd).permute(1, 2, 0, 3).reshape(B, T, nh * hd),
    "heads_from_batch": lambda y, B, T, nh, hd: (
        y.transpose(0, 1).reshape(B, nh, T, hd).transpose(1, 2).reshape(B, T, -1)
    ),
    "viewed_after_swap": lambda y, B, T, nh, hd: y.transpose(1, 2).view(B, T, nh * hd),
    "viewed_after_permute": lambda y, B, T, nh, hd: y.permute(0, 2, 3, 1).view(B, T, nh * hd),
    "viewed_after_last_swap": lambda y, B, T, nh, hd: y.transpose(2, 3).view(B, T, nh * hd),
    "contiguous_too_early": lambda y, B, T, nh, hd: y.contiguous().transpose(1, 2).view(B, T, nh * hd),
}

RETURNS = ANSWERS | {
    "tensor": lambda z: z,
    "one_tuple": lambda z: (z,),
    "with_shape": lambda z: (z, tuple(z.shape)),
    "heads": lambda z: list(z.unbind(1)),
}

GRADIENTS = {
    "flows": lambda z: z,
    "detach": lambda z: z.detach(),
    "data": lambda z: z.data,
    "copied": lambda z: torch.tensor(z.tolist(), dtype=z.dtype, device=z.device),
    "first_head": lambda z: torch.cat([z[:, :1].detach(), z[:, 1:]], dim=1),
}

MUTATIONS = {
    "never": lambda z: None,
    "swapped": lambda z: z.transpose_(1, 2),
    "zeroed": lambda z: z.detach().zero_(),
    "scaled": lambda z: z.detach().mul_(2),
    "head_zeroed": lambda z: z.detach()[:, 0].zero_(),
}

DIVIDES = {
    "refused": lambda x, C, nh: _refuse(C, nh),
    "unchecked": lambda x, C, nh: x,
    "truncated": lambda x, C, nh: x[..., : C // nh * nh],
    "padded": lambda x, C, nh: torch.nn.functional.pad(x, (0, -C % nh)),
    "not_raised": lambda x, C, nh: ValueError("C must be divisible by n_head") and None,
    "returned": lambda x, C, nh: "stop" if C % nh else None,
    "other_way": lambda x, C, nh: _refuse(nh, C),
    "tokens": lambda x, C, nh: _refuse(x.shape[1], nh),
    "batch": lambda x, C, nh: _refuse(x.shape[0], nh),
    "larger_only": lambda x, C, nh: _refuse(0 if nh <= C else 1, 2),
}

LETTERS = ("B", "T", "C", "nh", "hd")


SIDE = {
    "sizes": None,
    "returns": "tensor",
    "dtype": "follows",
    "gradient": "flows",
    "device": "follows",
    "mutates": "never",
}
RIGHT = {"split": "right", "merge": "right", "divisibility": "refused", "signature": "right"}
RIGHT |= {f"{side}_{knob}": value for side in ("split", "merge") for knob, value in SIDE.items()}


def make(**knobs):
    """The exercise's names, with these faults."""
    k = known(knobs, RIGHT)

    def split_heads(x, n_head):
        B, T, C, nh, hd = _sizes(*x.shape, n_head, k.split_sizes)
        checked = DIVIDES[k.divisibility](x, C, nh)
        if isinstance(checked, str):
            return None
        if checked is not None:
            x, hd = checked, checked.shape[-1] // nh if checked.shape[-1] != x.shape[-1] else hd
        return _dressed("split", x, SPLITS[k.split](x, B, T, nh, hd), k)

    def merge_heads(y):
        B, nh, T, hd = y.shape
        parts = (k.merge_sizes or {}).get("parts", nh)
        if parts != nh:  # `first, second, third, fourth = y.unbind(1)`
            raise ValueError(f"not enough values to unpack (expected {parts}, got {nh})")
        if k.merge_sizes and "h" in k.merge_sizes:
            return rearrange(y, "b h t d -> b t (h d)", h=k.merge_sizes["h"])
        B, T, _, nh, hd = _sizes(B, T, nh * hd, nh, k.merge_sizes)
        merged = _join(y, k.merge) if isinstance(k.merge, tuple) else MERGES[k.merge](y, B, T, nh, hd)
        return _dressed("merge", y, merged, k)

    names = {"split_heads": split_heads, "merge_heads": merge_heads}
    if k.signature in SIGNATURES:
        name, declared = SIGNATURES[k.signature]
        names[name] = declared(names[name])
    else:
        names.pop(k.signature, None)  # a function that is missing
    return names


def _sizes(B, T, C, nh, fixed):
    """The sizes, some of them fixed."""
    fixed = fixed or {}
    B, T, C, nh = (fixed.get(letter, value) for letter, value in zip(LETTERS, (B, T, C, nh), strict=False))
    return B, T, C, fixed.get("viewed_nh", nh), fixed.get("hd", C // nh)


def _refuse(C, nh):
    if C % nh:
        raise ValueError(f"{C} channels cannot be divided evenly among {nh} heads")


def _join(y, way):
    """Move the axes and join the last two, counting on the right sizes or on the neighbours."""
    axes, how = way
    B, nh, T, hd = y.shape
    moved = y.permute(axes)
    return moved.reshape(B, T, nh * hd) if how == "reshape" else moved.flatten(2)


def _dressed(side, given, z, k):
    """What one of the two functions (side: split or merge) returns in place of z; given: its argument, which may be changed."""
    dtype, gradient, device, mutates, returns = (getattr(k, f"{side}_{knob}") for knob in (*tuple(SIDE)[2:], "returns"))
    z = DEVICES[device](GRADIENTS[gradient](CASTS[dtype](z)))
    MUTATIONS[mutates](given)
    return RETURNS[returns](z)


# How a student may have declared one of the two functions.
SIGNATURES = {
    "renamed": ("split_heads", lambda split: lambda x, num_heads: split(x, num_heads)),
    "split_swapped": ("split_heads", lambda split: lambda n_head, x: split(x, n_head)),
    "split_takes_hd": ("split_heads", lambda split: lambda x, n_head, head_dim: split(x, n_head)),
    "split_takes_x": ("split_heads", lambda split: lambda x: split(x, 4)),
    "merge_takes_nh": ("merge_heads", lambda merge: lambda y, n_head: merge(y)),
    "merge_takes_sizes": ("merge_heads", lambda merge: lambda y, B, T, C: merge(y)),
}


def _wrong_joins():
    """Wrong orders of the four axes before the last two are joined, likeliest first."""
    for axes in ((0, 2, 3, 1), (0, 1, 3, 2), (0, 3, 2, 1), (0, 3, 1, 2)):
        yield "merge_wrong_axes", {"merge": (axes, "reshape")}
        yield "merge_wrong_axes", {"merge": (axes, "flatten")}
    for axes in ((1, 0, 2, 3), (1, 2, 0, 3), (2, 0, 1, 3), (2, 1, 0, 3), (3, 1, 2, 0)):
        if axes[0] == 1:
            yield "heads_mix_batch", {"merge": (axes, "reshape")}
        yield "merge_wrong_axes", {"merge": (axes, "reshape")}


def _fixed(*choices):
    """Hard-coded sizes in one function or in both."""
    for sizes in choices:
        yield "hard_coded_shape", {"split_sizes": sizes, "merge_sizes": sizes}
        yield "hard_coded_shape", {"split_sizes": sizes}
        yield "hard_coded_shape", {"merge_sizes": sizes}


def _in_either(misconception, knob, *ways):
    """The same fault in one function (the likeliest way) or in both."""
    yield misconception, {f"split_{knob}": ways[0]}
    yield misconception, {f"merge_{knob}": ways[0]}
    for way in ways:
        yield misconception, {f"split_{knob}": way, f"merge_{knob}": way}


_AS_IS = (0, 1, 2, 3)
_LAST = (0, 2, 3, 1)  # heads last

MUTANTS = (
    ("wrong_view", {"split": "straight"}),
    *each("merge_no_transpose", "merge", (_AS_IS, "reshape"), (_AS_IS, "flatten")),
    # After its halves: of a file in which one function is not written yet, all that is known is the other.
    ("wrong_view_both", {"split": "straight", "merge": (_AS_IS, "reshape")}),
    ("heads_interleaved", {"split": "interleaved", "merge": (_LAST, "reshape")}),
    ("heads_interleaved", {"split": "interleaved"}),
    ("heads_missing_transpose", {"split": "heads_left_behind"}),
    *each("heads_missing_transpose", "merge", (_AS_IS, "flatten"), (_AS_IS, "reshape"), split="heads_left_behind"),
    *each("view_not_contiguous", "merge", "viewed_after_swap", "contiguous_too_early"),
    *each("view_not_contiguous", "split", "viewed_after_swap", "viewed_in_batch"),
    *each("view_not_contiguous", "merge", "viewed_after_permute", "viewed_after_last_swap"),
    ("view_not_contiguous", {"split": "viewed_after_swap", "merge": "viewed_after_swap"}),
    *each(
        "divisibility_unchecked",
        "divisibility",
        "unchecked",
        "truncated",
        "padded",
        "not_raised",
        "returned",
        "larger_only",
    ),
    ("refuses_allowed", {"divisibility": "other_way"}),
    *each("divisibility_unchecked", "divisibility", "tokens", "batch"),
    ("size_wrong_axis", {"merge": "sizes_of_transposed"}),
    *each(
        "wrong_view",
        "split",
        "straight_hd_first",
        "straight_then_swapped",
        "straight_after_swap",
        "swapped_then_straight",
    ),
    *each("wrong_view", "split", "hd_moved_then_straight", "last_swapped_then_straight", "straight_heads_in_batch"),
    *each("heads_mix_batch", "split", "straight_heads_in_batch", "heads_before_batch"),
    ("heads_mix_batch", {"split": "heads_before_batch", "merge": "heads_before_batch"}),
    *each("heads_mix_batch", "split", "heads_before_batch_left", "heads_stacked_first", "heads_stacked_first_viewed"),
    ("heads_mix_batch", {"split": "heads_stacked_first_viewed", "merge": "heads_from_batch"}),
    *each("heads_mix_batch", "split", "heads_in_batch", "batch_swapped", "batch_swapped_viewed"),
    *each(
        "heads_mix_batch", "merge", "heads_before_batch", "heads_from_batch", "heads_joined_along_batch", "batch_joined"
    ),
    *each("heads_interleaved", "split", "interleaved_left_behind", "interleaved_hd_first"),
    ("heads_and_width_swapped", {"split": "sizes_swapped"}),
    *each("heads_averaged", "merge", "mean", "sum", "mean_repeated", "sum_repeated"),
    ("heads_reversed", {"split": "reversed", "merge": "reversed"}),
    ("heads_reversed", {"split": "reversed"}),
    ("heads_reversed", {"merge": "reversed"}),
    ("heads_reversed", {"split": "rolled", "merge": "rolled_back"}),
    ("heads_reversed", {"split": "rolled_back", "merge": "rolled"}),
    *each("heads_reversed", "split", "rolled", "rolled_back"),
    *each("heads_reversed", "merge", "rolled", "rolled_back"),
    ("merge_wrong_axes", {"merge": (_LAST, "reshape")}),
    ("heads_interleaved", {"merge": (_LAST, "reshape")}),
    *_wrong_joins(),
    ("merge_no_transpose", {"merge": "heads_joined_along_tokens"}),
    *_fixed({"B": 2, "T": 8, "C": 64}, {"B": 2, "T": 8, "C": 64, "nh": 4}, {"B": 2, "T": 8, "nh": 4, "hd": 16}),
    *_fixed({"B": 2}, {"B": 1}, {"B": -1, "T": 8}, {"T": 8}, {"B": 2, "T": -1}, {"B": 2, "T": 8}, {"T": 1024}),
    *_fixed({"nh": 4}, {"viewed_nh": 4}, {"nh": 2}, {"viewed_nh": 2}, {"nh": 8}, {"nh": 12}),
    *_fixed({"hd": 16}, {"hd": 64}, {"hd": 8}, {"C": 64}, {"C": 768}),
    ("hard_coded_shape", {"split_sizes": {"viewed_nh": 4, "hd": -1}}),
    *each("hard_coded_shape", "merge_sizes", *({"parts": n} for n in (4, 2, 3, 8)), *({"h": n} for n in (12, 4, 2, 8))),
    *each("hard_coded_shape", "split_sizes", {"viewed_nh": -1, "hd": 16}, {"viewed_nh": -1, "hd": 64}),
    *_in_either("gradient_cut", "gradient", "detach", "data", "copied", "first_head"),
    *_in_either("input_mutated", "mutates", "swapped", "zeroed", "scaled", "head_zeroed"),
    *_in_either("hard_coded_dtype", "dtype", "float", "double", "half", "bfloat16", "long"),
    *_in_either("hard_coded_device", "device", "cpu", "filled", "added"),
    *_in_either("interface", "returns", "one_tuple", "with_shape", "list", "heads", "numpy", "none"),
    *each("interface", "signature", *SIGNATURES, "split_heads", "merge_heads"),
)
