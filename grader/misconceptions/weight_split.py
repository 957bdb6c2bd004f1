"""Wrong attempts at multi-head attention by weight split: one causal head with heads cut from its channels."""

from types import SimpleNamespace

from torch import nn

from manyheads.checks import edit

from ._attention import MERGES, MIXES, SPLITS
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

# Further ways to (B, nh, T, hd) from (B, T, C), and to (B, T, C) from these.
SPLIT = SPLITS | {
    "first_shared": lambda t, s: SPLITS["heads"](t, s)[:, :1].expand(-1, s.nh, -1, -1),
    "tokens_first": lambda t, s: t.view(s.B, s.T, s.nh, s.hd),
    "view_not_contiguous": lambda t, s: SPLITS["heads"](t, s).view(s.B * s.nh, s.T, -1).unflatten(0, (-1, s.nh)),
}
MERGE = MERGES | {
    "sizes_of_transposed": lambda y, s: y.transpose(1, 2).reshape(s.B, y.shape[1], -1),
    "t_b": lambda y, s: y.permute(2, 0, 1, 3).reshape(s.B, s.T, -1),
    "nh_b": lambda y, s: y.transpose(0, 1).reshape(s.B, s.T, -1),
    "t_nh_b": lambda y, s: y.permute(2, 1, 0, 3).reshape(s.B, s.T, -1),
}

HEAD_KNOBS = KNOBS | {
    "divides": "d_out",  # what is checked: d_out, d_in, context, nothing
    "head_values": "matmul",  # whole_mean, whole_sum: each head mixes the values of all, and the heads are added up
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
        return SPLIT[self.knobs.split if which in self.knobs.split_only else "heads"](t, self.sizes_of(t))

    def sizes_of(self, t):
        return SimpleNamespace(B=len(t), T=t.shape[1], C=-1, nh=self.num_heads, hd=-1)

    def mixed(self, weights, v):
        return MIXES[self.knobs.head_values](weights, v)

    def as_values(self, x, q):
        return x.reshape(*x.shape[:2], self.num_heads, q.shape[-1]).transpose(1, 2)

    def merge(self, out, layers, x):
        out = MERGE[self.knobs.merge](out, self.sizes_of(x))
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
    ("wrong_view", {"split": "straight"}),
    ("wrong_view_both", {"split": "straight", "merge": "straight"}),
    *each("wrong_view_values", "split_only", *NOT_ALL, split="straight"),
    *each("wrong_view_values", "split_only", *NOT_ALL, split="straight", merge="straight"),
    *each("wrong_view_values", "split_only", "k", "q", "v", split="straight_hd_first"),
    ("merge_no_transpose", {"merge": "straight"}),
    *each("merge_wrong_axes", "merge", "axes_(3, 2, 1)", "axes_(1, 3, 2)", "axes_(2, 3, 1)"),
    ("heads_interleaved", {"merge": "axes_(2, 3, 1)"}),
    *each("merge_wrong_axes", "merge", "axes_(3, 1, 2)", "t_b", "nh_b", "batch_joined", "t_nh_b"),
    ("heads_interleaved", {"split": "interleaved"}),
    ("heads_interleaved", {"split": "interleaved", "merge": "axes_(2, 3, 1)"}),
    *each("heads_interleaved", "split_only", *NOT_ALL, split="interleaved"),
    *each("heads_and_width_swapped", "divide_by", "width", "hd", split="sizes_swapped"),
    ("heads_missing_transpose", {"split": "tokens_first", "sliced": "fit", "merge": "straight"}),
    ("heads_missing_transpose", {"split": "tokens_first", "sliced": "fit"}),
    ("heads_missing_transpose", {"split": "tokens_first"}),
    ("heads_missing_transpose", {"split": "tokens_first", "mask": "none", "sliced": "fit", "merge": "straight"}),
    ("heads_missing_transpose", {"split": "tokens_first", "mask": "none", "sliced": "fit"}),
    *each("heads_missing_transpose", "split_only", "v", "q", "k", "qk", split="tokens_first"),
    *each("heads_averaged", "merge", "mean", "sum", "mean_repeated", "sum_repeated"),
    *each("heads_averaged", "merge", "mean_interleaved", "sum_interleaved"),
    *each("heads_averaged", "head_values", "whole_mean", "whole_sum"),
    ("size_wrong_axis", {"merge": "sizes_of_transposed"}),
    *each("heads_reversed", "merge", "reversed", "rolled", "rolled_back"),
    *each("heads_mix_batch", "split", "straight", "batch_after_heads", "batch_swapped"),
    ("heads_mix_batch", {"merge": "batch_viewed"}),
    *each("heads_mix_batch", "split", "straight", "batch_after_heads", merge="batch_viewed"),
    ("heads_mix_batch", {"split": "batch_after_heads", "merge": "straight"}),
    ("proj_missing", {"proj": "missing"}),
    ("proj_missing", {"proj": "missing", "extra": "no_layer"}),
    ("proj_transposed", {"proj": "transposed"}),
    ("proj_twice", {"proj": "twice"}),
    *each("proj_bias", "no_bias", "o", "O"),
    *each("proj_bias", "proj", "no_bias_used", "bias_each"),
    ("view_not_contiguous", {"merge": "contiguous_too_early"}),
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
