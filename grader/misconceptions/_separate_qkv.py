"""What wrong attempts with W_query, W_key and W_value share: one head with a knob for each fault, and lists of mutants."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from ._kept import Keeping, first
from ._masking import (
    FILLS_TRIED,
    INF,
    LOW_FILLS,
    PRECEDENCE,
    PRECEDENCE_OF_HD,
    ROUNDED_ROOTS,
    ROUNDED_SCORES,
    SCALES_TRIED,
    each,
    hidden,
    visible,
    weighed,
)

# The right value of each knob of one head.
KNOBS = {
    "divide_by": "hd",  # hd, d_in, d_out, nh, T, context, B, B_nh; width: of a head as it should be
    "power": -0.5, "constant": None, "precedence": "",  # of PRECEDENCE
    "rounded": "no",  # a root of ROUNDED_ROOTS; or ROUNDED_SCORES
    "decimals": None,  # to which the output is rounded
    "scaled": "scores",  # scores, weights, hidden: once they are hidden
    "softmax": "keys", "mask": "causal", "how": -INF,
    "sliced": "both",  # both, rows, no, fit: as the scores are, batch, or a number of tokens
    "stretched": False,  # the mask is expanded to the shape of the scores
    # buffer, attribute, parameter, trained_parameter, cpu, for_batch, for_heads; first, first_cut: that of the first call
    "store": "buffer", "mask_size": None, "checked": True,
    "order": "qkv", "values": "v",  # v, k, q, x
    "transposed": "",
    "no_bias": "",  # layers without a bias where one is asked for; o: out_proj; O: out_proj without qkv_bias
    "own_bias": "",  # layers with a bias where none is
    "drop": ("weights",),  # scores, hidden, weights, merged, output; one that stands twice acts twice
    "rate": None, "when": "training",  # in place of the argument; training, always, eval
    "cut": (), "mutate": "",  # where the graph is cut; scale, after
    "sizes": {},  # what is written in: B, T, C; context: T is the longest
    "dtype": "",  # input, weights, output, half
    "registered": "yes",  # yes, list, tensor, hidden, forward, anew; proj_anew, proj_hidden: out_proj alone
    "names": ("W_query", "W_key", "W_value"), "kept": "nothing",  # of KEPT
    "extra": "",  # out_proj, norm, temperature, layer; no_layer: without out_proj
    "super_init": True, "interface": "",
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


class OneHead(nn.Module):
    """One causal head with the faults in `knobs`. Several heads replace some of its methods."""

    knobs = None
    num_heads = 1

    def __init__(self, d_in, d_out, context_length, dropout=0.0, qkv_bias=False):
        knobs = self.knobs
        if knobs.super_init:
            super().__init__()
        self.context_length, self.d_out = context_length, d_out
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
        seen = visible(knobs.mask, knobs.mask_size or context_length)
        if knobs.store == "attribute":
            self.seen = seen
        elif knobs.store.endswith("parameter"):
            trained = knobs.store == "trained_parameter"
            self.seen = nn.Parameter(seen.float() if trained else seen, requires_grad=trained)
        elif knobs.store == "buffer":
            self.register_buffer("seen", seen)

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

    def cut(self, tensor, place):
        """The tensor, detached if this is where the graph is cut."""
        return tensor.detach() if place in self.knobs.cut else tensor

    def forward(self, x):
        knobs, T = self.knobs, x.shape[1]
        if knobs.checked and T > self.context_length:
            raise ValueError(f"{T} tokens do not fit a context of {self.context_length}")
        given, x = x, self.cut(x, "x")
        if knobs.mutate == "scale":
            x.mul_(0.5)
        if knobs.dtype == "input":
            x = x.float()
        layers = self.layers_for(x)
        found = {
            c: project(layer, self.cut(x, f"x_{c}"), c in knobs.transposed)
            for c, layer in zip("qkv", layers, strict=False)
        }
        q, k, v = (
            self.split(fixed(self.cut(found[c], place), self.sizes), place)
            for c, place in zip(knobs.order, "qkv", strict=True)
        )
        v = self.as_values(x, q) if knobs.values == "x" else {"q": q, "k": k, "v": v}[knobs.values]
        out = self.merge(self.attend(q, k, v, x), layers, x)
        out = self.dropped(out, "output")
        if knobs.extra in ("out_proj", "norm"):
            out = getattr(self, knobs.extra)(out)
        out = out * getattr(self, "temperature", 1.0)
        if knobs.mutate == "after":
            given.detach().zero_()
        if knobs.dtype in ("output", "half"):
            out = out.float() if knobs.dtype == "output" else out.half()
        out = out if knobs.decimals is None else out.round(decimals=knobs.decimals)
        return (out, None) if knobs.interface == "pair" else self.cut(out, "output")

    def dropped(self, t, place):
        for _ in range(self.knobs.drop.count(place)):
            t = self.dropout(t)
        return t

    def attend(self, q, k, v, x):
        """Each head's mix of the values."""
        knobs, (_, T, d_in) = self.knobs, x.shape
        sizes = {"hd": q.shape[-1], "nh": self.num_heads, "d_in": d_in, "d_out": self.d_out}
        sizes |= {"T": T, "context": self.context_length, "B": len(x), "B_nh": len(x) * self.num_heads}
        sizes |= {"width": self.d_out // self.num_heads}
        scale = float(sizes[knobs.divide_by]) ** knobs.power if knobs.constant is None else knobs.constant
        if knobs.precedence:
            scale = PRECEDENCE[knobs.precedence](q.shape[-1], self.d_out, self.num_heads)
        if knobs.rounded in ROUNDED_ROOTS:
            scale = 1 / ROUNDED_ROOTS[knobs.rounded](1 / scale)
        rounded = ROUNDED_SCORES.get(knobs.rounded, ROUNDED_SCORES["no"])

        def at(place, t):
            """The scores or weights, scaled, struck out or detached if this is the place for it."""
            t = rounded(t * scale) if knobs.scaled == place else t
            return self.cut(self.dropped(t, place), place)

        scores = at("scores", q @ k.transpose(-2, -1))
        seen = self.seen_by(scores, T)
        seen = seen.expand(scores.shape) if knobs.stretched else seen
        scores = at("hidden", hidden(scores, seen, knobs.how))
        scores = scores.float() if knobs.dtype == "weights" else scores
        return self.mixed(at("weights", weighed(scores, seen, knobs.how, knobs.softmax)), v)

    def mixed(self, weights, v):
        """The values, mixed by these weights."""
        return weights @ v

    def seen_by(self, scores, T):
        """What each query may see: the mask, cut to T tokens or in another way."""
        knobs = self.knobs
        if knobs.store in ("for_batch", "for_heads"):
            return visible(knobs.mask, len(scores) if knobs.store == "for_batch" else self.num_heads, scores.device)
        if knobs.store in ("first", "first_cut"):
            seen = first(self, "seen_first", visible(knobs.mask, T, scores.device))
            return seen if knobs.store == "first" else seen[:T, :T]
        if knobs.store == "cpu" or not knobs.checked:
            return visible(knobs.mask, T, "cpu" if knobs.store == "cpu" else scores.device)
        cuts = {
            "both": (T, T),
            "rows": (T, None),
            "no": (None, None),
            "fit": scores.shape[-2:],
            "batch": (len(scores), len(scores)),
        }
        rows, columns = cuts.get(knobs.sliced, (knobs.sliced, knobs.sliced))
        return self.seen[:rows, :columns].bool()


class Silent(nn.Module):
    """Only the constructor is written."""

    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, x):
        raise NotImplementedError


class Stub(Silent):
    """Nothing is written yet."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("your turn")


def declared(name, base, knobs, signatures, other_name):
    """The class by its name, as its knob `interface` says. signatures: constructors with other arguments."""
    cls, how = type(name, (Keeping, base), {"knobs": knobs}), knobs.interface
    if how in signatures:
        cls = type(name, (cls,), {"__init__": signatures[how]})
    return {other_name if how == "class" else name: {"stub": Stub, "silent": Silent}.get(how, cls)}


def attention_mutants(too_wide, wrong_axes, sqrt_heads=()):
    """Faults between the projections and the mix, most likely first.

    too_wide: sizes taken for the head's. wrong_axes: of the softmax. sqrt_heads: the name of the number of heads, if any.
    """
    divisors = (8, 4, 2, 64, 3, 768)
    roots = (2, 768)
    weak = (-10.0, -1.0, -5.0, -11.0, -12.0, -13.0, -14.0, -20.0, -40.0, -50.0)
    added = ("add_seen", "add_hidden", "subtract_hidden")
    softmaxes = ("missing", "sum", "sigmoid")
    return (
        ("scale_missing", {"power": 0}),
        *each("scale_sqrt_c", "divide_by", *too_wide),
        ("scale_no_sqrt", {"power": -1}),
        ("scale_twice", {"power": -1}),
        ("scale_multiplied", {"power": 0.5}),
        *each("scale_precedence", "precedence", *(PRECEDENCE if sqrt_heads else PRECEDENCE_OF_HD)),
        ("scale_after_softmax", {"scaled": "weights"}),
        *each("scale_sqrt_heads", "divide_by", *sqrt_heads),
        *each("scale_sqrt_tokens", "divide_by", "T", "context"),
        *each("scale_wrong_axis", "divide_by", "B", *(("B_nh",) if sqrt_heads else ())),
        *each("scale_rounded", "rounded", *ROUNDED_ROOTS, *tuple(ROUNDED_SCORES)[1:]),
        *each("scale_rounded", "rounded", *tuple(ROUNDED_SCORES)[1:], scaled="hidden"),
        *each("scale_constant", "constant", *(1 / n for n in divisors), *(1 / math.sqrt(n) for n in roots)),
        ("scores_ignored", {"constant": 0.0}),
        ("scores_ignored", {"constant": 0.0, "cut": ("scores",)}),  # zeros, or nothing at all, in place of scores
        *each("softmax_query_axis", "softmax", "queries", "queries_by_hand"),
        *each("softmax_wrong_axis", "softmax", *wrong_axes),
        *each("softmax_missing", "softmax", "missing_zero_filled", "missing", "sum_zero_filled", "sum", "sigmoid"),
        *each("softmax_missing", "softmax", "exp", "exp_shifted"),
        *(("softmax_missing", {"softmax": s, "how": h}) for s in softmaxes for h in (0.0, -1e9)),
        *each("softmax_query_axis", "how", -1e9, "inf_added", softmax="queries"),
        *each("softmax_wrong_axis", "softmax", *wrong_axes, how=-1e9),
        *each("softmax_wrong_axis", "softmax", *wrong_axes, how="inf_added"),
        # Masked before the softmax, and after it: over these axes nobody takes a share from another key.
        *each(
            "softmax_wrong_axis", "softmax", *(a for a in wrong_axes if a in ("batch", "heads")), how="after_softmax"
        ),
        ("mask_missing", {"mask": "none"}),
        *each("mask_reversed", "mask", "reversed", "future_only"),
        *each("mask_reversed", "how", -1e9, ("add", -1e9), mask="future_only"),
        *each("mask_excludes_self", "mask", "excludes_self", "excludes_self_but_first", "excludes_self_later"),
        *each("mask_excludes_self", "how", -1e9, "zero_row", ("add", -1e9), "by_hand", mask="excludes_self"),
        ("mask_peeks_one", {"mask": "peeks_one"}),
        *each("mask_zero_fill", "how", 0.0, "multiply", 1e-9, -1e-9),
        *each("mask_plus_inf", "how", INF, 1e9),
        ("mask_after_softmax", {"how": "after_softmax"}),
        *each("mask_nan", "how", "nan_product", "nan_factor", "after_softmax_inf", "after_softmax_inf_and_sum"),
        *each("mask_added", "how", *added),
        *each("mask_added", "how", *added, scaled="hidden"),
        *each("mask_weak_fill", "how", *weak[:3], *(("add", n) for n in weak[:3]), scaled="hidden"),
        ("mask_sdpa_inverted", {"mask": "future_only", "how": "zero_row"}),
        *each("mask_weak_fill", "how", *weak, *(("add", n) for n in weak if n >= -10)),
        *each("mask_weak_fill", "how", *LOW_FILLS, *(("below_head", "below_head_fixed") if sqrt_heads else ())),
        *each("mask_weak_fill", "how", *LOW_FILLS, scaled="hidden"),
        *each("mask_not_sliced", "sliced", "no", "rows"),
        ("mask_not_sliced", {"sliced": "no", "stretched": True}),
        *each("size_wrong_axis", "store", "for_batch", *(("for_heads",) if sqrt_heads else ())),
        ("size_wrong_axis", {"store": "for_batch", "stretched": True}),
        ("size_wrong_axis", {"sliced": "batch"}),
        ("mask_not_moved", {"store": "attribute"}),
        *each("mask_is_parameter", "store", "parameter", "trained_parameter"),
        ("context_unchecked", {"checked": False}),
    )


SOME = ("qkv", "q", "k", "v", "qk", "qv", "kv")

# The layers and the dropout.
LAYER_MUTANTS = (
    *each("qkv_order", "order", "kqv", "vkq", "qvk", "kvq", "vqk"),
    *each("values_wrong_source", "values", "k", "x", "q"),
    *each("weight_not_transposed", "transposed", *SOME),
    *each("proj_bias", "own_bias", *SOME),
    *each("proj_bias", "no_bias", *SOME),
    ("proj_bias", {"no_bias": "qkv", "own_bias": "qkv"}),
    *each("dropout_always_on", "when", "always", "eval"),
    ("dropout_missing", {"drop": ()}),
    *each("dropout_before_softmax", "drop", ("scores",), ("hidden",)),
    ("dropout_on_output_only", {"drop": ("output",)}),
    *each("dropout_extra", "drop", ("weights", "weights"), ("weights", "output")),
    *each("dropout_rate_fixed", "rate", 0.1, 0.5),
    *each("state_kept", "store", "first", "first_cut"),
    *each("state_kept", "kept", "rate", "batch", "answers", "awake", "tokens"),
)

# The gradients, the values and the sizes of the input.
INPUT_MUTANTS = (
    *each("gradient_cut", "cut", ("output",), ("weights",), ("scores",), ("x",), ("q",), ("k",), ("v",), ("q", "k")),
    *each("gradient_cut", "cut", ("x_q",), ("x_k",), ("x_v",)),
    *each("input_mutated", "mutate", "after", "scale"),
    *each("hard_coded_shape", "sizes", *({"B": n} for n in (2, 1, 8, 4, 3, 16, 32))),
    *each("hard_coded_shape", "sizes", *({"T": n} for n in (6, 4, 8, 5, 16, 1024))),
)

# Sizes of the mask, dtypes, a device and decimals that are written in.
WRITTEN_IN_MUTANTS = (
    *each("output_rounded", "decimals", 4, 3, 2),
    *each("hard_coded_shape", "sliced", 6, 4, 8, 5, 7),
    *each("hard_coded_shape", "mask_size", 6, 4, 5, 8, checked=True),
    *each("hard_coded_dtype", "dtype", "output", "input", "weights", "half"),
    ("hard_coded_device", {"store": "cpu"}),
)

# With a number that nobody can list.
ATTENTION_FAMILIES = (
    ("scale_constant", lambda c: {"constant": c}, SCALES_TRIED),
    ("mask_weak_fill", lambda c: {"how": -c}, FILLS_TRIED),
    ("mask_weak_fill", lambda c: {"how": ("add", -c)}, FILLS_TRIED),
    ("mask_weak_fill", lambda c: {"how": -c, "scaled": "hidden"}, FILLS_TRIED),
    ("mask_weak_fill", lambda c: {"how": ("below", c)}, FILLS_TRIED),
)
