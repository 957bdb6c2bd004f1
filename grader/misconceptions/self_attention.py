"""Wrong attempts at one causal head: one implementation, a knob for each fault."""

import math

import torch
import torch.nn.functional as F
from torch import nn

INF = float("inf")

# Which keys a query may see, from the (n, n) table of key index − query index.
VISIBLE = {
    "causal": lambda ahead: ahead <= 0,
    "none": lambda ahead: ahead == ahead,
    "reversed": lambda ahead: ahead >= 0,
    "future_only": lambda ahead: ahead > 0,
    "excludes_self": lambda ahead: ahead < 0,
    "peeks_one": lambda ahead: ahead <= 1,
}

# How a score is hidden, given the scores and where they are visible.
HIDE = {
    "zero_row": lambda scores, seen: scores.masked_fill(~seen, -INF),  # and NaN rows become 0 after the softmax
    "multiply": lambda scores, seen: scores * seen,
    "add_seen": lambda scores, seen: scores + seen,
    "add_hidden": lambda scores, seen: scores + ~seen,
    "subtract_hidden": lambda scores, seen: scores - (~seen).to(scores.dtype),
    "nan_product": lambda scores, seen: scores + (~seen).to(scores.dtype) * -INF,
    "nan_factor": lambda scores, seen: scores * torch.where(seen, 1.0, -INF).to(scores.dtype),
    "after_softmax": lambda scores, seen: scores,
    "by_hand": lambda scores, seen: scores,
    "after_softmax_inf": lambda scores, seen: scores,
    "after_softmax_inf_and_sum": lambda scores, seen: scores,
}

SOFTMAX = {
    "keys": lambda s: s.softmax(-1),
    "queries": lambda s: s.softmax(-2),
    "batch": lambda s: s.softmax(0),
    "square": lambda s: s.flatten(-2).softmax(-1).view_as(s),
    "everything": lambda s: s.flatten().softmax(0).view_as(s),
    "missing": lambda s: s,
    "sigmoid": lambda s: s.sigmoid(),
    "sum": lambda s: s / s.sum(-1, keepdim=True),
    "sum_zero_filled": lambda s: s.masked_fill(s == -INF, 0.0) / s.masked_fill(s == -INF, 0.0).sum(-1, keepdim=True),
    "missing_zero_filled": lambda s: s.masked_fill(s == -INF, 0.0),
}


def hidden(scores, seen, how):
    """The scores with what may not be seen hidden: filled with a number, added to, or as HIDE says."""
    if isinstance(how, tuple):
        return scores + (~seen).to(scores.dtype) * how[1]
    return HIDE[how](scores, seen) if isinstance(how, str) else scores.masked_fill(~seen, how)


def weighed(scores, seen, how, softmax):
    """Weights from hidden scores, with what some ways of hiding do afterwards."""
    weights = SOFTMAX[softmax](scores)
    if how == "zero_row":
        return weights.nan_to_num(0.0)
    if how == "after_softmax":
        return weights * seen
    if how == "by_hand":
        return SOFTMAX["sum"]((scores - scores.amax(-1, keepdim=True)).exp() * seen)
    if how == "after_softmax_inf_and_sum":
        return SOFTMAX["sum"](weights.masked_fill(~seen, -INF))
    return weights.masked_fill(~seen, -INF) if how == "after_softmax_inf" else weights


def factor(divide_by, power, constant, sizes):
    """What the scores are multiplied by."""
    return constant if constant is not None else float(sizes[divide_by]) ** power


def cut_off(tensor, name, cut):
    """The tensor, detached if this is where the graph is cut."""
    return tensor.detach() if name in cut else tensor


def project(layer, x, transposed):
    """The layer's answer, or x @ W in place of x @ Wᵀ."""
    if not transposed:
        return layer(x)
    return x @ layer.weight if layer.bias is None else x @ layer.weight + layer.bias


def fixed(tensor, sizes):
    """View (B, T, d) with some of its sizes written in."""
    B, T, d = tensor.shape
    if not sizes:
        return tensor
    return tensor.contiguous().view(sizes.get("B", B), sizes.get("T", T), sizes.get("d", d))


class Awake(nn.Module):
    """Dropout that acts when it should, always, or in eval mode only."""

    def __init__(self, p, when):
        super().__init__()
        self.p, self.when = p, when

    def forward(self, x):
        awake = {"training": self.training, "always": True, "eval": not self.training}[self.when]
        return F.dropout(x, self.p, training=awake)


WRONG_AXES = ("batch", "square", "everything")


def make(
    *,
    divide_by="hd",  # hd d_in T context B
    power=-0.5,
    constant=None,
    scaled="scores",  # scores, weights, hidden: once they are hidden
    softmax="keys",
    mask="causal",
    how=-INF,
    sliced="both",  # both, rows, no, or a number of tokens
    store="buffer",  # buffer, attribute, parameter, trained_parameter, cpu
    mask_size=None,
    checked=True,
    order="qkv",
    values="v",  # v, k, q, x
    transposed="",
    no_bias="",  # layers without a bias where one is asked for
    own_bias="",  # layers with a bias where none is
    drop="weights",
    when="training",
    cut=(),
    mutate="",
    sizes=None,
    dtype="",
    registered="yes",
    names=("W_query", "W_key", "W_value"),
    extra="",
    super_init=True,
    interface="",
):
    """The exercise's names, with these faults; the defaults are right."""

    class CausalAttention(nn.Module):
        def __init__(self, d_in, d_out, context_length, dropout=0.0, qkv_bias=False):
            if super_init:
                super().__init__()
            self.context_length, self.d_out = context_length, d_out
            biased = {c: c not in no_bias if qkv_bias else c in own_bias for c in "qkv"}
            layers = [nn.Linear(d_in, d_out, bias=biased[c]) for c in "qkv"]
            if registered == "list":
                self.layers = [layers]
            for name, layer in zip(names, layers, strict=True):
                if registered == "tensor":
                    setattr(self, name, layer.weight.detach())
                elif registered in ("yes", "anew"):
                    setattr(self, name, layer)
            self.dropout = Awake(dropout, when)
            self._extra(d_in, d_out)
            n = mask_size or context_length
            seen = VISIBLE[mask](torch.arange(n)[None] - torch.arange(n)[:, None])
            if store == "attribute":
                self.seen = seen
            elif store.endswith("parameter"):
                trained = store == "trained_parameter"
                self.seen = nn.Parameter(seen.float() if trained else seen, requires_grad=trained)
            elif store == "buffer":
                self.register_buffer("seen", seen)

        def _extra(self, d_in, d_out):
            if extra == "out_proj":
                self.out_proj = nn.Linear(d_out, d_out)
            elif extra == "norm":
                self.norm = nn.LayerNorm(d_out)
            elif extra == "temperature":
                self.temperature = nn.Parameter(torch.ones(()))

        def _layers(self, x):
            if registered == "list":
                return [layer.to(x) for layer in self.layers[0]]
            if registered in ("forward", "anew"):
                return [nn.Linear(x.shape[-1], self.d_out).to(x) for _ in names]
            return [getattr(self, name) for name in names]

        def _seen(self, T, device):
            if store == "cpu" or not checked:
                n = torch.arange(T, device="cpu" if store == "cpu" else device)
                return VISIBLE[mask](n[None] - n[:, None])
            if isinstance(sliced, int):
                return self.seen[:sliced, :sliced].bool()
            seen = {"both": self.seen[:T, :T], "rows": self.seen[:T], "no": self.seen}[sliced]
            return seen.bool()

        def forward(self, x):
            B, T, d_in = x.shape
            if checked and T > self.context_length:
                raise ValueError(f"{T} tokens do not fit a context of {self.context_length}")
            x_given, x = x, cut_off(x, "x", cut)
            if mutate == "scale":
                x.mul_(0.5)
            if dtype == "input":
                x = x.float()
            if registered == "tensor":
                found = [x @ w.to(x).T for w in self._layers(x)]
            else:
                inputs = [cut_off(x, f"x_{c}", cut) for c in "qkv"]
                found = [
                    project(layer, y, c in transposed)
                    for layer, y, c in zip(self._layers(x), inputs, "qkv", strict=True)
                ]
            named = dict(zip("qkv", found, strict=True))
            q, k, v = (fixed(cut_off(named[c], o, cut), sizes) for c, o in zip(order, "qkv", strict=True))
            v = {"v": v, "k": k, "q": q, "x": x}[values]
            out = self._mix(
                q, k, v, T, {"hd": self.d_out, "d_in": d_in, "T": T, "context": self.context_length, "B": B}
            )
            if mutate == "after":
                x_given.detach().zero_()
            if dtype in ("output", "half"):
                out = out.float() if dtype == "output" else out.half()
            return (out, None) if interface == "pair" else cut_off(out, "output", cut)

        def _mix(self, q, k, v, T, widths):
            scale, seen = factor(divide_by, power, constant, widths), self._seen(T, q.device)
            scores = q @ k.transpose(-2, -1)
            scores = scores * scale if scaled == "scores" else scores
            scores = self.dropout(scores) if drop == "scores" else scores
            scores = hidden(cut_off(scores, "scores", cut), seen, how)
            scores = scores * scale if scaled == "hidden" else scores
            scores = self.dropout(scores) if drop == "hidden_scores" else scores
            weights = weighed(scores.float() if dtype == "weights" else scores, seen, how, softmax)
            weights = weights * scale if scaled == "weights" else weights
            weights = self.dropout(weights) if drop in ("weights", "both") else weights
            out = cut_off(weights, "weights", cut) @ v
            out = self.dropout(out) if drop in ("output", "both") else out
            if extra == "out_proj":
                return self.out_proj(out)
            return self.norm(out) if extra == "norm" else out * getattr(self, "temperature", 1.0)

    class Required(CausalAttention):
        def __init__(self, d_in, d_out, context_length, dropout, qkv_bias):
            super().__init__(d_in, d_out, context_length, dropout, qkv_bias)

    class Renamed(CausalAttention):
        def __init__(self, d_in, d_out, block_size, p=0.0, bias=False):
            super().__init__(d_in, d_out, block_size, p, bias)

    class Stub(nn.Module):
        def __init__(self, *args, **kwargs):
            raise NotImplementedError("your turn")

    class Silent(nn.Module):
        def __init__(self, *args, **kwargs):
            super().__init__()

        def forward(self, x):
            raise NotImplementedError

    if interface == "class":
        return {"SelfAttention": CausalAttention}
    shapes = {"required": Required, "renamed": Renamed, "stub": Stub, "silent": Silent}
    return {"CausalAttention": shapes.get(interface, CausalAttention)}


DIVISORS = (8, 4, 2, 16, 10, 64, 100, 3, 768, 12)
WEAK = (-10, -1, -5, -2, -3, -4, -6, -7, -8, -9, -11, -12, -20, -30, -15, -40, -50, -0.5, -0.1, -16, -32, -25, -13, -14)

MUTANTS = (
    ("scale_missing", {"power": 0}),
    ("scale_sqrt_c", {"divide_by": "d_in"}),
    ("scale_no_sqrt", {"power": -1}),
    ("scale_twice", {"power": -1}),
    ("scale_multiplied", {"power": 0.5}),
    ("scale_after_softmax", {"scaled": "weights"}),
    ("scale_sqrt_tokens", {"divide_by": "T"}),
    ("scale_sqrt_tokens", {"divide_by": "context"}),
    *(("scale_constant", {"constant": 1 / n}) for n in DIVISORS),
    *(("scale_constant", {"constant": 1 / math.sqrt(n)}) for n in (2, 3, 6, 5, 12, 32, 128, 512, 768)),
    ("softmax_query_axis", {"softmax": "queries"}),
    ("softmax_wrong_axis", {"softmax": "batch"}),
    ("softmax_wrong_axis", {"softmax": "square"}),
    ("softmax_wrong_axis", {"softmax": "everything"}),
    ("softmax_missing", {"softmax": "missing_zero_filled"}),
    ("softmax_missing", {"softmax": "missing"}),
    ("softmax_missing", {"softmax": "sum_zero_filled"}),
    ("softmax_missing", {"softmax": "sum"}),
    ("softmax_missing", {"softmax": "sigmoid"}),
    *(("softmax_missing", {"softmax": s, "how": h}) for s in ("missing", "sum", "sigmoid") for h in (0.0, -1e9)),
    ("softmax_query_axis", {"softmax": "queries", "how": -1e9}),
    *(("softmax_wrong_axis", {"softmax": s, "how": -1e9}) for s in WRONG_AXES),
    ("mask_missing", {"mask": "none"}),
    ("mask_reversed", {"mask": "reversed"}),
    ("mask_reversed", {"mask": "future_only"}),
    ("mask_reversed", {"mask": "future_only", "how": -1e9}),
    ("mask_reversed", {"mask": "future_only", "how": ("add", -1e9)}),
    ("mask_excludes_self", {"mask": "excludes_self"}),
    ("mask_excludes_self", {"mask": "excludes_self", "how": -1e9}),
    ("mask_excludes_self", {"mask": "excludes_self", "how": "zero_row"}),
    ("mask_excludes_self", {"mask": "excludes_self", "how": ("add", -1e9)}),
    ("mask_excludes_self", {"mask": "excludes_self", "how": "by_hand"}),
    ("mask_peeks_one", {"mask": "peeks_one"}),
    ("mask_zero_fill", {"how": 0.0}),
    ("mask_zero_fill", {"how": "multiply"}),
    ("mask_zero_fill", {"how": 1e-9}),
    ("mask_zero_fill", {"how": -1e-9}),
    ("mask_plus_inf", {"how": INF}),
    ("mask_plus_inf", {"how": 1e9}),
    ("mask_after_softmax", {"how": "after_softmax"}),
    ("mask_nan", {"how": "nan_product"}),
    ("mask_nan", {"how": "nan_factor"}),
    ("mask_nan", {"how": "after_softmax_inf"}),
    ("mask_nan", {"how": "after_softmax_inf_and_sum"}),
    ("mask_added", {"how": "add_seen"}),
    ("mask_added", {"how": "add_hidden"}),
    ("mask_added", {"how": "subtract_hidden"}),
    *(("mask_added", {"how": way, "scaled": "hidden"}) for way in ("add_seen", "add_hidden", "subtract_hidden")),
    *(("mask_weak_fill", {"how": float(n), "scaled": "hidden"}) for n in WEAK[:3]),
    *(("mask_weak_fill", {"how": ("add", float(n)), "scaled": "hidden"}) for n in WEAK[:3]),
    ("mask_sdpa_inverted", {"mask": "future_only", "how": "zero_row"}),
    *(("mask_weak_fill", {"how": float(n)}) for n in WEAK),
    *(("mask_weak_fill", {"how": ("add", float(n))}) for n in WEAK if n >= -10),
    ("mask_not_sliced", {"sliced": "no"}),
    ("mask_not_sliced", {"sliced": "rows"}),
    ("mask_not_moved", {"store": "attribute"}),
    ("mask_is_parameter", {"store": "parameter"}),
    ("mask_is_parameter", {"store": "trained_parameter"}),
    ("context_unchecked", {"checked": False}),
    *(("qkv_order", {"order": order}) for order in ("kqv", "vkq", "qvk", "kvq", "vqk")),
    *(("values_wrong_source", {"values": source}) for source in "kxq"),
    *(("weight_not_transposed", {"transposed": which}) for which in ("qkv", "q", "k", "v", "qk", "qv", "kv")),
    *(("proj_bias", {"own_bias": which}) for which in ("qkv", "q", "k", "v", "qk", "qv", "kv")),
    *(("proj_bias", {"no_bias": which}) for which in ("qkv", "q", "k", "v", "qk", "qv", "kv")),
    ("proj_bias", {"no_bias": "qkv", "own_bias": "qkv"}),
    ("dropout_always_on", {"when": "always"}),
    ("dropout_always_on", {"when": "eval"}),
    ("dropout_missing", {"drop": "none"}),
    ("dropout_before_softmax", {"drop": "scores"}),
    ("dropout_before_softmax", {"drop": "hidden_scores"}),
    ("dropout_on_output_only", {"drop": "output"}),
    *(("gradient_cut", {"cut": places}) for places in (("output",), ("weights",), ("scores",), ("x",))),
    *(("gradient_cut", {"cut": places}) for places in (("q",), ("k",), ("v",), ("q", "k"))),
    *(("gradient_cut", {"cut": (place,)}) for place in ("x_q", "x_k", "x_v")),
    ("input_mutated", {"mutate": "after"}),
    ("input_mutated", {"mutate": "scale"}),
    *(("hard_coded_shape", {"sizes": {"B": n}}) for n in (2, 1, 8, 4, 3, 16, 32)),
    *(("hard_coded_shape", {"sizes": {"T": n}}) for n in (6, 4, 8, 5, 16, 1024)),
    *(("hard_coded_shape", {"sizes": {"d": n}}) for n in (2, 4, 64, 3, 8, 768)),
    *(("hard_coded_shape", {"sliced": n}) for n in (6, 4, 8, 5, 7)),
    *(("hard_coded_shape", {"mask_size": n, "checked": True}) for n in (6, 4, 5, 8)),
    ("hard_coded_dtype", {"dtype": "output"}),
    ("hard_coded_dtype", {"dtype": "input"}),
    ("hard_coded_dtype", {"dtype": "weights"}),
    ("hard_coded_dtype", {"dtype": "half"}),
    ("hard_coded_device", {"store": "cpu"}),
    ("params_not_registered", {"registered": "list"}),
    ("params_not_registered", {"registered": "tensor"}),
    ("params_not_registered", {"registered": "forward"}),
    ("params_not_registered", {"registered": "anew"}),
    ("params_extra", {"extra": "out_proj"}),
    ("params_extra", {"extra": "norm"}),
    ("params_extra", {"extra": "temperature"}),
    ("params_extra", {"names": ("w_q", "w_k", "w_v")}),
    ("params_extra", {"names": ("q_proj", "k_proj", "v_proj")}),
    ("super_init_missing", {"super_init": False}),
    ("interface", {"interface": "class"}),
    ("interface", {"interface": "pair"}),
    ("interface", {"interface": "required"}),
    ("interface", {"interface": "renamed"}),
    ("stub_untouched", {"interface": "stub"}),
    ("stub_untouched", {"interface": "silent"}),
)
