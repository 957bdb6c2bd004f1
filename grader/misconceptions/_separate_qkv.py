"""What wrong attempts with W_query, W_key and W_value share: one head with a knob for each fault, and lists of mutants."""

import math
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

from manyheads.checks import edit

from ._attention_module import Attention
from ._masking import INF
from ._mutants import BIAS_BY_DEFAULT, FILLS_TRIED, LOW_FILLS, OF_HEADS, SCALES_TRIED, at, each, written_in
from ._scaling import PRECEDENCE, PRECEDENCE_OF_HD, ROUNDED_SCORES, scales

# The right value of each knob of one head.
KNOBS = {
    "scale": "sqrt_hd", "scores": "no",  # of SCALES, of ROUNDED_SCORES
    "scaled": "scores",  # scores, weights, hidden: once they are hidden
    "softmax": "keys", "softmax_of": "queries_by_keys", "mask": "causal", "how": -INF, "mix": "matmul",
    "holder": "buffer", "holder_in_use": "buffer", "mask_size": None, "context": "checked",
    "decimals": None,  # to which the output is rounded
    "order": "qkv", "values": "v",  # v, k, q, x
    "transposed": "",
    "no_bias": "",  # layers without a bias where one is asked for; o: out_proj; O: out_proj without qkv_bias
    "own_bias": "",  # layers with a bias where none is
    "drop": ("weights",),  # scores, hidden, weights, output; one that stands twice acts twice
    "rate": None, "when": "training",  # in place of the argument; training, always, eval
    "cut_gradient": (), "mutate": "",  # where the graph is cut; scale, after
    "sizes": {},  # what is written in: B, T, C; context: T is the longest
    "dtype": "",  # input, output, half
    "registered": "yes",  # yes, list, tensor, hidden, forward, anew; proj_anew, proj_hidden: out_proj alone
    "names": ("W_query", "W_key", "W_value"), "kept": "nothing",  # of KEPT
    "extra": "",  # out_proj, norm, temperature, layer; no_layer: without out_proj
}  # fmt: skip


class Awake(nn.Module):
    """Dropout that acts when it should, always, or in eval mode only."""

    def __init__(self, p, when):
        super().__init__()
        self.p, self.when = p, when

    def forward(self, x):
        awake = {"training": self.training, "always": True, "eval": not self.training}[self.when]
        return F.dropout(x, self.p, training=awake)


def project(layer, x, transposed=False):
    """The layer's answer, or x @ W in place of x @ Wᵀ. A layer may be no more than its weight."""
    if isinstance(layer, torch.Tensor):
        return x @ layer.to(x).T
    if not transposed:
        return layer(x)
    return x @ layer.weight if layer.bias is None else x @ layer.weight + layer.bias


def fixed(tensor, sizes):
    """View (B, T, C) with some of its sizes written in."""
    if not sizes.keys() & {"B", "T", "C"}:
        return tensor
    return tensor.contiguous().view([sizes.get(name, n) for name, n in zip("BTC", tensor.shape, strict=True)])


class OneHead(Attention):
    """One causal head with the faults in `knobs`. Several heads replace some of its methods."""

    num_heads = 1

    def __init__(self, d_in, d_out, context_length, dropout=0.0, qkv_bias=False):
        knobs = self.knobs
        nn.Module.__init__(self)
        self.block_size, self.d_out = context_length, d_out
        self.sizes = {"T": context_length, **knobs.sizes} if "context" in knobs.sizes else knobs.sizes
        self.keep(self.new_layers(d_in, d_out, qkv_bias))
        self.dropout = Awake(dropout if knobs.rate is None else knobs.rate, knobs.when)
        if knobs.extra == "out_proj":
            self.out_proj = nn.Linear(d_out, d_out)
        elif knobs.extra == "norm":
            self.norm = nn.LayerNorm(d_out)
        elif knobs.extra == "temperature":
            self.temperature = nn.Parameter(torch.ones(()))
        elif knobs.extra == "layer":
            self.c_attn = nn.Linear(d_in, 3 * d_out)
        self.hold_mask(knobs.holder, knobs.mask_size or context_length)

    def new_layers(self, d_in, d_out, qkv_bias):
        """The layers that are made."""
        biased = [c not in self.knobs.no_bias if qkv_bias else c in self.knobs.own_bias for c in "qkv"]
        return [nn.Linear(d_in, d_out, bias=bias) for bias in biased]

    def keep(self, layers):
        """Make the layers attributes, or keep them in another way."""
        if self.knobs.registered == "list":
            self.layers = [layers]
        elif self.knobs.registered != "forward":
            tensors = self.knobs.registered == "tensor"
            for name, layer in zip(self.knobs.names, layers, strict=False):
                keep = object.__setattr__ if self.knobs.registered == "hidden" else setattr
                keep(self, name, layer.weight.detach() if tensors else layer)

    def layers_for(self, x):
        """The layers that are used; None for one that was not kept."""
        if self.knobs.registered == "list":
            return [layer.to(x) for layer in self.layers[0]]
        if self.knobs.registered in ("forward", "anew"):
            return [nn.Linear(x.shape[-1], self.d_out).to(x) for _ in "qkv"]
        return [getattr(self, name, None) for name in self.knobs.names]

    def split(self, t, which):
        """(B, T, C) as heads. which: q, k or v."""
        return t

    def as_values(self, x, q):
        """x in place of the values."""
        return x

    def merge(self, out, layers, x):
        """The heads' answers as (B, T, C), projected."""
        return out

    def forward(self, x):
        knobs = self.knobs
        if knobs.context == "checked" and x.shape[1] > self.block_size:
            raise ValueError(f"{x.shape[1]} tokens do not fit a context of {self.block_size}")
        given, x = x, self.cut("x", x, knobs)
        if knobs.mutate == "scale":
            x.mul_(0.5)
        if knobs.dtype == "input":
            x = x.float()
        layers = self.layers_for(x)
        found = {
            c: project(layer, self.cut(f"x_{c}", x, knobs), c in knobs.transposed)
            for c, layer in zip("qkv", layers, strict=False)
        }
        q, k, v = (
            self.split(fixed(self.cut(place, found[c], knobs), self.sizes), place)
            for c, place in zip(knobs.order, "qkv", strict=True)
        )
        v = self.as_values(x, q) if knobs.values == "x" else {"q": q, "k": k, "v": v}[knobs.values]
        out = self.merge(self.weigh(q, k, v, self.sizes_of(x), knobs), layers, x)
        out = self.dropped("output", out, knobs)
        if knobs.extra in ("out_proj", "norm"):
            out = getattr(self, knobs.extra)(out)
        out = out * getattr(self, "temperature", 1.0)
        if knobs.mutate == "after":
            given.detach().zero_()
        if knobs.dtype in ("output", "half"):
            out = out.float() if knobs.dtype == "output" else out.half()
        out = out if knobs.decimals is None else out.round(decimals=knobs.decimals)
        return self.cut("output", out, knobs)

    def dropped(self, place, t, k):
        for _ in range(k.drop.count(place)):
            t = self.dropout(t)
        return t

    def mask_of(self, k):
        return k.mask, k.how

    def sizes_of(self, x):
        (B, T, d_in), hd = x.shape, self.d_out // self.num_heads
        return SimpleNamespace(B=B, T=T, C=self.d_out, nh=self.num_heads, hd=hd, block=self.block_size, d_query=d_in)


def attention_mutants(too_wide, wrong_axes, several=False):
    """Faults between the projections and the mix, most likely first.

    too_wide: scales by a width that is not the head's. wrong_axes: of the softmax. several: whether there are several heads.
    """
    constants = (*(1 / n for n in (8, 4, 2, 64, 3, 768)), *(1 / math.sqrt(n) for n in (2, 768)))
    weak = (-10.0, -1.0, -5.0, -11.0, -12.0, -13.0, -14.0, -20.0, -40.0, -50.0)
    added = ("add_seen", "add_hidden")
    softmaxes = ("missing", "sum", "sigmoid")
    return (
        *scales("missing", *too_wide, "hd"),
        ("scale_twice", {"scale": "hd"}),
        *scales("times_sqrt_hd", *(PRECEDENCE if several else PRECEDENCE_OF_HD)),
        ("scale_after_softmax", {"scaled": "weights"}),
        *scales(*(("sqrt_heads",) if several else ()), "sqrt_tokens", "sqrt_block", "sqrt_batch"),
        *scales(*(("sqrt_batch_and_heads",) if several else ()), "rounded_down", "rounded", "rounded_up"),
        *each("scale_rounded", scores=tuple(ROUNDED_SCORES)[1:]),
        *each("scale_rounded", scores=tuple(ROUNDED_SCORES)[1:], scaled="hidden"),
        *each("scale_constant", scale=constants),
        ("scores_ignored", {"scale": 0.0}),
        ("scores_ignored", {"scale": 0.0, "cut_gradient": ("scores",)}),  # zeros, or nothing at all, in place of scores
        *each("softmax_query_axis", softmax=("queries", "queries_by_hand")),
        *each("softmax_wrong_axis", softmax=wrong_axes),
        *each("softmax_missing", softmax=("missing_zero_filled", "missing", "sum_zero_filled", "sum", "sigmoid")),
        *each("softmax_missing", softmax=("exp", "exp_shifted")),
        *(("softmax_missing", {"softmax": s, "how": h}) for s in softmaxes for h in (0.0, -1e9)),
        *each("softmax_wrong_axis", softmax=wrong_axes, how=-1e9),
        # Masked before the softmax, and after it: over these axes nobody takes a share from another key.
        *each("softmax_wrong_axis", softmax=(*(("heads", "batch") if several else ("batch",)),), how="after_softmax"),
        ("mask_missing", {"mask": "all"}),
        *each("mask_reversed", mask=("reversed", "inverted")),
        *each("mask_reversed", how=(-1e9, ("add", -1e9)), mask="inverted"),
        *each("mask_excludes_self", mask=("excludes_self", "excludes_self_but_first", "excludes_self_later")),
        *each("mask_excludes_self", how=(-1e9, "zero_row", ("add", -1e9)), mask="excludes_self"),
        ("mask_peeks_one", {"mask": "peeks_one"}),
        ("mask_zero_fill", {"how": 0.0}),
        *each("mask_plus_inf", how=(INF, 1e9)),
        ("mask_after_softmax", {"how": "after_softmax"}),
        *each("mask_nan", how=("nan_product", "nan_factor", "after_softmax_inf", "after_softmax_inf_and_sum")),
        *each("mask_added", how=added),
        *each("mask_added", how=added, scaled="hidden"),
        *each("mask_weak_fill", how=(*weak[:3], *(("add", n) for n in weak[:3])), scaled="hidden"),
        ("mask_sdpa_inverted", {"mask": "inverted", "how": "zero_row"}),
        *each("mask_weak_fill", how=(*weak, *(("add", n) for n in weak if n >= -10))),
        *each("mask_weak_fill", how=(*LOW_FILLS, *(OF_HEADS if several else ()))),
        *each("mask_weak_fill", how=LOW_FILLS, scaled="hidden"),
        *each("mask_not_sliced", holder=("whole", "rows_only", "whole_stretched")),
        *each("size_wrong_axis", holder=("made_for_batch", *(("made_for_heads",) if several else ()))),
        *each("size_wrong_axis", holder=("made_for_batch_stretched", "cut_to_batch")),
        ("mask_not_moved", {"holder": "attribute"}),
        *each("mask_is_parameter", holder=("parameter", "float_parameter")),
        ("context_unchecked", {"context": "open", "holder": "made_in_forward"}),
    )


SOME = ("qkv", "q", "k", "v", "qk", "qv", "kv")


OPTIONS = "dropout: float = 0.0, qkv_bias: bool = False"
INIT, FIT = "super().__init__()", "if self.context_length < T:"


def renamed(old, new):
    """These arguments under other names, with their annotations. An edit of either reference."""
    names = (", ".join(part.split(":")[0] for part in text.split(", ")) for text in (old, new))
    return "interface", edit(old, new, {INIT: f"{INIT}\n        {' = '.join(names)}"})


class Runs:
    """Mutants that one head and several have in common."""

    # The layers and the dropout.
    LAYERS = (
        *each("qkv_order", order=("kqv", "vkq", "qvk", "kvq", "vqk")),
        *each("values_wrong_source", values=("k", "x", "q")),
        *each("weight_not_transposed", transposed=SOME),
        *each("proj_bias", own_bias=SOME),
        *each("proj_bias", no_bias=SOME),
        ("proj_bias", {"no_bias": "qkv", "own_bias": "qkv"}),
        *each("dropout_always_on", when=("always", "eval")),
        ("dropout_missing", {"drop": ()}),
        *each("dropout_before_softmax", drop=(("scores",), ("hidden",))),
        ("dropout_on_output_only", {"drop": ("output",)}),
        *each("dropout_extra", drop=(("weights", "weights"), ("weights", "output"))),
        *each("dropout_rate_fixed", rate=(0.1, 0.5)),
        *each("state_kept", holder=("first_call", "first_call_cut")),
        *each("state_kept", kept=("rate", "batch", "answers", "awake", "tokens")),
    )

    # The gradients, the values and the sizes of the input.
    INPUT = (
        *each("gradient_cut", cut_gradient=(("output",), ("weights",), ("x",), ("q",), ("k",), ("v",))),
        *each("gradient_cut", cut_gradient=(("x_q",), ("x_k",), ("x_v",))),
        *each("input_mutated", mutate=("after", "scale")),
        *each("hard_coded_shape", sizes=written_in(B=(2, 1, 8, 4, 3, 16, 32), T=(6, 4, 8, 5, 16, 1024))),
    )

    # Sizes of the mask, dtypes, a device and decimals that are written in.
    WRITTEN_IN = (
        *each("output_rounded", decimals=(4, 3, 2)),
        *each("hard_coded_shape", holder=(6, 4, 8, 5, 7)),
        *each("hard_coded_shape", mask_size=(6, 4, 5, 8)),
        *each("hard_coded_dtype", dtype=("output", "input", "half")),
        ("hard_coded_device", {"holder": "made_on_default_device"}),
    )

    # Edits of either reference: other arguments, and what is not written.
    SIGNATURES = (
        ("super_init_missing", edit(INIT, "pass")),
        *at(OPTIONS, ("interface", "dropout: float, qkv_bias: bool", "qkv_bias: bool = False, dropout: float = 0.0")),
        BIAS_BY_DEFAULT,
        ("stub_untouched", edit(INIT, 'raise NotImplementedError("your turn")')),
        ("stub_untouched", edit(INIT, f"{INIT}\n        return", {FIT: f"raise NotImplementedError\n        {FIT}"})),
    )

    # With a number that nobody can list.
    FAMILIES = (
        ("scale_constant", lambda c: {"scale": c}, SCALES_TRIED),
        ("mask_weak_fill", lambda c: {"how": -c}, FILLS_TRIED),
        ("mask_weak_fill", lambda c: {"how": ("add", -c)}, FILLS_TRIED),
        ("mask_weak_fill", lambda c: {"how": -c, "scaled": "hidden"}, FILLS_TRIED),
        ("mask_weak_fill", lambda c: {"how": ("below", c)}, FILLS_TRIED),
    )
