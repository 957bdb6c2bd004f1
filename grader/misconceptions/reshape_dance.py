"""The wrong ways to do the reshape dance."""

import torch
from einops import rearrange

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

RETURNS = {
    "tensor": lambda z: z,
    "tuple": lambda z: (z,),
    "with_shape": lambda z: (z, tuple(z.shape)),
    "list": lambda z: z.tolist(),
    "heads": lambda z: list(z.unbind(1)),
    "numpy": lambda z: z.detach().cpu().numpy(),
    "nothing": lambda z: None,
}

CASTS = {
    "follows": lambda z: z,
    "float": lambda z: z.float(),
    "double": lambda z: z.double(),
    "half": lambda z: z.half(),
    "bfloat16": lambda z: z.bfloat16(),
    "long": lambda z: z.long(),
}

GRADIENTS = {
    "flows": lambda z: z,
    "detach": lambda z: z.detach(),
    "data": lambda z: z.data,
    "copied": lambda z: torch.tensor(z.tolist(), dtype=z.dtype, device=z.device),
    "first_head": lambda z: torch.cat([z[:, :1].detach(), z[:, 1:]], dim=1),
}

DEVICES = {
    "follows": lambda z: z,
    "cpu": lambda z: z.cpu(),
    "filled": lambda z: torch.empty(z.shape, dtype=z.dtype).copy_(z),
    "added": lambda z: z + torch.zeros(z.shape, dtype=z.dtype),
    "cuda": lambda z: z.to("cuda"),
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


def make(
    *,
    split="right",
    merge="right",
    split_sizes=None,
    merge_sizes=None,
    divisibility="refused",
    split_returns="tensor",
    merge_returns="tensor",
    split_dtype="follows",
    merge_dtype="follows",
    split_gradient="flows",
    merge_gradient="flows",
    split_device="follows",
    merge_device="follows",
    split_mutates="never",
    merge_mutates="never",
    signature="right",
):
    """The exercise's names, with these faults; the defaults are right."""

    def split_heads(x, n_head):
        B, T, C, nh, hd = _sizes(*x.shape, n_head, split_sizes)
        checked = DIVIDES[divisibility](x, C, nh)
        if isinstance(checked, str):
            return None
        if checked is not None:
            x, hd = checked, checked.shape[-1] // nh if checked.shape[-1] != x.shape[-1] else hd
        heads = _dress(SPLITS[split](x, B, T, nh, hd), split_dtype, split_gradient, split_device)
        MUTATIONS[split_mutates](x)
        return RETURNS[split_returns](heads)

    def merge_heads(y):
        B, nh, T, hd = y.shape
        parts = (merge_sizes or {}).get("parts", nh)
        if parts != nh:  # `first, second, third, fourth = y.unbind(1)`
            raise ValueError(f"not enough values to unpack (expected {parts}, got {nh})")
        if merge_sizes and "h" in merge_sizes:
            return rearrange(y, "b h t d -> b t (h d)", h=merge_sizes["h"])
        B, T, _, nh, hd = _sizes(B, T, nh * hd, nh, merge_sizes)
        merged = _join(y, merge) if isinstance(merge, tuple) else MERGES[merge](y, B, T, nh, hd)
        merged = _dress(merged, merge_dtype, merge_gradient, merge_device)
        MUTATIONS[merge_mutates](y)
        return RETURNS[merge_returns](merged)

    return _named(signature, split_heads, merge_heads)


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


def _dress(z, dtype, gradient, device):
    return DEVICES[device](GRADIENTS[gradient](CASTS[dtype](z)))


def _named(signature, split_heads, merge_heads):
    """The two functions as a student may have declared them."""
    names = {"split_heads": split_heads, "merge_heads": merge_heads}
    if signature == "renamed":
        names["split_heads"] = lambda x, num_heads: split_heads(x, num_heads)
    elif signature == "split_swapped":
        names["split_heads"] = lambda n_head, x: split_heads(x, n_head)
    elif signature == "split_takes_hd":
        names["split_heads"] = lambda x, n_head, head_dim: split_heads(x, n_head)
    elif signature == "split_takes_x":
        names["split_heads"] = lambda x: split_heads(x, 4)
    elif signature == "merge_takes_nh":
        names["merge_heads"] = lambda y, n_head: merge_heads(y)
    elif signature == "merge_takes_sizes":
        names["merge_heads"] = lambda y, B, T, C: merge_heads(y)
    elif signature != "right":
        del names[signature]  # a function that is missing
    return names


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
    ("merge_no_transpose", {"merge": (_AS_IS, "reshape")}),
    ("merge_no_transpose", {"merge": (_AS_IS, "flatten")}),
    # After its halves: of a file in which one function is not written yet, all that is known is the other.
    ("wrong_view_both", {"split": "straight", "merge": (_AS_IS, "reshape")}),
    ("heads_interleaved", {"split": "interleaved", "merge": (_LAST, "reshape")}),
    ("heads_interleaved", {"split": "interleaved"}),
    ("heads_missing_transpose", {"split": "heads_left_behind"}),
    ("heads_missing_transpose", {"split": "heads_left_behind", "merge": (_AS_IS, "flatten")}),
    ("heads_missing_transpose", {"split": "heads_left_behind", "merge": (_AS_IS, "reshape")}),
    ("view_not_contiguous", {"merge": "viewed_after_swap"}),
    ("view_not_contiguous", {"merge": "contiguous_too_early"}),
    ("view_not_contiguous", {"split": "viewed_after_swap"}),
    ("view_not_contiguous", {"split": "viewed_in_batch"}),
    ("view_not_contiguous", {"merge": "viewed_after_permute"}),
    ("view_not_contiguous", {"merge": "viewed_after_last_swap"}),
    ("view_not_contiguous", {"split": "viewed_after_swap", "merge": "viewed_after_swap"}),
    ("divisibility_unchecked", {"divisibility": "unchecked"}),
    ("divisibility_unchecked", {"divisibility": "truncated"}),
    ("divisibility_unchecked", {"divisibility": "padded"}),
    ("divisibility_unchecked", {"divisibility": "not_raised"}),
    ("divisibility_unchecked", {"divisibility": "returned"}),
    ("divisibility_unchecked", {"divisibility": "larger_only"}),
    ("refuses_allowed", {"divisibility": "other_way"}),
    ("divisibility_unchecked", {"divisibility": "tokens"}),
    ("divisibility_unchecked", {"divisibility": "batch"}),
    ("size_wrong_axis", {"merge": "sizes_of_transposed"}),
    ("wrong_view", {"split": "straight_hd_first"}),
    ("wrong_view", {"split": "straight_then_swapped"}),
    ("wrong_view", {"split": "straight_after_swap"}),
    ("wrong_view", {"split": "swapped_then_straight"}),
    ("wrong_view", {"split": "hd_moved_then_straight"}),
    ("wrong_view", {"split": "last_swapped_then_straight"}),
    ("wrong_view", {"split": "straight_heads_in_batch"}),
    ("heads_mix_batch", {"split": "straight_heads_in_batch"}),
    ("heads_mix_batch", {"split": "heads_before_batch"}),
    ("heads_mix_batch", {"split": "heads_before_batch", "merge": "heads_before_batch"}),
    ("heads_mix_batch", {"split": "heads_before_batch_left"}),
    ("heads_mix_batch", {"split": "heads_stacked_first"}),
    ("heads_mix_batch", {"split": "heads_stacked_first_viewed"}),
    ("heads_mix_batch", {"split": "heads_stacked_first_viewed", "merge": "heads_from_batch"}),
    ("heads_mix_batch", {"split": "heads_in_batch"}),
    ("heads_mix_batch", {"split": "batch_swapped"}),
    ("heads_mix_batch", {"split": "batch_swapped_viewed"}),
    ("heads_mix_batch", {"merge": "heads_before_batch"}),
    ("heads_mix_batch", {"merge": "heads_from_batch"}),
    ("heads_mix_batch", {"merge": "heads_joined_along_batch"}),
    ("heads_mix_batch", {"merge": "batch_joined"}),
    ("heads_interleaved", {"split": "interleaved_left_behind"}),
    ("heads_interleaved", {"split": "interleaved_hd_first"}),
    ("heads_and_width_swapped", {"split": "sizes_swapped"}),
    ("heads_averaged", {"merge": "mean"}),
    ("heads_averaged", {"merge": "sum"}),
    ("heads_averaged", {"merge": "mean_repeated"}),
    ("heads_averaged", {"merge": "sum_repeated"}),
    ("heads_reversed", {"split": "reversed", "merge": "reversed"}),
    ("heads_reversed", {"split": "reversed"}),
    ("heads_reversed", {"merge": "reversed"}),
    ("heads_reversed", {"split": "rolled", "merge": "rolled_back"}),
    ("heads_reversed", {"split": "rolled_back", "merge": "rolled"}),
    ("heads_reversed", {"split": "rolled"}),
    ("heads_reversed", {"split": "rolled_back"}),
    ("heads_reversed", {"merge": "rolled"}),
    ("heads_reversed", {"merge": "rolled_back"}),
    ("merge_wrong_axes", {"merge": (_LAST, "reshape")}),
    ("heads_interleaved", {"merge": (_LAST, "reshape")}),
    *_wrong_joins(),
    ("merge_no_transpose", {"merge": "heads_joined_along_tokens"}),
    *_fixed({"B": 2, "T": 8, "C": 64}, {"B": 2, "T": 8, "C": 64, "nh": 4}, {"B": 2, "T": 8, "nh": 4, "hd": 16}),
    *_fixed({"B": 2}, {"B": 1}, {"B": -1, "T": 8}, {"T": 8}, {"B": 2, "T": -1}, {"B": 2, "T": 8}, {"T": 1024}),
    *_fixed({"nh": 4}, {"viewed_nh": 4}, {"nh": 2}, {"viewed_nh": 2}, {"nh": 8}, {"nh": 12}),
    *_fixed({"hd": 16}, {"hd": 64}, {"hd": 8}, {"C": 64}, {"C": 768}),
    ("hard_coded_shape", {"split_sizes": {"viewed_nh": 4, "hd": -1}}),
    *(("hard_coded_shape", {"merge_sizes": {"parts": n}}) for n in (4, 2, 3, 8)),
    *(("hard_coded_shape", {"merge_sizes": {"h": n}}) for n in (12, 4, 2, 8)),
    ("hard_coded_shape", {"split_sizes": {"viewed_nh": -1, "hd": 16}}),
    ("hard_coded_shape", {"split_sizes": {"viewed_nh": -1, "hd": 64}}),
    *_in_either("gradient_cut", "gradient", "detach", "data", "copied", "first_head"),
    *_in_either("input_mutated", "mutates", "swapped", "zeroed", "scaled", "head_zeroed"),
    *_in_either("hard_coded_dtype", "dtype", "float", "double", "half", "bfloat16", "long"),
    *_in_either("hard_coded_device", "device", "cpu", "filled", "added"),
    *_in_either("interface", "returns", "tuple", "with_shape", "list", "heads", "numpy", "nothing"),
    ("interface", {"signature": "renamed"}),
    ("interface", {"signature": "split_swapped"}),
    ("interface", {"signature": "split_takes_hd"}),
    ("interface", {"signature": "split_takes_x"}),
    ("interface", {"signature": "merge_takes_nh"}),
    ("interface", {"signature": "merge_takes_sizes"}),
    ("interface", {"signature": "split_heads"}),
    ("interface", {"signature": "merge_heads"}),
)
