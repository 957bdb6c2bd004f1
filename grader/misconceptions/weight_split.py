"""Wrong attempts at multi-head attention by weight split: one causal head with heads cut from its channels."""

from torch import nn

from manyheads.checks import edit

from ._masking import BIAS_BY_DEFAULT, KEYS_NOT_TRANSPOSED, dropped_in_place, each, known
from ._separate_qkv import (
    ATTENTION_FAMILIES,
    INPUT_MUTANTS,
    KNOBS,
    LAYER_MUTANTS,
    WRITTEN_IN_MUTANTS,
    OneHead,
    attention_mutants,
    declared,
    project,
)


def cut(t, *sizes):
    """The last axis in two. As `unflatten`, whose refusal of sizes that do not fit takes 2.5 ms, a hundred times that of `reshape`."""
    return t.reshape(*t.shape[:-1], *sizes)


# (B, T, C) to (B, nh, T, hd), or what was taken for it.
SPLIT = {
    "heads": lambda t, nh: cut(t, nh, -1).transpose(1, 2),
    "view": lambda t, nh: t.reshape(t.shape[0], nh, t.shape[1], -1),
    "view_turned": lambda t, nh: t.reshape(t.shape[0], nh, -1, t.shape[1]).transpose(2, 3),  # (B, nh, hd, T) at once
    "interleaved": lambda t, nh: cut(t, -1, nh).permute(0, 3, 1, 2),
    "sizes_swapped": lambda t, nh: cut(t, -1, nh).transpose(1, 2),
    "heads_first": lambda t, nh: t.reshape(nh, t.shape[0], t.shape[1], -1).transpose(0, 1),
    "batch_beside_heads": lambda t, nh: SPLIT["heads"](t, nh).transpose(0, 1).reshape(t.shape[0], nh, t.shape[1], -1),
    "reversed": lambda t, nh: SPLIT["heads"](t, nh).flip(1),
    "first_shared": lambda t, nh: SPLIT["heads"](t, nh)[:, :1].expand(-1, nh, -1, -1),
    "tokens_first": lambda t, nh: cut(t, nh, -1),
    "view_not_contiguous": lambda t, nh: SPLIT["heads"](t, nh).view(len(t) * nh, t.shape[1], -1).unflatten(0, (-1, nh)),
}


def axes(*order):
    """A merge that moves the axes of (B, nh, T, hd) so before it flattens."""
    return lambda y, B, T: y.permute(order).reshape(B, T, -1)


# (B, nh, T, hd) to (B, T, C), or what was taken for it.
MERGE = {
    "heads": axes(0, 2, 1, 3),
    "no_transpose": axes(0, 1, 2, 3),
    "stacked_last": axes(0, 2, 3, 1),
    "sizes_of_transposed": lambda y, B, T: y.transpose(1, 2).reshape(B, y.shape[1], -1),
    "swapped_1_3": axes(0, 3, 2, 1),
    "swapped_2_3": axes(0, 1, 3, 2),
    "hd_nh_t": axes(0, 3, 1, 2),
    "t_b": axes(2, 0, 1, 3),
    "nh_b": axes(1, 0, 2, 3),
    "nh_t_b": axes(1, 2, 0, 3),
    "t_nh_b": axes(2, 1, 0, 3),
    "nh_t_b_folded": lambda y, B, T: y.reshape(y.shape[1], B, T, -1).permute(1, 2, 0, 3).reshape(B, T, -1),
    "reversed": lambda y, B, T: MERGE["heads"](y.flip(1), B, T),
    "rolled": lambda y, B, T: MERGE["heads"](y.roll(1, 1), B, T),
    "rolled_back": lambda y, B, T: MERGE["heads"](y.roll(-1, 1), B, T),
    "mean": lambda y, B, T: y.mean(1),
    "sum": lambda y, B, T: y.sum(1),
    "mean_repeated": lambda y, B, T: y.mean(1).repeat(1, 1, y.shape[1]),
    "sum_repeated": lambda y, B, T: y.sum(1).repeat(1, 1, y.shape[1]),
    "mean_interleaved": lambda y, B, T: y.mean(1).repeat_interleave(y.shape[1], -1),
    "sum_interleaved": lambda y, B, T: y.sum(1).repeat_interleave(y.shape[1], -1),
    "view": lambda y, B, T: y.contiguous().transpose(1, 2).view(B, T, -1),
}


HEAD_KNOBS = KNOBS | {
    "divides": "d_out",  # what is checked: d_out, d_in, context, nothing
    "head_values": "own",  # whole_mean, whole_sum: each head mixes the values of all, and the heads are added up
    "split": "heads",
    "split_only": "qkv",  # the others are split well
    "merge": "heads",
    "proj": "linear",  # linear, missing, transposed, twice, no_bias_used, bias_each: once a head
    "names": ("W_query", "W_key", "W_value", "out_proj"),
}  # fmt: skip; sizes may hold nh and hd


class Heads(OneHead):
    """Several heads, with an output projection."""

    def __init__(self, d_in, d_out, context_length, num_heads, dropout=0.0, qkv_bias=False):
        sizes = self.knobs.sizes
        divided = {"d_out": d_out, "d_in": d_in, "context": context_length, "nothing": 0}[self.knobs.divides]
        if divided % num_heads:
            raise ValueError(f"{d_out} channels do not divide into {num_heads} heads")
        super().__init__(d_in, d_out, context_length, dropout, qkv_bias)
        self.num_heads = sizes.get("nh", d_out // sizes["hd"] if "hd" in sizes else num_heads)

    def new_layers(self, d_in, d_out, qkv_bias):
        no_bias = self.knobs.no_bias
        biased = qkv_bias if "O" in no_bias else "o" not in no_bias
        return [*super().new_layers(d_in, d_out, qkv_bias), nn.Linear(d_out, d_out, bias=biased)]

    def keep(self, layers):
        if self.knobs.registered == "proj_hidden":
            object.__setattr__(self, self.knobs.names[3], layers.pop())
        super().keep(layers[:3] if self.knobs.extra == "no_layer" else layers)

    def layers_for(self, x):
        layers = super().layers_for(x)
        if self.knobs.registered in ("forward", "anew", "proj_anew"):
            layers[3:] = [nn.Linear(self.d_out, self.d_out).to(x)]
        return layers

    def split(self, t, which):
        return SPLIT[self.knobs.split if which in self.knobs.split_only else "heads"](t, self.num_heads)

    def mixed(self, weights, v):
        if self.knobs.head_values == "own":
            return weights @ v
        each = weights @ v.transpose(1, 2).flatten(2)[:, None]  # (B, nh, T, C)
        whole = each.mean(1) if self.knobs.head_values == "whole_mean" else each.sum(1)
        return cut(whole, v.shape[1], v.shape[3]).transpose(1, 2)

    def as_values(self, x, q):
        return x.reshape(*x.shape[:2], self.num_heads, q.shape[-1]).transpose(1, 2)

    def merge(self, out, layers, x):
        out = MERGE[self.knobs.merge](out, *x.shape[:2])
        out = self.dropped(out, "merged")
        if self.knobs.proj == "missing":
            return out
        without_bias = self.knobs.proj == "no_bias_used"
        layer = getattr(layers[3], "weight", layers[3]) if without_bias else layers[3]
        out = project(layer, out) if self.knobs.proj == "twice" else out
        if self.knobs.proj == "bias_each":
            return project(layer, out) + (self.num_heads - 1) * layer.bias
        return project(layer, out, transposed=self.knobs.proj == "transposed")


SIGNATURES = {
    "required": lambda self, d_in, d_out, context_length, num_heads, dropout, qkv_bias: Heads.__init__(self, d_in, d_out, context_length, num_heads, dropout, qkv_bias),
    "fourth": lambda self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False: Heads.__init__(self, d_in, d_out, context_length, num_heads, dropout, qkv_bias),
    "bias_first": lambda self, d_in, d_out, context_length, num_heads, qkv_bias=False, dropout=0.0: Heads.__init__(self, d_in, d_out, context_length, num_heads, dropout, qkv_bias),
    "renamed": lambda self, d_in, d_out, block_size, n_head, p=0.0, bias=False: Heads.__init__(self, d_in, d_out, block_size, n_head, p, bias),
}  # fmt: skip


def make(**faults):
    """The exercise's names, with these faults."""
    return declared("MultiHeadAttention", Heads, known(faults, HEAD_KNOBS), SIGNATURES, "MHA")


WRONG_AXES = ("heads", "batch", "square", "everything", "sequence", "head", "batch_and_heads")
NOT_ALL = ("v", "q", "k", "qk", "qv", "kv")

HEAD_MUTANTS = (
    *each("divisibility_unchecked", "divides", "nothing", "d_in", "context"),
    ("wrong_view", {"split": "view"}),
    ("wrong_view_both", {"split": "view", "merge": "no_transpose"}),
    *each("wrong_view_values", "split_only", *NOT_ALL, split="view"),
    *each("wrong_view_values", "split_only", *NOT_ALL, split="view", merge="no_transpose"),
    *each("wrong_view_values", "split_only", "k", "q", "v", split="view_turned"),
    ("merge_no_transpose", {"merge": "no_transpose"}),
    *each("merge_wrong_axes", "merge", "swapped_1_3", "swapped_2_3", "stacked_last"),
    ("heads_interleaved", {"merge": "stacked_last"}),
    *each("merge_wrong_axes", "merge", "hd_nh_t", "t_b", "nh_b", "nh_t_b", "t_nh_b"),
    ("heads_interleaved", {"split": "interleaved"}),
    ("heads_interleaved", {"split": "interleaved", "merge": "stacked_last"}),
    *each("heads_interleaved", "split_only", *NOT_ALL, split="interleaved"),
    *each("heads_and_width_swapped", "divide_by", "width", "hd", split="sizes_swapped"),
    ("heads_missing_transpose", {"split": "tokens_first", "sliced": "fit", "merge": "no_transpose"}),
    ("heads_missing_transpose", {"split": "tokens_first", "sliced": "fit"}),
    ("heads_missing_transpose", {"split": "tokens_first"}),
    ("heads_missing_transpose", {"split": "tokens_first", "mask": "none", "sliced": "fit", "merge": "no_transpose"}),
    ("heads_missing_transpose", {"split": "tokens_first", "mask": "none", "sliced": "fit"}),
    *each("heads_missing_transpose", "split_only", "v", "q", "k", "qk", split="tokens_first"),
    *each("heads_averaged", "merge", "mean", "sum", "mean_repeated", "sum_repeated"),
    *each("heads_averaged", "merge", "mean_interleaved", "sum_interleaved"),
    *each("heads_averaged", "head_values", "whole_mean", "whole_sum"),
    ("size_wrong_axis", {"merge": "sizes_of_transposed"}),
    *each("heads_reversed", "merge", "reversed", "rolled", "rolled_back"),
    *each("heads_mix_batch", "split", "view", "heads_first", "batch_beside_heads"),
    ("heads_mix_batch", {"merge": "nh_t_b_folded"}),
    *each("heads_mix_batch", "split", "view", "heads_first", merge="nh_t_b_folded"),
    ("heads_mix_batch", {"split": "heads_first", "merge": "no_transpose"}),
    ("proj_missing", {"proj": "missing"}),
    ("proj_missing", {"proj": "missing", "extra": "no_layer"}),
    ("proj_transposed", {"proj": "transposed"}),
    ("proj_twice", {"proj": "twice"}),
    *each("proj_bias", "no_bias", "o", "O"),
    *each("proj_bias", "proj", "no_bias_used", "bias_each"),
    ("view_not_contiguous", {"merge": "view"}),
    ("view_not_contiguous", {"split": "view_not_contiguous"}),
)

MUTANTS = (
    *attention_mutants(("d_out", "d_in"), WRONG_AXES, sqrt_heads=("nh",)),
    *HEAD_MUTANTS,
    *LAYER_MUTANTS,
    ("dropout_on_output_only", {"drop": ("merged",)}),
    ("dropout_extra", {"drop": ("weights", "merged")}),
    *INPUT_MUTANTS,
    ("hard_coded_shape", {"sizes": {"context": True}}),
    *each("hard_coded_shape", "sizes", *({"C": n} for n in (4, 12, 64, 8, 16, 768))),
    *each("hard_coded_shape", "sizes", *({"nh": n} for n in (2, 4, 3, 8, 12, 6, 1))),
    *each("hard_coded_shape", "sizes", *({"hd": n} for n in (64, 2, 4, 8, 3, 16))),
    *WRITTEN_IN_MUTANTS,
    *each("params_not_registered", "registered", "list", "tensor", "hidden", "forward", "anew"),
    *each("params_not_registered", "registered", "proj_anew", "proj_hidden"),
    ("params_not_registered", {"split": "first_shared"}),
    ("heads_reversed", {"split": "reversed"}),
    *each("params_extra", "extra", "layer", "norm", "temperature"),
    *(
        ("params_extra", {"names": tuple(n.split())})
        for n in ("w_q w_k w_v w_o", "W_query W_key W_value proj", "q_proj k_proj v_proj o_proj")
    ),
    ("super_init_missing", {"super_init": False}),
    *each("interface", "interface", "class", "pair", "required", "fourth", "bias_first", "renamed"),
    BIAS_BY_DEFAULT,
    *each("stub_untouched", "interface", "stub", "silent"),
    KEYS_NOT_TRANSPOSED,
    ("heads_not_joined", edit(".contiguous().view(B, T, self.num_heads * self.head_dim)", "")),
    dropped_in_place("self.dropout"),
)

FAMILIES = ATTENTION_FAMILIES
