"""The wrong ways to attend in groups, and to count a cache."""

import torch
import torch.nn.functional as F
from torch import nn

from manyheads.checks import edit

from ._attention import HEADS_LAST, MERGES, SOURCES, SPLITS, WRONG_AXES
from ._attention_module import CUTS_OF_GRADIENT, OF_FORWARD, OF_INIT, Attention, Weight
from ._attention_mutants import ATTENTION_FAMILIES, CONSTANTS, Runs, each
from ._groups import BYTES, GROUPS, OVER, PACKS, REGROUPS
from ._kept import Keeping
from ._masking import VISIBLE, hidden, of_mask
from ._mutants import HEADS_NOT_JOINED, KEYS_NOT_TRANSPOSED, known, written_in
from ._scaling import PRECEDENCE, factor, scales

NUMBERS = {"int": int, "float": float, "tensor": torch.tensor, "text": str, "none": lambda count: None}


class Grouped(Attention):
    """Right, but for its knobs."""

    def __init__(self, n_embd, n_head, n_kv_head, block_size):
        k = self.knobs
        nn.Module.__init__(self)
        if n_embd % n_head and k.divisibility not in ("open", "of_sets"):
            raise ValueError(f"n_embd = {n_embd} cannot be cut into n_head = {n_head} equal heads")
        if n_head % n_kv_head and k.divisibility not in ("open", "of_heads"):
            raise ValueError(f"n_head = {n_head} cannot be shared out among n_kv_head = {n_kv_head}")
        self.n_head, self.n_kv_head, self.block_size = n_head, n_kv_head, block_size
        self.p, self.drop, self.drop_output = 0.1, nn.Dropout(0.1), nn.Dropout(0.1)
        self.make(n_embd, 2 * n_kv_head * (n_embd // n_head), k.params)
        self.hold_mask(k.holder, block_size)

    def make(self, C, of_kv, params):
        """The layers, as `params` says."""
        sizes = {"q": (C, C), "kv": (C, of_kv), "proj": (C, C)}
        if params == "full_width":
            sizes["kv"] = (C, 2 * C)
        elif params == "half_width":
            sizes["kv"] = (C, of_kv // 2)
        names = {"renamed": {"q": "W_query", "kv": "W_kv", "proj": "out_proj"}, "renamed_q": {"q": "query"}}
        self.names = names.get(params, {})
        hidden = {"unregistered": ("q", "kv", "proj"), "kv_unregistered": ("kv",), "q_unregistered": ("q",)}
        biased = {"both_biases": ("q", "kv", "proj"), "q_bias": ("q",), "kv_bias": ("kv",), "proj_bias": ("proj",)}
        self.anew = {"anew": ("q", "kv", "proj"), "kv_anew": ("kv",)}.get(params, ())
        for name, (n_in, n_out) in sizes.items():
            lost = name in hidden.get(params, ())
            layer = Weight(n_in, n_out) if lost else nn.Linear(n_in, n_out, bias=name in biased.get(params, ()))
            if params != "separate" or name != "kv":
                setattr(self, self.names.get(name, name), layer)
        if params == "separate":
            self.k, self.v = (nn.Linear(C, of_kv // 2, bias=False) for _ in "kv")
        elif params == "temperature":
            self.temperature = nn.Parameter(torch.ones(1))
        elif params == "layer_norm":
            self.norm = nn.LayerNorm(C)

    def weight_of(self, name):
        if self.knobs.params == "separate" and name == "kv":
            return torch.cat([self.k.weight, self.v.weight])
        layer = getattr(self, self.names.get(name, name))
        if name in self.anew:
            layer = nn.Linear(layer.in_features, layer.out_features, bias=False).to(layer.weight)
        return layer.weight

    def projected(self, x, name, k):
        W = self.cut("W", self.weight_of(name), k)
        z = x @ W.view(W.shape[::-1]) if name in k.untransposed else F.linear(x, W)
        bias = getattr(getattr(self, name, None), "bias", None)
        return z if bias is None else z + bias

    def attend(self, x, s, k):
        s.nkv = self.n_kv_head
        q = SPLITS[k.split](self.projected(x, "q", k), s)
        key, v = PACKS[k.pack](self.projected(x, "kv", k), s)
        q = REGROUPS[k.regroup](q, s)
        key, v = (GROUPS[k.group if name in k.group_of else "shared"](t, s) for name, t in (("k", key), ("v", v)))
        q, key, v = SOURCES[k.source](q, key, v, SPLITS["heads"](x, s))
        if k.attend_over == "heads":
            q, key, v = (t.transpose(1, 2) for t in (q, key, v))
        y = self.gather(*(self.cut(place, t, k) for place, t in zip("qkv", (q, key, v), strict=True)), s, k)
        if k.attend_over == "heads":
            y = y.transpose(1, 2)
        return MERGES[k.merge](REGROUPS[k.regroup_out](y, s), s)

    def gather(self, q, key, v, s, k):
        if k.over == "keys":
            return super().gather(q, key, v, s, k)
        (which, how), seen = of_mask(k.mask), self.mask_for(q, k.holder_in_use, s)
        scores = hidden(q @ key.transpose(-2, -1) * factor(k.scale, s), VISIBLE[which](seen), how)
        return OVER[k.over](scores.unflatten(1, (s.nkv, -1))).reshape(scores.shape) @ v


OWN = {
    "pack": "keys_then_values", "group": "shared", "group_of": "kv", "regroup": "no", "regroup_out": "no",
    "over": "keys", "untransposed": "", "bytes": "right", "number": "int",
}  # fmt: skip


def make(**knobs):
    """The exercise's names, with these faults."""
    k = known(knobs, OF_INIT | OF_FORWARD | {"dropout": "missing"} | OWN)
    k.holder_in_use = k.holder
    count = BYTES[k.bytes]

    def kv_cache_bytes(n_layer, n_head, n_kv_head, head_dim, T, bytes_per_number=2):
        return NUMBERS[k.number](count(n_layer, n_head, n_kv_head, head_dim, T, bytes_per_number))

    return {
        "GroupedQueryAttention": type("GroupedQueryAttention", (Keeping, Grouped), {"knobs": k}),
        "kv_cache_bytes": kv_cache_bytes,
    }


ASTRAY = ("by_tokens", "by_batch", "flattened", "as_often_as_sets", "as_often_as_heads", "stretched")

K, V = "k.repeat_interleave(group, dim=1)", "v.repeat_interleave(group, dim=1)"
CUT_K, CUT_V = (f"{name} = {name}.view(B, T, self.n_kv_head, self.head_dim).transpose(1, 2)" for name in "kv")
STRAIGHT_K, STRAIGHT_V = (f"{name} = {name}.reshape(B, self.n_kv_head, T, self.head_dim)" for name in "kv")
SIZES, OUT, QK = "B, T, C = x.shape", "y.transpose(1, 2).reshape(B, T, C)", "q @ k.transpose(-2, -1)"
GROUPED = "y.unflatten(1, (-1, group))"  # (B, n_kv_head, group, T, hd)

# Edits of the reference: (id, text, its replacement).
MORE = (
    *(("heads_averaged", OUT, f"{GROUPED}.{way}(2).repeat_interleave(group, 1).transpose(1, 2).reshape(B, T, C)") for way in ("mean", "sum")),
    ("heads_averaged", OUT, f"{GROUPED}.mean(2).transpose(1, 2).reshape(B, T, -1).repeat(1, 1, group)"),
    ("heads_averaged", QK, "q.unflatten(1, (-1, group)).mean(2).repeat_interleave(group, 1) @ k.transpose(-2, -1)"),
    ("merge_wrong_axes", OUT, f"{GROUPED}.transpose(2, 3).reshape(B, T, C)"),
    ("merge_wrong_axes", OUT, f"{GROUPED}.permute(0, 3, 1, 4, 2).reshape(B, T, C)"),
    ("hard_coded_shape", SIZES, f"x = x[:1]\n        {SIZES}"),
    *(("hard_coded_dtype", QK, f"q @ k.{half}().to(k).transpose(-2, -1)") for half in ("half", "bfloat16")),
    ("wrong_view_values", CUT_K, STRAIGHT_K),
    ("wrong_view_values", CUT_V, STRAIGHT_V),
    ("heads_mix_batch", "self.q(x).view(B, T, self.n_head, self.head_dim).transpose(1, 2)", "self.q(x).view(self.n_head, B, T, -1).transpose(0, 1)"),
    ("heads_mix_batch", CUT_K, CUT_K.replace("view(B, T, self.n_kv_head,", "reshape(self.n_kv_head, B, T,").replace("(1, 2)", "(0, 1)")),
    ("cache_bytes", "numbers * bytes_per_number", "numbers * bytes_per_number / 1024**3"),
)  # fmt: skip
# Which head of keys and values a head of queries gets.
STRETCHED = ("repeat(1, 1, 1, group)", "repeat_interleave(group, 3)")
REPEATED = (
    "[:, [min(h // self.n_kv_head, self.n_kv_head - 1) for h in range(self.n_head)]]",
    "[:, [h // self.n_kv_head for h in range(self.n_head)]]",
    *(f".{way}.reshape(B, self.n_head, T, -1)" for way in STRETCHED),
)

MUTANTS = (
    ("kv_heads_tiled", {"group": "tiled"}),
    *scales("sqrt_c", "missing"),
    ("mask_missing", {"mask": "missing"}),
    ("scores_ignored", {"scale": 0.0}),
    ("scores_ignored", {"scale": 0.0, "cut_gradient": ("scores",)}),
    ("kv_packed_wrong", {"pack": "per_set"}),
    ("qkv_order", {"pack": "values_then_keys"}),
    ("kv_heads_first_only", {"group": "first_only"}),
    ("kv_heads_not_repeated", {"group": "not_repeated"}),
    ("layer_widths", {"params": "full_width"}),
    ("wrong_view", {"split": "straight", "pack": "straight"}),
    ("wrong_view_both", {"split": "straight", "pack": "straight", "merge": "straight"}),
    ("merge_no_transpose", {"merge": "straight"}),
    ("scale_no_sqrt", {"scale": "hd"}),
    ("scale_twice", {"scale": "hd", "scaled": "scores+scores"}),
    ("proj_missing", {"proj": "missing"}),
    *Runs.LIKELY,
    *each("kv_heads_tiled", group="tiled", group_of=("k", "v")),
    *each("kv_heads_tiled", regroup=("groups_outermost", "sets_innermost")),
    *each("merge_wrong_axes", regroup_out=("groups_outermost", "sets_innermost")),
    *each("kv_heads_tiled", group=("channels_cut", "expanded_over_batch")),
    *each("kv_heads_first_only", group=("first_only", "last_only"), group_of=("kv", "k", "v")),
    *each("kv_heads_repeated_wrong", group=ASTRAY),
    *each("heads_averaged", group=("mean", "sum")),
    ("heads_reversed", {"group": "reversed"}),
    *each("kv_packed_wrong", pack=("per_set_swapped", "per_channel", "sets_innermost")),
    *each("wrong_view", pack=("straight", "sets_before_tokens", "along_tokens")),
    *each("qkv_mix_batch", pack=("pair_outermost", "along_batch")),
    *scales("times_sqrt_hd", "times_hd", *PRECEDENCE, "sqrt_heads", "sqrt_sets", "sqrt_group", "heads", "sqrt_tokens"),
    *scales("sqrt_block", "tokens", "sqrt_kv_width", "sqrt_c_over_sets", "sqrt_3c", "c", "three_times"),
    *scales("sqrt_batch", "sqrt_batch_and_heads"),
    *Runs.ROUNDED,
    *each("scale_after_softmax", scaled=("weights", "scores+weights")),
    *each("scale_constant", scale=CONSTANTS),
    *Runs.AXES_MASKED_OR_NOT,
    *each("softmax_wrong_axis", over=("sets", "group"), mask=("causal", -1e9, "missing")),
    *each("softmax_query_axis", over="queries_of_group", mask=("causal", -1e9, "missing")),
    ("softmax_query_axis", {"softmax": "queries", "mask": "missing"}),
    *Runs.NO_SOFTMAX,
    *each("mask_reversed", mask=(("inverted", -1e9), "reversed")),
    *each("mask_excludes_self", mask=(("excludes_self", -1e9), "excludes_self_but_first")),
    ("mask_peeks_one", {"mask": "peeks_two"}),
    ("mask_sdpa_inverted", {"mask": "inverted", "softmax": "as_numbers"}),
    ("mask_excludes_self", {"mask": "excludes_self", "softmax": "as_numbers"}),
    *Runs.HIDDEN,
    *each("wrong_view_values", split=("straight", "straight_hd_first", "swapped_first")),
    *each("merge_wrong_axes", merge=WRONG_AXES),
    ("heads_interleaved", {"split": "interleaved"}),
    ("heads_interleaved", {"split": "interleaved", "merge": HEADS_LAST}),
    *each("heads_missing_transpose", attend_over="heads", mask=("causal", "missing")),
    *each("heads_averaged", merge=[way for way in MERGES if way.startswith(("mean", "sum"))]),
    *each("heads_reversed", merge=("reversed", "rolled", "rolled_back")),
    *each("heads_mix_batch", merge=("axes_(1, 2, 0, 3)", "heads_from_batch", "heads_along_tokens", "batch_viewed")),
    *each("values_wrong_source", source=("v_is_k", "v_is_x", "v_is_q")),
    ("values_wrong_source", {"pack": "values_twice"}),
    *each("weight_not_transposed", untransposed=(["q"], ["kv"], ["q", "kv"])),
    ("proj_transposed", {"proj": "untransposed"}),
    ("proj_twice", {"proj": "twice"}),
    *each("proj_bias", params=("both_biases", "q_bias", "kv_bias", "proj_bias")),
    *each("dropout_extra", dropout=("weights_missing", "output_missing")),
    *each("dropout_always_on", dropout=("functional", "weights_functional")),
    *Runs.STATE_KEPT,
    ("state_kept", {"kept": "answers"}),
    *each("view_not_contiguous", merge=("view_after_permute", "contiguous_too_early")),
    *each("divisibility_unchecked", divisibility=("open", "of_heads", "of_sets")),
    *each("hard_coded_dtype", entrance=("float32", "float64", "half")),
    ("hard_coded_dtype", {"returned": "float32"}),
    *each("params_not_registered", params=("unregistered", "kv_unregistered", "q_unregistered", "anew", "kv_anew")),
    *each("params_extra", params=("renamed", "renamed_q", "separate", "temperature", "layer_norm")),
    ("layer_widths", {"params": "half_width"}),
    *each("gradient_cut", cut_gradient=CUTS_OF_GRADIENT),
    ("input_mutated", {"entrance": "zeroed"}),
    *each("hard_coded_shape", fixed=written_in(nh=(4, 8, 12), hd=(64, 16, 8), B=(2, 1), T=(8, "block"), C=(64,))),
    ("hard_coded_device", {"holder": "made_on_default_device"}),
    *each("hard_coded_device", entrance=("cpu_back", "cpu", "cuda")),
    *each("cache_bytes", bytes=[way for way in BYTES if way != "right"]),
    *each("interface", number=("float", "tensor", "text", "none")),
    *each("interface", returned=("with_nothing", "list", "nothing", "numpy")),
    KEYS_NOT_TRANSPOSED,
    HEADS_NOT_JOINED,
    *((id_, edit(old, new)) for id_, old, new in MORE),
    *(("kv_heads_repeated_wrong", edit(K, f"k{way}", {V: f"v{way}"})) for way in REPEATED),
)

FAMILIES = ATTENTION_FAMILIES
