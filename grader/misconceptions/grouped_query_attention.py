"""The wrong ways to attend in groups, and to count a cache."""

import torch.nn.functional as F
from torch import nn

from manyheads.checks import Mutant

from . import _module_edits as edits
from ._attention import MERGES, SOURCES, SPLITS
from ._attention_module import CUTS_OF_GRADIENT, KNOBS, Attention
from ._attention_mutants import ATTENTION_FAMILIES, CONSTANTS, Runs
from ._groups import BYTES, GROUPS, OVER, PACKS, REGROUPS
from ._layers import module
from ._masking import VISIBLE, hidden, of_mask
from ._mutants import (
    HEADS_NOT_JOINED,
    KEYS_NOT_TRANSPOSED,
    SCORES_WRONG_SOURCE,
    mutants,
    values_transposed,
    variants,
    written_in,
)
from ._scaling import PRECEDENCE, factor, scales


class Grouped(Attention):
    """The module, right except for its knobs."""

    def __init__(self, n_embd, n_head, n_kv_head, block_size):
        self.n_kv_head = n_kv_head
        super().__init__(n_embd, n_head, block_size)

    def make_layers(self, C):
        if self.n_head % self.n_kv_head:
            raise ValueError(
                f"n_head = {self.n_head} cannot be shared out among n_kv_head = {self.n_kv_head}"
            )
        of_kv = 2 * self.n_kv_head * (C // self.n_head)
        widths = {
            "q": C,
            "kv": {"full": 2 * C, "half": of_kv // 2}.get(self.knobs.width, of_kv),
            "proj": C,
        }
        for name, n_out in widths.items():
            setattr(self, name, nn.Linear(C, n_out, bias=False))

    def projected(self, x, name, k):
        W = self.cut("W", getattr(self, name).weight, k)
        return (
            x @ W.view(W.shape[::-1])
            if name in k.untransposed
            else F.linear(x, W, getattr(self, name).bias)
        )

    def attend(self, x, s, k):
        s.nkv = self.n_kv_head
        q = SPLITS[k.split](self.projected(x, "q", k), s)
        key, v = PACKS[k.pack](self.projected(x, "kv", k), s)
        q = REGROUPS[k.regroup](q, s)
        key, v = (
            GROUPS[k.group if name in k.group_of else "shared"](t, s)
            for name, t in (("k", key), ("v", v))
        )
        y = self.joined(*SOURCES[k.source](q, key, v, SPLITS["heads"](x, s)), s, k)
        return MERGES[k.merge](REGROUPS[k.regroup_out](y, s), s)

    def gather(self, q, key, v, s, k):
        if k.over == "keys":
            return super().gather(q, key, v, s, k)
        (pattern, how), mask = of_mask(k.mask), self.mask_for(q, k.holder_in_use, s)
        scores = hidden(q @ key.transpose(-2, -1) * factor(k.scale, s), VISIBLE[pattern](mask), how)
        return OVER[k.over](scores.unflatten(1, (s.nkv, -1))).reshape(scores.shape) @ v


OWN = {
    "pack": "keys_then_values",
    "group": "shared",
    "group_of": "kv",
    "regroup": "no",
    "regroup_out": "no",
    "over": "keys",
    "untransposed": "",
    "width": "right",
}


def make(**knobs):
    """Return the exercise's names, with these faults."""
    return module("GroupedQueryAttention", Grouped, KNOBS | OWN, knobs) | {
        "kv_cache_bytes": lambda n_layer, n_head, n_kv_head, head_dim, T, bytes_per_number=2: (
            2 * n_layer * n_kv_head * head_dim * T * bytes_per_number
        )
    }


NUMBERS = ("float", "torch.tensor", "str")
WRONG_GROUPS = (
    "by_tokens",
    "by_batch",
    "flattened",
    "as_often_as_sets",
    "as_often_as_heads",
    "stretched",
)

K, V = "k.repeat_interleave(group, dim=1)", "v.repeat_interleave(group, dim=1)"
HALVED = "self.kv(x).chunk(2, dim=-1)"
CUT_K, CUT_V = (
    f"{name} = {name}.view(B, T, self.n_kv_head, self.head_dim).transpose(1, 2)" for name in "kv"
)
K_WITHOUT_TRANSPOSE, V_WITHOUT_TRANSPOSE = (
    f"{name} = {name}.reshape(B, self.n_kv_head, T, self.head_dim)" for name in "kv"
)
SIZES, OUT, QK = (
    "B, T, C = x.shape",
    "y.transpose(1, 2).reshape(B, T, C)",
    "q @ k.transpose(-2, -1)",
)
PROJECTED, SOFTMAX, COUNT = f"self.proj({OUT})", edits.SOFTMAX, "return numbers * bytes_per_number"
KV, SETS = (
    "self.kv = nn.Linear(n_embd, 2 * n_kv_head * self.head_dim, bias=False)",
    "if n_head % n_kv_head != 0:",
)
TWO_LAYERS = (
    "self.k, self.v = (nn.Linear(n_embd, n_kv_head * self.head_dim, bias=False) for _ in range(2))"
)
DROPPED = f"nn.functional.dropout({PROJECTED}, 0.1, self.training)"
ALWAYS = f"nn.functional.dropout({SOFTMAX}, 0.1)"
MEAN_OF_GROUP = "q.unflatten(1, (-1, group)).mean(2).repeat_interleave(group, 1)"
GROUPED = "y.unflatten(1, (-1, group))"  # (B, n_kv_head, group, T, hd)

# Which head of keys and values a head of queries gets.
STRETCHED = ("repeat(1, 1, 1, group)", "repeat_interleave(group, 3)")
MISASSIGNED = (
    "[:, [min(h // self.n_kv_head, self.n_kv_head - 1) for h in range(self.n_head)]]",
    "[:, [h // self.n_kv_head for h in range(self.n_head)]]",
)
REPEATED = tuple(f".{method}.reshape(B, self.n_head, T, -1)" for method in STRETCHED)

MUTANTS = (
    Mutant("kv_heads_tiled", variant={"group": "tiled"}),
    *scales("sqrt_c", "missing"),
    Mutant("mask_missing", variant={"mask": "missing"}),
    *variants("scores_ignored", scale=0.0, cut_gradient=(..., ("scores",))),
    Mutant("kv_packed_wrong", variant={"pack": "per_set"}),
    Mutant("qkv_order", variant={"pack": "values_then_keys"}),
    Mutant("kv_heads_first_only", variant={"group": "first_only"}),
    Mutant("kv_heads_not_repeated", variant={"group": "not_repeated"}),
    Mutant("layer_widths", variant={"width": "full"}),
    Mutant("wrong_view", variant={"split": "straight", "pack": "straight"}),
    Mutant(
        "wrong_view_both", variant={"split": "straight", "pack": "straight", "merge": "straight"}
    ),
    Mutant("merge_no_transpose", variant={"merge": "straight"}),
    Mutant("scale_no_sqrt", variant={"scale": "hd"}),
    Mutant("scale_twice", variant={"scale": "hd", "scaled": "scores+scores"}),
    Mutant("proj_missing", variant={"proj": "missing"}),
    *Runs.LIKELY,
    *variants("kv_heads_tiled", group="tiled", group_of=("k", "v")),
    *variants("query_groups_swapped", regroup=("groups_outermost", "sets_innermost")),
    *variants("heads_reversed", regroup_out=("groups_outermost", "sets_innermost")),
    Mutant("reshape_out_of_order", variant={"group": "channels_cut"}),
    Mutant("heads_mix_batch", variant={"group": "expanded_over_batch"}),
    *variants("kv_heads_first_only", group=("first_only", "last_only"), group_of=("kv", "k", "v")),
    *variants("kv_heads_repeated_wrong", group=WRONG_GROUPS),
    *variants("kv_heads_averaged", group=("mean", "sum"), group_of=("kv", "k", "v")),
    *variants("kv_heads_misassigned", group=("reversed", "rolled"), group_of=("kv", "k", "v")),
    *variants("kv_packed_wrong", pack=("per_set_swapped", "per_channel")),
    Mutant("heads_interleaved", variant={"pack": "sets_innermost"}),
    Mutant("wrong_view_values", variant={"pack": "straight"}),
    Mutant("reshape_out_of_order", variant={"pack": "sets_before_tokens"}),
    Mutant("qkv_mix_batch", variant={"pack": "pair_outermost"}),
    *scales(
        "times_sqrt_hd",
        "times_hd",
        "times_c",
        *PRECEDENCE,
        "sqrt_heads",
        "sqrt_sets",
        "sqrt_group",
        "heads",
        "sqrt_tokens",
    ),
    *scales(
        "sqrt_block",
        "tokens",
        "block",
        "sqrt_kv_width",
        "sqrt_c_over_sets",
        "sqrt_3c",
        "c",
        "three_times",
    ),
    *scales("sqrt_batch", "sqrt_batch_and_heads"),
    *Runs.ROUNDED,
    *edits.rounded(PROJECTED),
    *variants("scale_after_softmax", scaled=("weights", "scores+weights")),
    *variants("scale_constant", scale=CONSTANTS),
    *Runs.AXES_MASKED_OR_NOT,
    *variants("softmax_wrong_axis", over=("sets", "group"), mask=("causal", -1e9, "missing")),
    *variants("softmax_query_axis", over="queries_of_group", mask=("causal", -1e9, "missing")),
    Mutant("softmax_query_axis", variant={"softmax": "queries", "mask": "missing"}),
    *Runs.NO_SOFTMAX,
    *variants("mask_reversed", mask=(("inverted", -1e9), "reversed")),
    *variants("mask_excludes_self", mask=(("excludes_self", -1e9), "excludes_self_but_first")),
    Mutant("mask_sdpa_inverted", variant={"mask": "inverted", "softmax": "as_numbers"}),
    Mutant(
        "mask_reversed", variant={"mask": "inverted", "softmax": "as_numbers"}
    ),  # the same by hand
    Mutant("mask_excludes_self", variant={"mask": "excludes_self", "softmax": "as_numbers"}),
    *Runs.HIDDEN,
    Mutant("wrong_view_values", variant={"split": "straight"}),
    *variants("reshape_out_of_order", split=("straight_hd_first", "swapped_first")),
    *Runs.HEADS,
    *variants("heads_missing_transpose", attend_over="heads", mask=("causal", "missing")),
    *variants("heads_mix_batch", merge=("axes_(1, 2, 0, 3)", "heads_from_batch", "batch_viewed")),
    *variants("values_wrong_source", source=("v_is_k", "v_is_x", "v_is_q")),
    *SCORES_WRONG_SOURCE,
    *variants("weight_not_transposed", untransposed=(["q"], ["kv"], ["q", "kv"])),
    *variants("proj_bias", biases=("on q kv proj", "on q", "on kv", "on proj")),
    Mutant("dropout_extra", DROPPED, replacing=PROJECTED),
    Mutant(
        "dropout_extra", f"nn.functional.dropout({SOFTMAX}, 0.1, self.training)", replacing=SOFTMAX
    ),
    Mutant(
        "dropout_always_on",
        {SOFTMAX: ALWAYS, PROJECTED: f"nn.functional.dropout({PROJECTED}, 0.1)"},
    ),
    Mutant("dropout_always_on", {SOFTMAX: ALWAYS, PROJECTED: DROPPED}),
    *Runs.STATE_KEPT,
    Mutant("state_kept", variant={"kept": "answers"}),
    Mutant("divisibility_unchecked", {edits.UNDIVIDED: "if False:", SETS: "if False:"}),
    *mutants("divisibility_unchecked", {SETS: "if False:"}, {edits.UNDIVIDED: "if False:"}),
    *edits.cast(),
    Mutant("hard_coded_dtype", f"{PROJECTED}.float()", replacing=PROJECTED),
    *variants(
        "params_not_registered",
        lost=("buffer q kv proj", "buffer kv", "buffer q", "anew q kv proj", "anew kv"),
    ),
    *variants(
        "params_extra", renamed=[{"q": "W_query", "kv": "W_kv", "proj": "out_proj"}, {"q": "query"}]
    ),
    Mutant("params_extra", {KV: TWO_LAYERS, "self.kv(x).chunk(2, dim=-1)": "self.k(x), self.v(x)"}),
    *variants("params_extra", extra=("temperature", "norm")),
    Mutant("layer_widths", variant={"width": "half"}),
    *variants("gradient_cut", cut_gradient=CUTS_OF_GRADIENT),
    *edits.written_into("zero_()", out=PROJECTED),
    *variants(
        "hard_coded_shape",
        fixed=written_in(nh=(4, 8, 12), hd=(64, 16, 8), B=(2, 1), T=(8, "block"), C=(64,)),
    ),
    Mutant("hard_coded_device", variant={"holder": "made_on_default_device"}),
    *edits.on_a_device(layer_call="self.kv(x"),
    *mutants(
        "cache_bytes",
        *(f"return {count.replace('hd', 'head_dim')}" for count in BYTES),
        replacing=COUNT,
    ),
    *mutants(
        "interface",
        *(f"return {conversion}(numbers * bytes_per_number)" for conversion in NUMBERS),
        "return None",
        replacing=COUNT,
    ),
    *edits.answers(PROJECTED),
    values_transposed("scores.softmax(dim=-1) @ v"),
    *edits.ADDED_MASK_KEPT,
    KEYS_NOT_TRANSPOSED,
    HEADS_NOT_JOINED,
    *(
        Mutant(
            "heads_averaged",
            f"{GROUPED}.{reduction}(2).repeat_interleave(group, 1).transpose(1, 2).reshape(B,"
            " T, C)",
            replacing=OUT,
        )
        for reduction in ("mean", "sum")
    ),
    Mutant(
        "heads_averaged",
        f"{GROUPED}.mean(2).transpose(1, 2).reshape(B, T, -1).repeat(1, 1, group)",
        replacing=OUT,
    ),
    Mutant("heads_one_width", "self.proj(y[:, -1])", replacing=PROJECTED),
    Mutant("heads_share_weights", f"{SOFTMAX}.mean(1, keepdim=True)", replacing=SOFTMAX),
    Mutant("heads_share_weights", f"({QK}).mean(1, keepdim=True)", replacing=QK),
    Mutant("heads_share_weights", f"{MEAN_OF_GROUP} @ k.transpose(-2, -1)", replacing=QK),
    *(
        Mutant("kv_cut_wrong_axis", f"self.kv(x).chunk(2, dim={axis})", replacing=HALVED)
        for axis in (1, 0)
    ),
    Mutant("merge_wrong_axes", f"{GROUPED}.transpose(2, 3).reshape(B, T, C)", replacing=OUT),
    Mutant("merge_wrong_axes", f"{GROUPED}.permute(0, 3, 1, 4, 2).reshape(B, T, C)", replacing=OUT),
    Mutant("hard_coded_shape", f"x = x[:1]\n        {SIZES}", replacing=SIZES),
    *(
        Mutant("hard_coded_dtype", f"q @ k.{half}().to(k).transpose(-2, -1)", replacing=QK)
        for half in ("half", "bfloat16")
    ),
    Mutant("wrong_view_values", K_WITHOUT_TRANSPOSE, replacing=CUT_K),
    Mutant("wrong_view_values", V_WITHOUT_TRANSPOSE, replacing=CUT_V),
    Mutant(
        "heads_mix_batch",
        "self.q(x).view(self.n_head, B, T, -1).transpose(0, 1)",
        replacing="self.q(x).view(B, T, self.n_head, self.head_dim).transpose(1, 2)",
    ),
    Mutant(
        "heads_mix_batch",
        CUT_K.replace("view(B, T, self.n_kv_head,", "reshape(self.n_kv_head, B, T,").replace(
            "(1, 2)", "(0, 1)"
        ),
        replacing=CUT_K,
    ),
    Mutant("cache_bytes", f"{COUNT} / 1024**3", replacing=COUNT),
    *(Mutant("kv_heads_misassigned", {K: f"k{suffix}", V: f"v{suffix}"}) for suffix in MISASSIGNED),
    *(Mutant("kv_heads_repeated_wrong", {K: f"k{suffix}", V: f"v{suffix}"}) for suffix in REPEATED),
)

FAMILIES = ATTENTION_FAMILIES
