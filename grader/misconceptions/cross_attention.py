"""The wrong ways to let one sequence ask another, and to hide its padding."""

from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

from manyheads.checks import Mutant

from . import _module_edits as edits
from ._attention import MERGES, SOURCES, SPLITS
from ._attention_module import CUTS_OF_GRADIENT, Attention
from ._attention_mutants import ATTENTION_FAMILIES, AXES, CONSTANTS, OUT_OF_ORDER, WEAK, Runs, added
from ._layers import module
from ._masking import INF, lower
from ._mutants import (
    KEYS_NOT_TRANSPOSED,
    LOW_FILLS,
    OF_HEADS,
    SCORES_WRONG_SOURCE,
    SUPER_INIT_MISSING,
    insert_before,
    mutants,
    values_transposed,
    variants,
)
from ._scaling import PRECEDENCE, scales

# the scores that are seen, from keep (B, T_k) and the scores (B, nh, T_q, T_k)
SEEN = {
    "keys": lambda keep, a: keep[:, None, None, :],
    "queries": lambda keep, a: keep[:, None, :, None],
    # The two lengths are made the same by cutting, or by padding with visible or hidden tokens.
    "queries_cut": lambda keep, a: cut_or_padded(keep, a, True),
    "queries_cut_hidden": lambda keep, a: cut_or_padded(keep, a, False),
    "both": lambda keep, a: keep[:, None, :, None] & keep[:, None, None, :],
    "either": lambda keep, a: keep[:, None, :, None] | keep[:, None, None, :],
    "as_it_is": lambda keep, a: keep,
    "one_axis": lambda keep, a: keep[:, None, :],
    "one_axis_behind": lambda keep, a: keep[:, :, None],
    "causal": lambda keep, a: square(a) & keep[:, None, None, :],
    "causal_from_the_end": lambda keep, a: (
        square(a, a.shape[-1] - a.shape[-2]) & keep[:, None, None, :]
    ),
    "causal_alone": lambda keep, a: square(a),
    "causal_of_queries": lambda keep, a: lower(a.shape[-2], a.device),
    # Heads folded into the batch, and keep repeated in the other order.
    "batch_innermost": (
        lambda keep, a: keep.repeat(a.shape[1], 1).view(len(keep), a.shape[1], 1, -1)
    ),
    "batch_outermost": lambda keep, a: (
        keep.repeat_interleave(a.shape[1], 0).view(a.shape[1], len(keep), 1, -1).transpose(0, 1)
    ),
    "first_head": lambda keep, a: (
        keep[:, None, None, :] | (torch.arange(a.shape[1], device=a.device) > 0)[:, None, None]
    ),
}
# these act without a keep, too
ALWAYS = ("causal", "causal_alone", "causal_from_the_end", "causal_of_queries")


def square(a, diagonal=0):
    return torch.ones(a.shape[-2:], dtype=torch.bool, device=a.device).tril(diagonal)


def cut_or_padded(keep, a, fill):
    T = a.shape[-2]
    return F.pad(keep[:, :T], (0, max(0, T - keep.shape[1])), value=fill)[:, None, :, None]


# the sides from which queries, keys and values come
SIDES = {
    "apart": lambda x, context: (x, context, context),
    "keys_from_x": lambda x, context: (x, x, context),
    "values_from_x": lambda x, context: (x, context, x),
    "both_from_x": lambda x, context: (x, x, x),
    "swapped": lambda x, context: (context, x, x),
    "queries_from_context": lambda x, context: (context, context, context),
    "joined": lambda x, context: (x, *[torch.cat([x, context], dim=1)] * 2),
}
LAYERS = {"q": "W_query", "k": "W_key", "v": "W_value", "o": "out_proj"}
RIGHT = {
    "sides": "apart",
    "source": "own",
    "seen": "keys",
    "mask": "causal",
    "softmax": "keys",
    "softmax_of": "queries_by_keys",
    "scale": "sqrt_hd",
    "scaled": "scores",
    "scores": "no",
    "split": "heads",
    "split_of": "qkv",
    "merge": "heads",
    "lengths": "own",
    "attend_over": "tokens",
    "layers": "qkv",
    "transposed": "",
    "proj": "linear",
    "cut_gradient": (),
    "fixed": None,
    "mix": "matmul",
    "holder_in_use": "keep",
    "of_query": False,  # the widths of the layers for keys and values
}


class Cross(Attention):
    """The module, right except for its knobs."""

    def __init__(self, d_query, d_context, d_out, num_heads):
        nn.Module.__init__(self)
        if d_out % num_heads:
            raise ValueError(
                f"d_out = {d_out} cannot be cut into num_heads = {num_heads} equal heads"
            )
        self.num_heads, self.d_out, self.drop = num_heads, d_out, nn.Identity()
        d_context = d_query if self.knobs.of_query else d_context
        for letter, n_in in zip("qkvo", (d_query, d_context, d_context, d_out), strict=True):
            setattr(self, LAYERS[letter], nn.Linear(n_in, d_out, bias=letter == "o"))

    def project(self, name, t, transposed=False):
        layer = getattr(self, name)
        weight = self.cut("W", layer.weight, self.knobs)
        z = t @ weight if transposed else F.linear(t, weight)
        return z if layer.bias is None else z + layer.bias

    def forward(self, x, context, keep=None):
        k = self.knobs
        s = SimpleNamespace(
            B=len(x), T=x.shape[1], T_k=context.shape[1], nh=self.num_heads, C=self.d_out, keep=keep
        )
        s.d_query, s.d_context, s.hd = x.shape[-1], context.shape[-1], self.d_out // self.num_heads
        vars(s).update(k.fixed or {})
        s.block = s.T_k
        sides = dict(zip("qkv", SIDES[k.sides](self.cut("x", x, k), context), strict=True))
        layers = zip("qkv", k.layers, strict=True)
        projections = {
            c: self.project(LAYERS[layer], sides[c], c in k.transposed) for c, layer in layers
        }
        y = self.joined(
            *SOURCES[k.source](*(self.split(c, projections[c], s) for c in "qkv"), x), s, k
        )
        s.T = s.T_k if k.lengths == "answer" else y.shape[2]
        y = self.cut("y", MERGES[k.merge](y, s), k)
        for _ in range({"missing": 0, "twice": 2}.get(k.proj, 1)):
            y = self.project("out_proj", y, transposed=k.proj == "untransposed")
        return self.cut("out", y, k)

    def split(self, c, t, s):
        k, T = self.knobs, (s.T if c == "q" else s.T_k)
        if k.lengths == ("keys" if c in "kv" else "queries"):
            T = s.T_k if c == "q" else s.T
        elif k.sides != "apart" and k.fixed is None:
            T = t.shape[1]
        split = k.split if c in k.split_of else "heads"
        return SPLITS[split](t, SimpleNamespace(**{**vars(s), "T": T}))

    def mask_for(self, scores, holder, s):
        pattern, keep = self.knobs.seen, s.keep
        if keep is None and pattern in ALWAYS:
            keep = torch.ones_like(scores[:, 0, 0], dtype=torch.bool)
        return None if keep is None else SEEN[pattern](keep, scores)


def make(**knobs):
    """Return the exercise's names, with these faults."""
    return module("CrossAttention", Cross, RIGHT, knobs)


SOME = ("q", "k", "v", "qk", "qv", "kv", "qkv")
EVERY, OTHER_BIASES = (
    " ".join(LAYERS.values()),
    ("o", "qkv", "kv", "q", "qkvo", "k", "v", "qk", "qv"),
)
ON_QUERIES = ("queries", "both", "either", "queries_cut", "queries_cut_hidden")

# Edits of the reference: (id, text, its replacement).
QK, SOFTMAX = "q @ k.transpose(-2, -1)", "scores.softmax(dim=-1)"
JOINED = "y.reshape(B, T_q, self.num_heads * self.head_dim)"
KEEP = "keep[:, None, None, :]"  # (B, 1, 1, T_k)
HIDING = f"scores.masked_fill(~{KEEP}, -math.inf)"
OUT, SIZES, UNDIVIDED = (
    f"self.out_proj({JOINED})",
    "B, T_q, _ = x.shape",
    "if d_out % num_heads != 0:",
)
ONE_HEAD = (
    "y[:, :, h] @ self.out_proj.weight[:, h * self.head_dim : (h + 1) * self.head_dim].T +"
    " self.out_proj.bias"
)


def with_underscores(layers):
    """Return these layers with their names followed by an underscore."""
    return {name: f"{name}_" for name in layers.split()}


MUTANTS = (
    Mutant("mask_missing", variant={"mask": "missing"}),
    Mutant("keep_inverted", variant={"mask": "inverted"}),
    *variants("keep_on_queries", seen=ON_QUERIES),
    *scales("sqrt_c", "missing"),
    *variants("context_ignored", sides=("both_from_x", "keys_from_x", "values_from_x")),
    Mutant("wrong_view", variant={"split": "straight"}),
    Mutant("wrong_view_both", variant={"split": "straight", "merge": "straight"}),
    Mutant("merge_no_transpose", variant={"merge": "straight"}),
    Mutant("scale_no_sqrt", variant={"scale": "hd"}),
    Mutant("scale_twice", variant={"scale": "hd", "scaled": "scores+scores"}),
    *variants("scores_ignored", scale=0.0, cut_gradient=(..., ("scores",))),
    Mutant("softmax_query_axis", variant={"softmax": "queries"}),
    Mutant("product_turned", variant={"softmax_of": "keys_by_queries"}),
    Mutant("mask_after_softmax", variant={"mask": "after_softmax"}),
    Mutant("mask_zero_fill", variant={"mask": 0.0}),
    Mutant("mask_zero_fill", variant={"mask": "zero_twice"}),  # the context itself set to 0
    Mutant("proj_missing", variant={"proj": "missing"}),
    *variants("size_wrong_axis", lengths=("keys", "queries", "answer")),
    *variants("layer_widths", of_query=True, sides=("apart", "both_from_x")),
    Mutant("view_not_contiguous", variant={"merge": "view"}),
    SUPER_INIT_MISSING,
    *variants("keep_inverted", mask=(("inverted", -1e9), ("inverted", ("add", -1e9)))),
    # Fused code answers a row that is hidden whole with zeros, and takes keep as attn_mask or as
    # key_padding_mask.
    Mutant("keep_inverted", variant={"mask": "inverted", "softmax": "as_numbers"}),
    Mutant("mask_sdpa_inverted", variant={"mask": "inverted", "softmax": "as_numbers"}),
    *variants("keep_on_queries", seen=ON_QUERIES, mask=(-1e9, 0.0, "after_softmax")),
    *variants("keep_on_queries", seen=ON_QUERIES, mask="causal", softmax="as_numbers"),
    *variants("size_wrong_axis", seen=("as_it_is", "one_axis", "one_axis_behind")),
    *variants("causal_extra", seen=ALWAYS),
    *variants("causal_extra", seen=("causal", "causal_from_the_end"), mask=-1e9),
    *variants("causal_extra", seen=("causal", "causal_from_the_end"), softmax="as_numbers"),
    *variants("heads_mix_batch", seen=("batch_innermost", "batch_outermost")),
    Mutant("mask_missing", variant={"seen": "first_head"}),
    *variants("sides_swapped", sides=("swapped", "queries_from_context")),
    Mutant("context_ignored", variant={"sides": "joined"}),
    Mutant("interface", "if ~keep is not None:", replacing="if keep is not None:"),
    *scales(
        "times_sqrt_hd",
        "times_hd",
        "times_c",
        *PRECEDENCE,
        "sqrt_heads",
        "heads",
        "sqrt_tokens",
        "sqrt_keys",
        "tokens",
    ),
    *scales(
        "sqrt_d_query", "sqrt_d_context", "sqrt_batch", "sqrt_batch_and_heads", "c", "three_times"
    ),
    *scales("rounded_down", "rounded_up"),
    *variants("scale_rounded", scores=("rounded_down", "rounded_down_without_gradient")),
    *variants("scale_after_softmax", scaled=("weights", "scores+weights")),
    *variants("scale_constant", scale=CONSTANTS),
    *variants("softmax_wrong_axis", softmax=AXES, mask=("causal", -1e9, "missing")),
    *variants("softmax_query_axis", softmax=("queries", "queries_by_hand"), mask=(-1e9, "missing")),
    Mutant("softmax_query_axis", variant={"softmax": "queries_as_numbers"}),
    *variants(
        "softmax_missing", softmax=("missing", "missing_zero_filled", "sum_zero_filled", "sum")
    ),
    *variants("softmax_missing", softmax=("sum_of_sizes_zero_filled", "exp", "sigmoid")),
    *variants("softmax_missing", softmax=("norm_zero_filled", "tokens_zero_filled")),
    *variants(
        "softmax_missing", softmax=("missing", "sum", "sigmoid"), mask=(0.0, -1e9, "missing")
    ),
    *variants("mask_weak_fill", mask=[*WEAK, *added(*WEAK[:3]), *LOW_FILLS, *OF_HEADS]),
    *variants("mask_weak_fill", mask=[*WEAK[:3], *added(*WEAK[:3])], scaled="hidden"),
    Mutant("mask_plus_inf", variant={"mask": INF}),
    Mutant("mask_high_fill", variant={"mask": 1e9}),
    *variants("mask_nan", mask=("nan_product", "nan_factor", "nan_zero_factor")),
    Mutant("mask_after_softmax", variant={"mask": "after_softmax_low"}),
    *variants("mask_added", scaled=(..., "hidden"), mask=("add_seen", "add_hidden")),
    *variants("wrong_view_values", split="straight", split_of=("v", "q", "k", "qk", "qv", "kv")),
    *variants("reshape_out_of_order", split=OUT_OF_ORDER),
    *Runs.HEADS,
    *variants("heads_and_width_swapped", split="sizes_swapped", scale=("sqrt_hd", "sqrt_heads")),
    *variants("heads_missing_transpose", attend_over="heads", mask=(..., "missing")),
    *variants("heads_mix_batch", merge=("axes_(1, 2, 0, 3)", "heads_from_batch", "batch_viewed")),
    *variants("heads_mix_batch", split=("batch_after_heads", "batch_swapped")),
    *variants("reshape_out_of_order", split="batch_and_tokens"),
    *variants("qkv_order", layers=("qvk", "kqv", "vqk", "kvq", "vkq")),
    *variants("values_wrong_source", source=("v_is_k", "v_is_q")),
    *SCORES_WRONG_SOURCE,
    *variants("weight_not_transposed", transposed=SOME),
    *variants(
        "proj_bias",
        biases=[" ".join(["flipped", *map(LAYERS.get, roles)]) for roles in OTHER_BIASES],
    ),
    *mutants(
        "dropout_extra",
        *({text: f"nn.functional.dropout({text}, 0.1, self.training)"} for text in (SOFTMAX, OUT)),
    ),
    Mutant("dropout_always_on", f"nn.functional.dropout({SOFTMAX}, 0.1)", replacing=SOFTMAX),
    *variants("state_kept", kept=("last_keep", "context", "answers", "batch", "tokens")),
    *mutants(
        "divisibility_unchecked", "if False:", "if d_query % num_heads != 0:", replacing=UNDIVIDED
    ),
    *edits.cast(SIZES),
    Mutant("hard_coded_dtype", f"{OUT}.float()", replacing=OUT),
    *variants(
        "params_not_registered",
        lost=(f"buffer {EVERY}", "buffer W_key", "buffer out_proj", f"anew {EVERY}"),
    ),
    *variants(
        "params_extra",
        renamed=[with_underscores(EVERY), with_underscores("out_proj")],
    ),
    *variants("params_extra", extra=("temperature", "norm")),
    *variants("gradient_cut", cut_gradient=[cut for cut in CUTS_OF_GRADIENT if "proj" not in cut]),
    Mutant("gradient_cut", insert_before(SIZES, "context = context.detach()")),
    *edits.written_into(
        "zero_()",
        sizes=SIZES,
        out=OUT,
        copies=[f"given, {x} = {x}, {x}.clone()" for x in ("x", "context")],
    ),
    *variants(
        "hard_coded_shape", fixed=[{"nh": 4}, {"nh": 8}, {"hd": 64}, {"B": 2}, {"T": 8}, {"T_k": 8}]
    ),
    *edits.on_a_device(SIZES, "self.W_query(x"),
    Mutant(
        "params_not_registered",
        "self.W_value = self.W_key",
        replacing="self.W_value = nn.Linear(d_context, d_out, bias=False)",
    ),
    *edits.answers(OUT),
    values_transposed(),
    KEYS_NOT_TRANSPOSED,
    Mutant("heads_share_weights", f"{SOFTMAX}.mean(1, keepdim=True)", replacing=SOFTMAX),
    Mutant("heads_share_weights", f"({QK}).mean(1, keepdim=True)", replacing=QK),
    Mutant("heads_not_joined", "y", replacing=JOINED),
    Mutant("proj_bias", f"{JOINED} @ self.out_proj.weight.T", replacing=OUT),
    Mutant("proj_bias", f"sum({ONE_HEAD} for h in range(self.num_heads))", replacing=OUT),
    Mutant("proj_transposed", f"{JOINED} @ self.out_proj.weight", replacing=OUT),
    Mutant(
        "weight_not_transposed",
        "(x @ self.W_query.weight.view(x.shape[-1], -1))",
        replacing="self.W_query(x)",
    ),
    Mutant(
        "weight_not_transposed",
        "(context @ self.W_key.weight.view(context.shape[-1], -1))",
        replacing="self.W_key(context)",
    ),
    Mutant(
        "weight_not_transposed",
        "(context @ self.W_value.weight.view(context.shape[-1], -1))",
        replacing="self.W_value(context)",
    ),
    Mutant(
        "hard_coded_shape",
        "x, context, keep = x[:1], context[:1], None if keep is None else keep[:1]\n       "
        f" {SIZES}",
        replacing=SIZES,
    ),
    *(
        Mutant("hard_coded_dtype", f"q @ k.{half}().to(k).transpose(-2, -1)", replacing=QK)
        for half in ("half", "bfloat16")
    ),
    Mutant("mask_high_fill", f"scores + ~{KEEP} * 1e9", replacing=HIDING),
    *(
        Mutant("keep_across_batch", f"{joined}[None, None, None, :]", replacing=KEEP)
        for joined in ("keep[0]", "keep.all(0)", "keep.any(0)", "keep[-1]")
    ),
)

FAMILIES = ATTENTION_FAMILIES[:3]
