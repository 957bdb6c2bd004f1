"""The wrong ways to let one sequence ask another, and to hide its padding."""

from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

from manyheads.checks import edit

from ._attention import HEADS_LAST, MERGES, SPLITS, WRONG_AXES
from ._attention_module import CUTS_OF_GRADIENT, ENTRANCES, EXITS, RETURNS, Attention, Weight
from ._attention_mutants import AXES, CONSTANTS, WEAK, WRONG_VIEWS, added, each
from ._kept import Keeping
from ._masking import INF, lower
from ._mutants import FILLS_TRIED, KEYS_NOT_TRANSPOSED, LOW_FILLS, OF_HEADS, SCALES_TRIED, SUPER_INIT_MISSING, known
from ._scaling import PRECEDENCE, scales

# What is seen, from keep (B, T_k) and the scores (B, nh, T_q, T_k).
SEEN = {
    "keys": lambda keep, a: keep[:, None, None, :],
    "queries": lambda keep, a: keep[:, None, :, None],
    # The two lengths made the same by cutting, or by padding with what is hidden or seen.
    "queries_cut": lambda keep, a: cut_or_padded(keep, a, True),
    "queries_cut_hidden": lambda keep, a: cut_or_padded(keep, a, False),
    "both": lambda keep, a: keep[:, None, :, None] & keep[:, None, None, :],
    "either": lambda keep, a: keep[:, None, :, None] | keep[:, None, None, :],
    "as_it_is": lambda keep, a: keep,
    "one_axis": lambda keep, a: keep[:, None, :],
    "one_axis_behind": lambda keep, a: keep[:, :, None],
    "causal": lambda keep, a: square(a) & keep[:, None, None, :],
    "causal_from_the_end": lambda keep, a: square(a, a.shape[-1] - a.shape[-2]) & keep[:, None, None, :],
    "causal_alone": lambda keep, a: square(a),
    "causal_of_queries": lambda keep, a: lower(a.shape[-2], a.device),
    # Heads folded into the batch, and keep repeated in the other order.
    "batch_innermost": lambda keep, a: keep.repeat(a.shape[1], 1).view(len(keep), a.shape[1], 1, -1),
    "batch_outermost": lambda keep, a: (
        keep.repeat_interleave(a.shape[1], 0).view(a.shape[1], len(keep), 1, -1).transpose(0, 1)
    ),
    "first_head": lambda keep, a: (
        keep[:, None, None, :] | (torch.arange(a.shape[1], device=a.device) > 0)[:, None, None]
    ),
}
ALWAYS = ("causal", "causal_alone", "causal_from_the_end", "causal_of_queries")  # without a keep, too


def square(a, diagonal=0):
    return torch.ones(a.shape[-2:], dtype=torch.bool, device=a.device).tril(diagonal)


def cut_or_padded(keep, a, seen):
    T = a.shape[-2]
    return F.pad(keep[:, :T], (0, max(0, T - keep.shape[1])), value=seen)[:, None, :, None]


# Which side queries, keys and values come from.
SIDES = {
    "apart": lambda x, context: (x, context, context),
    "keys_from_x": lambda x, context: (x, x, context),
    "values_from_x": lambda x, context: (x, context, x),
    "both_from_x": lambda x, context: (x, x, x),
    "swapped": lambda x, context: (context, x, x),
    "queries_from_context": lambda x, context: (context, context, context),
    "joined": lambda x, context: (x, *[torch.cat([x, context], dim=1)] * 2),
}
SOURCES = {
    "own": lambda q, k, v: (q, k, v),
    "v_is_k": lambda q, k, v: (q, k, k),
    "v_is_q": lambda q, k, v: (q, k, q),
    "q_is_k": lambda q, k, v: (k, k, v),
}
LAYERS = {"q": "W_query", "k": "W_key", "v": "W_value", "o": "out_proj"}
RIGHT = {
    "sides": "apart", "source": "own", "seen": "keys", "mask": "causal", "none": "all", "softmax": "keys",
    "softmax_of": "queries_by_keys", "scale": "sqrt_hd", "scaled": "scores", "scores": "no", "split": "heads",
    "split_of": "qkv", "merge": "heads", "lengths": "own", "attend_over": "tokens", "layers": "qkv", "transposed": "",
    "proj": "linear", "params": "right", "biased": "o", "divisibility": "checked", "dropout": "no",
    "cut_gradient": (), "cut_context": False, "entrance": "plain", "of_context": False, "returned": "tensor", "fixed": None,
    "kept": "nothing", "mix": "matmul", "holder_in_use": "keep",
}  # fmt: skip


class Cross(Attention):
    """Right, but for its knobs."""

    def __init__(self, d_query, d_context, d_out, num_heads):
        k = self.knobs
        nn.Module.__init__(self)
        divided = d_query if k.divisibility == "of_query" else d_out
        if divided % num_heads and k.divisibility != "open":
            raise ValueError(f"d_out = {d_out} cannot be cut into num_heads = {num_heads} equal heads")
        self.num_heads, self.d_out, self.p = num_heads, d_out, 0.1
        for letter, name in LAYERS.items():
            n_in = {"q": d_query, "o": d_out}.get(letter, d_query if k.params == "widths_of_query" else d_context)
            lost = k.params == "unregistered" or k.params == f"{name}_unregistered"
            layer = Weight(n_in, d_out) if lost else nn.Linear(n_in, d_out, bias=letter in k.biased)
            setattr(self, f"{name}_" if k.params in ("renamed", f"{name}_renamed") else name, layer)
        if k.params == "temperature":
            self.temperature = nn.Parameter(torch.ones(1))
        elif k.params == "layer_norm":
            self.norm = nn.LayerNorm(d_out)

    def project(self, letter, t, transposed=False):
        k, name = self.knobs, LAYERS[letter]
        layer = getattr(self, f"{name}_" if k.params in ("renamed", f"{name}_renamed") else name)
        weight, bias = self.cut("W", layer.weight, k), getattr(layer, "bias", None)
        if k.params == "anew":
            weight = nn.Linear(*weight.shape[::-1]).weight.to(weight)
        z = t @ weight if transposed else F.linear(t, weight)
        return z if bias is None else z + bias

    def forward(self, x, context, keep=None):
        k, given = self.knobs, (context if self.knobs.of_context else x)
        changed = ENTRANCES[k.entrance]
        x, context = (x, changed(context)) if k.of_context else (changed(x), context)
        if k.cut_context:
            context = context.detach()
        s = SimpleNamespace(B=len(x), T=x.shape[1], T_k=context.shape[1], nh=self.num_heads, C=self.d_out)
        s.d_query, s.d_context, s.hd = x.shape[-1], context.shape[-1], self.d_out // self.num_heads
        for name, value in (k.fixed or {}).items():
            setattr(s, name, value)
        s.block = s.T_k
        sides = dict(zip("qkv", SIDES[k.sides](self.cut("x", x, k), context), strict=True))
        found = {c: self.project(layer, sides[c], c in k.transposed) for c, layer in zip("qkv", k.layers, strict=True)}
        q, key, v = (self.split(c, found[c], s) for c in "qkv")
        q, key, v = SOURCES[k.source](q, key, v)
        y = self.attend(q, key, v, keep, s)
        s.T = s.T_k if k.lengths == "answer" else y.shape[2]
        y = self.cut("y", MERGES[k.merge](y, s), k)
        out = {"missing": lambda: y, "untransposed": lambda: self.project("o", y, transposed=True),
               "twice": lambda: self.project("o", self.project("o", y))}.get(k.proj, lambda: self.project("o", y))()  # fmt: skip
        out = self.cut("out", F.dropout(out, self.p, self.training) if k.dropout == "output" else out, k)
        if k.entrance in EXITS:
            EXITS[k.entrance](given, out if out.shape == given.shape else given)
        return RETURNS[k.returned](out)

    def split(self, c, t, s):
        k, T = self.knobs, (s.T if c == "q" else s.T_k)
        if k.lengths == ("keys" if c in "kv" else "queries"):
            T = s.T_k if c == "q" else s.T
        elif k.sides != "apart" and k.fixed is None:
            T = t.shape[1]
        way = k.split if c in k.split_of else "heads"
        return SPLITS[way](t, SimpleNamespace(**{**vars(s), "T": T}))

    def attend(self, q, key, v, keep, s):
        k = self.knobs
        q, key, v = (self.cut(place, t, k) for place, t in zip("qkv", (q, key, v), strict=True))
        if k.attend_over == "heads":
            q, key, v = (t.transpose(1, 2) for t in (q, key, v))
        s.keep = keep
        y = self.weigh(q, key, v, s, k)
        return y.transpose(1, 2) if k.attend_over == "heads" else y

    def dropped_weights(self, weights, k):
        return F.dropout(weights, self.p, {"weights": self.training, "always": True}.get(k.dropout, False))

    def mask_for(self, scores, holder, s):
        return self.seen_by(scores, s.keep)

    def seen_by(self, scores, keep):
        k = self.knobs
        if keep is None and k.none == "fails":
            raise TypeError("bad operand type for unary ~: 'NoneType'")
        if keep is None:
            return (
                SEEN[k.seen](torch.ones_like(scores[:, 0, 0], dtype=torch.bool), scores) if k.seen in ALWAYS else None
            )
        return SEEN[k.seen](keep, scores)


def make(**knobs):
    """The exercise's names, with these faults."""
    return {"CrossAttention": type("CrossAttention", (Keeping, Cross), {"knobs": known(knobs, RIGHT)})}


SOME = ("q", "k", "v", "qk", "qv", "kv", "qkv")
ON_QUERIES = ("queries", "both", "either", "queries_cut", "queries_cut_hidden")

# Edits of the reference: (id, text, its replacement).
QK, SOFTMAX = "q @ k.transpose(-2, -1)", "scores.softmax(dim=-1)"
JOINED = "y.reshape(B, T_q, self.num_heads * self.head_dim)"
OUT, SIZES = f"self.out_proj({JOINED})", "B, T_q, _ = x.shape"
ONE_HEAD = "y[:, :, h] @ self.out_proj.weight[:, h * self.head_dim : (h + 1) * self.head_dim].T + self.out_proj.bias"
MORE = (
    ("heads_averaged", QK, f"({QK}).mean(1, keepdim=True)"),
    ("heads_averaged", SOFTMAX, f"{SOFTMAX}.mean(1, keepdim=True)"),
    ("heads_not_joined", JOINED, "y"),
    ("proj_bias", OUT, f"{JOINED} @ self.out_proj.weight.T"),
    ("proj_bias", OUT, f"sum({ONE_HEAD} for h in range(self.num_heads))"),
    ("proj_transposed", OUT, f"{JOINED} @ self.out_proj.weight"),
    ("weight_not_transposed", "self.W_query(x)", "(x @ self.W_query.weight.view(x.shape[-1], -1))"),
    ("weight_not_transposed", "self.W_key(context)", "(context @ self.W_key.weight.view(context.shape[-1], -1))"),
    ("weight_not_transposed", "self.W_value(context)", "(context @ self.W_value.weight.view(context.shape[-1], -1))"),
    ("hard_coded_shape", SIZES, f"x, context, keep = x[:1], context[:1], None if keep is None else keep[:1]\n        {SIZES}"),
    *(("hard_coded_dtype", QK, f"q @ k.{half}().to(k).transpose(-2, -1)") for half in ("half", "bfloat16")),
    ("mask_plus_inf", "scores.masked_fill(~keep[:, None, None, :], -math.inf)", "scores + ~keep[:, None, None, :] * 1e9"),
)  # fmt: skip

MUTANTS = (
    ("mask_missing", {"mask": "missing"}),
    ("keep_inverted", {"mask": "inverted"}),
    *each("keep_on_queries", seen=ON_QUERIES),
    *scales("sqrt_c", "missing"),
    *each("context_ignored", sides=("both_from_x", "keys_from_x", "values_from_x")),
    ("wrong_view", {"split": "straight"}),
    ("wrong_view_both", {"split": "straight", "merge": "straight"}),
    ("merge_no_transpose", {"merge": "straight"}),
    ("scale_no_sqrt", {"scale": "hd"}),
    ("scale_twice", {"scale": "hd", "scaled": "scores+scores"}),
    ("scores_ignored", {"scale": 0.0}),
    ("scores_ignored", {"scale": 0.0, "cut_gradient": ("scores",)}),
    ("softmax_query_axis", {"softmax": "queries"}),
    ("softmax_query_axis", {"softmax_of": "keys_by_queries"}),
    ("mask_after_softmax", {"mask": "after_softmax"}),
    ("mask_zero_fill", {"mask": 0.0}),
    ("mask_zero_fill", {"mask": "zero_twice"}),  # the context itself set to 0
    ("proj_missing", {"proj": "missing"}),
    *each("size_wrong_axis", lengths=("keys", "queries", "answer")),
    *each("layer_widths", params="widths_of_query", sides=("apart", "both_from_x")),
    ("view_not_contiguous", {"merge": "view"}),
    SUPER_INIT_MISSING,
    *each("keep_inverted", mask=(("inverted", -1e9), ("inverted", ("add", -1e9)))),
    # Fused code answers a row that is hidden whole with zeros, and takes keep as attn_mask or as key_padding_mask.
    ("keep_inverted", {"mask": "inverted", "softmax": "as_numbers"}),
    ("mask_sdpa_inverted", {"mask": "inverted", "softmax": "as_numbers"}),
    *each("keep_on_queries", seen=ON_QUERIES, mask=(-1e9, 0.0)),
    *each("keep_on_queries", seen=ON_QUERIES, mask="causal", softmax="as_numbers"),
    *each("keep_on_queries", seen=ON_QUERIES, mask="after_softmax"),
    *each("size_wrong_axis", seen=("as_it_is", "one_axis", "one_axis_behind")),
    *each("causal_extra", seen=ALWAYS),
    *each("causal_extra", seen=("causal", "causal_from_the_end"), mask=-1e9),
    *each("causal_extra", seen=("causal", "causal_from_the_end"), softmax="as_numbers"),
    *each("heads_mix_batch", seen=("batch_innermost", "batch_outermost")),
    ("mask_missing", {"seen": "first_head"}),
    *each("sides_swapped", sides=("swapped", "queries_from_context")),
    ("context_ignored", {"sides": "joined"}),
    ("interface", {"none": "fails"}),
    *scales("times_sqrt_hd", "times_hd", *PRECEDENCE, "sqrt_heads", "heads", "sqrt_tokens", "sqrt_keys", "tokens"),
    *scales("sqrt_d_query", "sqrt_d_context", "sqrt_batch", "sqrt_batch_and_heads", "c", "three_times"),
    *scales("rounded_down", "rounded_up"),
    *each("scale_rounded", scores=("rounded_down", "rounded_down_without_gradient")),
    *each("scale_after_softmax", scaled=("weights", "scores+weights")),
    *each("scale_constant", scale=CONSTANTS),
    *each("softmax_wrong_axis", softmax=AXES, mask=("causal", -1e9, "missing")),
    *each("softmax_query_axis", softmax=("queries", "queries_by_hand"), mask=(-1e9, "missing")),
    ("softmax_query_axis", {"softmax": "queries_as_numbers"}),
    *each("softmax_missing", softmax=("missing", "missing_zero_filled", "sum_zero_filled", "sum")),
    *each("softmax_missing", softmax=("sum_of_sizes_zero_filled", "exp", "sigmoid")),
    *each("softmax_missing", softmax=("norm_zero_filled", "tokens_zero_filled")),
    *each("softmax_missing", softmax=("missing", "sum", "sigmoid"), mask=(0.0, -1e9, "missing")),
    *each("mask_weak_fill", mask=[*WEAK, *added(*WEAK[:3]), *LOW_FILLS, *OF_HEADS]),
    *each("mask_weak_fill", mask=[*WEAK[:3], *added(*WEAK[:3])], scaled="hidden"),
    *each("mask_plus_inf", mask=(INF, 1e9)),
    *each("mask_nan", mask=("nan_product", "nan_factor", "nan_zero_factor")),
    ("mask_nan", {"mask": "after_softmax_low"}),
    *each("mask_added", mask=("add_seen", "add_hidden")),
    *each("mask_added", mask=("add_seen", "add_hidden"), scaled="hidden"),
    *each("wrong_view", split=WRONG_VIEWS[1:]),
    *each("wrong_view_values", split="straight", split_of=("v", "q", "k", "qk", "qv", "kv")),
    *each("merge_wrong_axes", merge=WRONG_AXES),
    ("heads_interleaved", {"split": "interleaved"}),
    ("heads_interleaved", {"split": "interleaved", "merge": HEADS_LAST}),
    *each("heads_and_width_swapped", split="sizes_swapped", scale=("sqrt_hd", "sqrt_heads")),
    ("heads_missing_transpose", {"attend_over": "heads"}),
    ("heads_missing_transpose", {"attend_over": "heads", "mask": "missing"}),
    *each("heads_averaged", merge=[way for way in MERGES if way.startswith(("mean", "sum"))]),
    *each("heads_reversed", merge=("reversed", "rolled", "rolled_back")),
    *each("heads_mix_batch", merge=("axes_(1, 2, 0, 3)", "heads_from_batch", "batch_viewed")),
    *each("heads_mix_batch", split=("batch_after_heads", "batch_swapped", "batch_and_tokens")),
    *each("qkv_order", layers=("qvk", "kqv", "vqk", "kvq", "vkq")),
    *each("values_wrong_source", source=("v_is_k", "v_is_q", "q_is_k")),
    *each("weight_not_transposed", transposed=SOME),
    ("proj_transposed", {"proj": "untransposed"}),
    ("proj_twice", {"proj": "twice"}),
    *each("proj_bias", biased=("", "qkvo", "kvo", "qo", "qkv", "ko", "vo", "qko", "qvo")),
    *each("dropout_extra", dropout=("weights", "output")),
    ("dropout_always_on", {"dropout": "always"}),
    *each("state_kept", kept=("last_keep", "context", "answers", "batch", "tokens")),
    *each("view_not_contiguous", merge=("view_after_permute", "contiguous_too_early")),
    *each("divisibility_unchecked", divisibility=("open", "of_query")),
    *each("hard_coded_dtype", entrance=("float32", "float64", "half")),
    ("hard_coded_dtype", {"returned": "float32"}),
    *each("params_not_registered", params=("unregistered", "W_key_unregistered", "out_proj_unregistered", "anew")),
    *each("params_extra", params=("renamed", "out_proj_renamed", "temperature", "layer_norm")),
    *each("gradient_cut", cut_gradient=[cut for cut in CUTS_OF_GRADIENT if "proj" not in cut]),
    ("gradient_cut", {"cut_context": True}),
    *each("input_mutated", entrance="zeroed", of_context=(False, True)),
    *each("hard_coded_shape", fixed=[{"nh": 4}, {"nh": 8}, {"hd": 64}, {"B": 2}, {"T": 8}, {"T_k": 8}]),
    *each("hard_coded_device", entrance=("cpu_back", "cpu", "cuda")),
    *each("interface", returned=("with_nothing", "list", "nothing", "numpy")),
    KEYS_NOT_TRANSPOSED,
    *((id_, edit(old, new)) for id_, old, new in MORE),
)

FAMILIES = (
    ("scale_constant", lambda c: {"scale": c}, SCALES_TRIED),
    ("mask_weak_fill", lambda c: {"mask": -c}, FILLS_TRIED),
    ("mask_weak_fill", lambda c: {"mask": ("add", -c)}, FILLS_TRIED),
)
