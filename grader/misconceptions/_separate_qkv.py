"""Shared parts of wrong attempts with W_query, W_key and W_value.

These are one head with a knob for each fault, and lists of mutants.
"""

import math
from types import SimpleNamespace

import torch
from torch import nn

from manyheads.checks import Mutant

from . import _module_edits as edits
from ._attention_module import Attention
from ._masking import INF
from ._mutants import (
    BIAS_BY_DEFAULT,
    FILLS_TRIED,
    LOW_FILLS,
    OF_HEADS,
    SCALES_TRIED,
    insert_before,
    mutants,
    variants,
    written_in,
)
from ._scaling import PRECEDENCE, PRECEDENCE_OF_HD, ROUNDED_SCORES, scales

# The right value of each knob of one head.
KNOBS = {
    "scale": "sqrt_hd",
    "scores": "no",  # of SCALES, of ROUNDED_SCORES
    "scaled": "scores",  # scores, weights, hidden: once they are hidden
    "softmax": "keys",
    "softmax_of": "queries_by_keys",
    "mask": "causal",
    "how": -INF,
    "mix": "matmul",
    "holder": "buffer",
    "holder_in_use": "buffer",
    "mask_size": None,
    "context": "checked",
    "order": "qkv",
    "values": "v",  # v, k, q, x
    "transposed": "",
    "cut_gradient": (),  # the steps at which the graph is cut
    "sizes": {},  # the hard-coded ones: B, T, C; context: T is the longest context
}
LAYERS = ("W_query", "W_key", "W_value")


def project(layer, x, transposed=False):
    """Return the layer's answer, or x @ W in place of x @ Wᵀ.

    The layer may be a weight alone.
    """
    if isinstance(layer, torch.Tensor):
        return x @ layer.to(x).T
    if not transposed:
        return layer(x)
    return x @ layer.weight if layer.bias is None else x @ layer.weight + layer.bias


def fixed(tensor, sizes):
    """Return the tensor viewed as (B, T, C), with some of these sizes hard-coded."""
    if not sizes.keys() & {"B", "T", "C"}:
        return tensor
    return tensor.contiguous().view(
        [sizes.get(name, n) for name, n in zip("BTC", tensor.shape, strict=True)]
    )


class OneHead(Attention):
    """One causal head with the faults in `knobs`. Several heads replace some of its methods."""

    num_heads = 1

    def __init__(self, d_in, d_out, context_length, dropout=0.0, qkv_bias=False):
        knobs = self.knobs
        nn.Module.__init__(self)
        self.block_size, self.d_out, self.drop = context_length, d_out, nn.Dropout(dropout)
        self.sizes = (
            {"T": context_length, **knobs.sizes} if "context" in knobs.sizes else knobs.sizes
        )
        for name in LAYERS:
            setattr(self, name, nn.Linear(d_in, d_out, bias=qkv_bias))
        self.hold_mask(knobs.holder, knobs.mask_size or context_length)

    def split(self, t, role):
        """Return (B, T, C) as heads of q, k or v, which the role names."""
        return t

    def as_values(self, x, q):
        """Return x in place of the values."""
        return x

    def merge(self, out, x):
        """Return the heads' answers as (B, T, C), projected."""
        return out

    def forward(self, x):
        knobs = self.knobs
        if knobs.context == "checked" and x.shape[1] > self.block_size:
            raise ValueError(f"{x.shape[1]} tokens do not fit a context of {self.block_size}")
        x = self.cut("x", x, knobs)
        projections = {
            c: project(getattr(self, name), self.cut(f"x_{c}", x, knobs), c in knobs.transposed)
            for c, name in zip("qkv", LAYERS, strict=True)
        }
        q, k, v = (
            self.split(fixed(self.cut(role, projections[c], knobs), self.sizes), role)
            for c, role in zip(knobs.order, "qkv", strict=True)
        )
        v = self.as_values(x, q) if knobs.values == "x" else {"q": q, "k": k, "v": v}[knobs.values]
        return self.cut(
            "output", self.merge(self.weigh(q, k, v, self.sizes_of(x), knobs), x), knobs
        )

    def mask_of(self, k):
        return k.mask, k.how

    def sizes_of(self, x):
        (B, T, d_in), hd = x.shape, self.d_out // self.num_heads
        return SimpleNamespace(
            B=B, T=T, C=self.d_out, nh=self.num_heads, hd=hd, block=self.block_size, d_query=d_in
        )


def attention_mutants(too_wide, wrong_axes, several=False):
    """Return the faults between the projections and the mix, most likely first.

    Args:
        too_wide: scales by a width that is not the head's.
        wrong_axes: wrong axes of the softmax.
        several: whether there are several heads.
    """
    constants = (*(1 / n for n in (8, 4, 2, 64, 3, 768)), *(1 / math.sqrt(n) for n in (2, 768)))
    weak = (-10.0, -1.0, -5.0, -11.0, -12.0, -13.0, -14.0, -20.0, -40.0, -50.0)
    added_weak = (-10.0, -5.0)  # −1 added is a mask of ones: mask_added
    added = ("add_seen", "add_hidden")
    softmaxes = ("missing", "sum", "sigmoid")
    multiplied = ("times_c", *PRECEDENCE) if several else PRECEDENCE_OF_HD

    def if_several(*values):
        return values if several else ()

    return (
        *scales("missing", *too_wide, "hd", *if_several("c", "heads"), "tokens", "block"),
        Mutant("scale_twice", variant={"scale": "hd"}),
        *scales("times_sqrt_hd", "times_hd", *multiplied),
        *variants("scale_after_softmax", scaled=("weights", "scores+weights")),
        *scales(*if_several("sqrt_heads"), "sqrt_tokens", "sqrt_block", "sqrt_batch"),
        *scales(*if_several("sqrt_batch_and_heads"), "rounded_down", "rounded", "rounded_up"),
        *variants("scale_rounded", scaled=(..., "hidden"), scores=tuple(ROUNDED_SCORES)[1:]),
        *variants("scale_constant", scale=constants),
        *variants(
            "scores_ignored", scale=0.0, cut_gradient=(..., ("scores",))
        ),  # zeros, or nothing at all, in place of scores
        *variants("softmax_query_axis", softmax=("queries", "queries_by_hand")),
        *variants("softmax_wrong_axis", softmax=wrong_axes),
        *variants(
            "softmax_missing",
            softmax=("missing_zero_filled", "missing", "sum_zero_filled", "sum", "sigmoid"),
        ),
        *variants("softmax_missing", softmax=("exp", "exp_shifted")),
        *(
            Mutant("softmax_missing", variant={"softmax": s, "how": h})
            for s in softmaxes
            for h in (0.0, -1e9)
        ),
        *variants("softmax_wrong_axis", softmax=wrong_axes, how=-1e9),
        # Over these axes no key takes a share from another key, so a mask after the softmax does
        # the same as a mask before it.
        *variants(
            "softmax_wrong_axis",
            softmax=(*if_several("heads"), "batch"),
            how="after_softmax",
        ),
        Mutant("mask_missing", variant={"mask": "all"}),
        *variants("mask_reversed", mask=("reversed", "inverted")),
        *variants("mask_reversed", how=(-1e9, ("add", -1e9)), mask="inverted"),
        *variants(
            "mask_excludes_self",
            mask=("excludes_self", "excludes_self_but_first", "excludes_self_later"),
        ),
        *variants(
            "mask_excludes_self", how=(-1e9, "zero_row", ("add", -1e9)), mask="excludes_self"
        ),
        Mutant("mask_peeks_one", variant={"mask": "peeks_one"}),
        *variants("mask_peeks_ahead", mask=("peeks_two", "peeks_three")),
        Mutant("mask_zero_fill", variant={"how": 0.0}),
        Mutant("mask_plus_inf", variant={"how": INF}),
        *variants("mask_high_fill", how=(1e9, ("add", 1e9))),
        Mutant("mask_after_softmax", variant={"how": "after_softmax"}),
        *variants(
            "mask_nan",
            how=("nan_product", "nan_factor", "after_softmax_inf", "after_softmax_inf_and_sum"),
        ),
        *variants("mask_added", scaled=(..., "hidden"), how=added),
        *variants(
            "mask_weak_fill", how=(*weak[:3], *(("add", n) for n in added_weak)), scaled="hidden"
        ),
        Mutant("mask_sdpa_inverted", variant={"mask": "inverted", "how": "zero_row"}),
        # the same by hand, with nan_to_num
        Mutant("mask_reversed", variant={"mask": "inverted", "how": "zero_row"}),
        *variants("mask_weak_fill", how=(*weak, *(("add", n) for n in added_weak))),
        *variants("mask_weak_fill", how=(*LOW_FILLS, *if_several(*OF_HEADS))),
        *variants("mask_weak_fill", how=LOW_FILLS, scaled="hidden"),
        *variants("mask_not_sliced", holder=("whole", "rows_only", "whole_stretched")),
        *variants("size_wrong_axis", holder=("made_for_batch", *if_several("made_for_heads"))),
        *variants("size_wrong_axis", holder=("made_for_batch_stretched", "cut_to_batch")),
        *variants("mask_not_moved", holder=("attribute", "kept_by_length")),
        *variants("mask_is_parameter", holder=("parameter", "float_parameter")),
        Mutant("context_unchecked", variant={"context": "open", "holder": "made_in_forward"}),
    )


def layer_names(letters):
    """Return the names of the layers for these of q, k and v."""
    return " ".join(LAYERS["qkv".index(letter)] for letter in letters)


LAYER_SETS = [layer_names(letters) for letters in ("qkv", "q", "k", "v", "qk", "qv", "kv")]
OPTIONS = "dropout: float = 0.0, qkv_bias: bool = False"
INIT, FIT = "super().__init__()", "if self.context_length < T:"


def renamed(old, new):
    """Return an edit of either reference that gives these arguments other names.

    Both texts contain the annotations.
    """
    assigned = f"{argument_names(old)} = {argument_names(new)}"
    return Mutant("interface", {old: new, INIT: f"{INIT}\n        {assigned}"})


def argument_names(parameters):
    """Return the names of these parameters, without annotations and defaults."""
    return ", ".join(parameter.split(":")[0] for parameter in parameters.split(", "))


def dropouts(softmax, out):
    """Return mutants with dropout in other places, at other rates, and in other modes.

    They are edits of either reference. The arguments are texts of that reference.
    """
    dropped, drop, rate = (
        f"self.dropout({softmax})",
        "nn.functional.dropout",
        "self.dropout = nn.Dropout(dropout)",
    )
    return (
        *mutants(
            "dropout_always_on",
            *(f"{drop}({softmax}, self.dropout.p{when})" for when in ("", ", not self.training")),
            replacing=dropped,
        ),
        Mutant("dropout_missing", softmax, replacing=dropped),
        Mutant(
            "dropout_before_softmax",
            {dropped: softmax, "scores.masked_fill": "self.dropout(scores).masked_fill"},
        ),
        Mutant(
            "dropout_before_softmax",
            softmax.replace("scores", "self.dropout(scores)"),
            replacing=dropped,
        ),
        Mutant("dropout_on_output_only", {dropped: softmax, out: f"self.dropout({out})"}),
        *mutants(
            "dropout_extra",
            {dropped: f"self.dropout({dropped})"},
            {out: f"self.dropout({out})"},
        ),
        *mutants(
            "dropout_rate_fixed",
            *(f"self.dropout = nn.Dropout({p})" for p in (0.1, 0.5, "1 - dropout")),
            replacing=rate,
        ),
    )


def on_the_way(sizes, out):
    """Return mutants that change x, or have hard-coded decimals or dtypes.

    They are edits of either reference. The arguments are texts of that reference.
    """
    return (
        *edits.written_into("detach().zero_()", sizes=sizes, out=out, copies=("given = x",)),
        Mutant("input_mutated", insert_before(sizes, "x.mul_(0.5)")),
        *edits.rounded(out),
        Mutant("hard_coded_dtype", f"({out}).float()", replacing=out),
        Mutant("hard_coded_dtype", insert_before(sizes, "x = x.float()")),
        Mutant("hard_coded_dtype", f"({out}).half()", replacing=out),
    )


def more_layers(out, **layers):
    """Yield mutants with a layer that should not exist, and that acts on the output.

    Args:
        out: the text of the output.
        layers: for each name, the text that makes the layer, and the text that applies it to the
            output, {0}.
    """
    values_layer = "self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)"
    for name, (definition, used) in layers.items():
        yield Mutant(
            "params_extra",
            {
                values_layer: f"{values_layer}\n        self.{name} = {definition}",
                out: used.format(out),
            },
        )


NORM, TEMPERATURE = (
    ("nn.LayerNorm(d_out)", "self.norm({0})"),
    ("nn.Parameter(torch.ones(()))", "{0} * self.temperature"),
)


class Runs:
    """Mutants that one head and several have in common."""

    # The layers.
    LAYERS = (
        *variants("qkv_order", order=("kqv", "vkq", "qvk", "kvq", "vqk")),
        *variants("values_wrong_source", values=("k", "x", "q")),
        *variants("weight_not_transposed", transposed=("qkv", "q", "k", "v", "qk", "qv", "kv")),
        *variants(
            "proj_bias", biases=[f"{how} {names}" for how in ("on", "off") for names in LAYER_SETS]
        ),
        Mutant("proj_bias", variant={"biases": f"flipped {LAYER_SETS[0]}"}),
    )

    # kept state, gradients, and hard-coded sizes of the input
    INPUT = (
        *variants("state_kept", holder=("first_call", "first_call_cut")),
        *variants("state_kept", kept=("rate", "batch", "answers", "awake", "tokens")),
        *variants(
            "gradient_cut",
            cut_gradient=[(step,) for step in "output weights x q k v x_q x_k x_v".split()],
        ),
        *variants(
            "hard_coded_shape",
            sizes=written_in(B=(2, 1, 8, 4, 3, 16, 32), T=(6, 4, 8, 5, 16, 1024)),
        ),
    )

    # hard-coded sizes of the mask, and a hard-coded device
    WRITTEN_IN = (
        *variants("hard_coded_shape", holder=(6, 4, 8, 5, 7)),
        *variants("hard_coded_shape", mask_size=(6, 4, 5, 8)),
        Mutant("hard_coded_device", variant={"holder": "made_on_default_device"}),
    )

    # Edits of either reference: one layer under two names.
    SHARED = mutants(
        "params_not_registered",
        *(
            {f"self.{name} = nn.Linear(d_in, d_out, bias=qkv_bias)": f"self.{name} = self.{source}"}
            for name, source in (("W_key", "W_query"), ("W_value", "W_key"), ("W_value", "W_query"))
        ),
    )

    # edits of either reference: other arguments, and parts that are not written
    SIGNATURES = (
        Mutant("super_init_missing", "pass", replacing=INIT),
        *mutants(
            "interface",
            "dropout: float, qkv_bias: bool",
            "qkv_bias: bool = False, dropout: float = 0.0",
            replacing=OPTIONS,
        ),
        BIAS_BY_DEFAULT,
        Mutant("stub_untouched", 'raise NotImplementedError("your turn")', replacing=INIT),
        Mutant(
            "stub_untouched",
            {INIT: f"{INIT}\n        return", FIT: f"raise NotImplementedError\n        {FIT}"},
        ),
    )

    # parametric mutants: the number can have any value
    FAMILIES = (
        ("scale_constant", lambda c: {"scale": c}, SCALES_TRIED),
        ("mask_weak_fill", lambda c: {"how": -c}, FILLS_TRIED),
        ("mask_weak_fill", lambda c: {"how": ("add", -c)}, FILLS_TRIED),
        ("mask_weak_fill", lambda c: {"how": -c, "scaled": "hidden"}, FILLS_TRIED),
        ("mask_weak_fill", lambda c: {"how": ("below", c)}, FILLS_TRIED),
    )
