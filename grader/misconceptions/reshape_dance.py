"""The wrong ways to do the reshape dance."""

from types import SimpleNamespace

import torch
from einops import rearrange

from ._attention import HEADS_LAST, MERGES, SPLITS
from ._mutants import each, known
from ._scores import ANSWERS, CASTS, DEVICES

# Ways to split: (x, sizes) -> heads. What is shared is right as "heads".
SPLITS = SPLITS | {
    "straight": lambda x, s: x.view(s.B, s.nh, s.T, s.hd),
    "straight_then_swapped": lambda x, s: x.view(s.B, s.nh, s.T, s.hd).transpose(1, 2),
    "straight_heads_in_batch": lambda x, s: x.view(s.B * s.nh, s.T, s.hd),
    "heads_left_behind": lambda x, s: x.view(s.B, s.T, s.nh, s.hd),
    "interleaved_left_behind": lambda x, s: x.view(s.B, s.T, s.hd, s.nh).transpose(2, 3),
    "interleaved_hd_first": lambda x, s: x.view(s.B, s.T, s.hd, s.nh).transpose(1, 3),
    "heads_before_batch_left": lambda x, s: x.view(s.nh, s.B, s.T, s.hd),
    "heads_stacked_first": lambda x, s: torch.stack(x.chunk(s.nh, dim=-1)),
    "heads_stacked_first_viewed": lambda x, s: torch.stack(x.chunk(s.nh, dim=-1)).view(s.B, s.nh, s.T, s.hd),
    "heads_in_batch": lambda x, s: SPLITS["heads"](x, s).reshape(s.B * s.nh, s.T, s.hd),
    "rolled_back": lambda x, s: SPLITS["heads"](x, s).roll(-1, 1),
    "viewed_after_swap": lambda x, s: x.transpose(1, 2).view(s.B, s.nh, s.T, s.hd),
    "viewed_in_batch": lambda x, s: SPLITS["heads"](x, s).view(s.B * s.nh, s.T, s.hd),
}

# Ways to merge: (y, sizes) -> x. The last two axes are joined by `reshape`, or by `flatten`, which counts on its neighbours.
MERGES = MERGES | {
    "heads": lambda y, s: y.transpose(1, 2).contiguous().view(s.B, s.T, s.C),
    "heads_joined_along_tokens": lambda y, s: torch.cat(list(y.unbind(1)), dim=1),
    "heads_joined_along_batch": lambda y, s: torch.cat(list(y.unbind(1)), dim=0),
    "batch_in_channels": lambda y, s: torch.cat(list(y), dim=-1),
    "viewed_after_last_swap": lambda y, s: y.transpose(2, 3).view(s.B, s.T, s.C),
    "flat": lambda y, s: y.flatten(2),
    "flat_last_swap": lambda y, s: y.transpose(2, 3).flatten(2),
    "flat_ends_swapped": lambda y, s: y.transpose(1, 3).flatten(2),
    "flat_width_first": lambda y, s: y.permute(0, 3, 1, 2).flatten(2),
}

RETURNS = ANSWERS | {
    "tensor": lambda z: z,
    "one_tuple": lambda z: (z,),
}

GRADIENTS = {
    "flows": lambda z: z,
    "detach": lambda z: z.detach(),
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
    "returned": lambda x, C, nh: "stop" if C % nh else None,
    "other_way": lambda x, C, nh: _refuse(nh, C),
    "tokens": lambda x, C, nh: _refuse(x.shape[1], nh),
    "batch": lambda x, C, nh: _refuse(x.shape[0], nh),
    "larger_only": lambda x, C, nh: _refuse(0 if nh <= C else 1, 2),
}

LETTERS = ("B", "T", "C", "nh", "hd")


SIDE = {
    "sizes": None, "returns": "tensor",
    "dtype": "follows", "gradient": "flows", "device": "follows", "mutates": "never",
}  # fmt: skip
RIGHT = {"split": "heads", "merge": "heads", "divisibility": "refused", "signature": "right"}
RIGHT |= {f"{side}_{knob}": value for side in ("split", "merge") for knob, value in SIDE.items()}


def make(**knobs):
    """The exercise's names, with these faults."""
    k = known(knobs, RIGHT)

    def split_heads(x, n_head):
        s = _sizes(*x.shape, n_head, k.split_sizes)
        checked = DIVIDES[k.divisibility](x, s.C, s.nh)
        if isinstance(checked, str):
            return None
        if checked is not None:
            x, s.hd = checked, checked.shape[-1] // s.nh if checked.shape[-1] != x.shape[-1] else s.hd
        return _dressed("split", x, SPLITS[k.split](x, s), k)

    def merge_heads(y):
        B, nh, T, hd = y.shape
        parts = (k.merge_sizes or {}).get("parts", nh)
        if parts != nh:  # `first, second, third, fourth = y.unbind(1)`
            raise ValueError(f"not enough values to unpack (expected {parts}, got {nh})")
        if k.merge_sizes and "h" in k.merge_sizes:
            return rearrange(y, "b h t d -> b t (h d)", h=k.merge_sizes["h"])
        s = _sizes(B, T, nh * hd, nh, k.merge_sizes)
        s.C = s.nh * s.hd
        merged = MERGES[k.merge](y, s)
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
    return SimpleNamespace(B=B, T=T, C=C, nh=fixed.get("viewed_nh", nh), hd=fixed.get("hd", C // nh))


def _refuse(C, nh):
    if C % nh:
        raise ValueError(f"{C} channels cannot be divided evenly among {nh} heads")


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


MUTANTS = (
    ("wrong_view", {"split": "straight"}),
    *each("merge_no_transpose", merge=("straight", "flat")),
    # After its halves: of a file in which one function is not written yet, all that is known is the other.
    ("wrong_view_both", {"split": "straight", "merge": "straight"}),
    ("heads_interleaved", {"split": "interleaved", "merge": HEADS_LAST}),
    ("heads_interleaved", {"split": "interleaved"}),
    ("heads_missing_transpose", {"split": "heads_left_behind"}),
    *each("heads_missing_transpose", merge=("flat", "straight"), split="heads_left_behind"),
    *each("view_not_contiguous", merge=("view", "viewed_after_last_swap")),
    *each("view_not_contiguous", split=("viewed_after_swap", "viewed_in_batch")),
    ("view_not_contiguous", {"split": "viewed_after_swap", "merge": "view"}),
    *each("divisibility_unchecked", divisibility=("unchecked", "truncated", "padded", "returned", "larger_only")),
    ("refuses_allowed", {"divisibility": "other_way"}),
    *each("divisibility_unchecked", divisibility=("tokens", "batch")),
    ("size_wrong_axis", {"merge": "sizes_of_transposed"}),
    *each("wrong_view", split=("straight_hd_first", "straight_then_swapped", "swapped_first")),
    *each("wrong_view", split=("wrong_swap", "last_swapped", "straight_heads_in_batch")),
    *each("heads_mix_batch", split=("straight_heads_in_batch", "batch_after_heads")),
    ("heads_mix_batch", {"split": "batch_after_heads", "merge": "batch_viewed"}),
    *each("heads_mix_batch", split=("heads_before_batch_left", "heads_stacked_first", "heads_stacked_first_viewed")),
    ("heads_mix_batch", {"split": "heads_stacked_first_viewed", "merge": "heads_from_batch"}),
    ("heads_mix_batch", {"split": "heads_in_batch"}),
    *each("heads_mix_batch", merge=("batch_viewed", "heads_from_batch")),
    *each("heads_mix_batch", merge=("heads_joined_along_batch", "batch_in_channels")),
    *each("heads_interleaved", split=("interleaved_left_behind", "interleaved_hd_first")),
    ("heads_and_width_swapped", {"split": "sizes_swapped"}),
    *each("heads_averaged", merge=("mean", "sum", "mean_repeated", "sum_repeated")),
    ("heads_reversed", {"split": "reversed", "merge": "reversed"}),
    ("heads_reversed", {"split": "reversed"}),
    ("heads_reversed", {"merge": "reversed"}),
    ("heads_reversed", {"split": "rolled", "merge": "rolled_back"}),
    ("heads_reversed", {"split": "rolled_back", "merge": "rolled"}),
    *each("heads_reversed", split=("rolled", "rolled_back")),
    *each("heads_reversed", merge=("rolled", "rolled_back")),
    ("merge_wrong_axes", {"merge": HEADS_LAST}),
    ("heads_interleaved", {"merge": HEADS_LAST}),
    *each("merge_wrong_axes", merge=("axes_(0, 1, 3, 2)", "flat_last_swap")),
    *each("merge_wrong_axes", merge=("axes_(0, 3, 2, 1)", "flat_ends_swapped")),
    *each("merge_wrong_axes", merge=("axes_(0, 3, 1, 2)", "flat_width_first")),
    *each("heads_mix_batch", merge=("axes_(1, 0, 2, 3)", "axes_(1, 2, 0, 3)")),
    *each("merge_wrong_axes", merge=("axes_(1, 0, 2, 3)", "axes_(1, 2, 0, 3)", "axes_(2, 0, 1, 3)")),
    *each("merge_wrong_axes", merge=("axes_(2, 1, 0, 3)", "axes_(3, 1, 2, 0)")),
    ("merge_no_transpose", {"merge": "heads_joined_along_tokens"}),
    *_fixed({"B": 2, "T": 8, "C": 64}, {"B": 2, "T": 8, "C": 64, "nh": 4}, {"B": 2, "T": 8, "nh": 4, "hd": 16}),
    *_fixed({"B": 2}, {"B": 1}, {"B": -1, "T": 8}, {"T": 8}, {"B": 2, "T": -1}, {"B": 2, "T": 8}, {"T": 1024}),
    *_fixed({"nh": 4}, {"viewed_nh": 4}, {"nh": 2}, {"viewed_nh": 2}, {"nh": 8}, {"nh": 12}),
    *_fixed({"hd": 16}, {"hd": 64}, {"hd": 8}, {"C": 64}, {"C": 768}),
    *each("hard_coded_shape", merge_sizes=(*({"parts": n} for n in (4, 2, 3, 8)), *({"h": n} for n in (12, 4, 2, 8)))),
    *each("hard_coded_shape", split_sizes=({"viewed_nh": -1, "hd": 16}, {"viewed_nh": -1, "hd": 64})),
    *_in_either("gradient_cut", "gradient", "detach", "first_head"),
    *_in_either("input_mutated", "mutates", "swapped", "zeroed", "scaled", "head_zeroed"),
    *_in_either("hard_coded_dtype", "dtype", "float", "double", "half", "bfloat16", "long"),
    *_in_either("hard_coded_device", "device", "cpu", "added"),
    *_in_either("interface", "returns", "one_tuple", "list", "numpy", "none"),
    *each("interface", signature=(*SIGNATURES, "split_heads", "merge_heads")),
)
