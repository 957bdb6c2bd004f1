"""A module that attends, right but for its knobs: with a fused projection, unless a subclass has other layers."""

import torch
import torch.nn.functional as F
from torch import nn

from ._attention import CUTS, MERGES, MIXES, PROJS, SOURCES, SPLITS
from ._kept import first
from ._masking import VISIBLE, hidden, lower, of_mask, weighed
from ._scaling import ROUNDED_SCORES, factor

# The right value of each knob: of those that __init__ reads, and of those that forward reads.
OF_INIT = {"params": "right", "divisibility": "checked", "holder": "buffer", "rate": "given", "kept": "nothing"}
OF_FORWARD = {
    "scale": "sqrt_hd", "scaled": "scores", "mask": "causal", "softmax": "keys",
    "softmax_of": "queries_by_keys", "scores": "no", "cut": "qkv", "split": "heads", "split_of": "qkv", "merge": "heads",
    "attend_over": "tokens", "source": "own", "mix": "matmul", "proj": "linear", "context": "checked", "dropout": "both",
    "output_dropout": "there", "cut_gradient": (), "entrance": "plain", "returned": "tensor", "fixed": None,
    "holder_in_use": "buffer",
}  # fmt: skip


class Sizes:
    """B, T, C, nh, hd and block of one call, with those that are written into the code."""

    def __init__(self, x, nh, block, fixed):
        self.B, self.T, self.C = x.shape
        self.nh, self.block = nh, block
        for name, value in fixed.items():
            setattr(self, name, block if value == "block" else value)
        if "hd" not in fixed:
            self.hd = self.C // self.nh
        if "hd" in fixed and "nh" not in fixed:
            self.nh = self.C // self.hd


class Weight(nn.Module):
    """A linear layer that keeps its weight where parameters() does not see it."""

    def __init__(self, n_in, n_out):
        super().__init__()
        object.__setattr__(self, "weight", torch.randn(n_out, n_in) / n_in**0.5)

    def _apply(self, fn, recurse=True):
        object.__setattr__(self, "weight", fn(self.weight))
        return super()._apply(fn, recurse)

    def forward(self, x):
        return F.linear(x, self.weight)


# What mask is used, (module, x: scores or queries, sizes). The module may hold one of the largest context in `seen`.
HOLDERS = {
    "whole": lambda module, x, s: module.seen,
    "whole_stretched": lambda module, x, s: module.seen.expand(*x.shape[:-1], x.shape[-2]),
    "rows_only": lambda module, x, s: module.seen[: x.shape[-2]],
    "cut_to_tokens": lambda module, x, s: module.seen[: s.T, : s.T],
    "cut_to_batch": lambda module, x, s: module.seen[: s.B, : s.B],
    "cut_to_scores": lambda module, x, s: module.seen[: x.shape[-2], : x.shape[-1]],
    "made_for_batch": lambda module, x, s: lower(s.B, x.device),
    "made_for_batch_stretched": lambda module, x, s: lower(s.B, x.device).expand(x.shape),
    "made_for_heads": lambda module, x, s: lower(s.nh, x.device),
    "made_on_default_device": lambda module, x, s: lower(x.shape[-2]),
    "made_in_forward": lambda module, x, s: lower(x.shape[-2], x.device),
    "first_call": lambda module, x, s: first(module, "seen_first", lower(x.shape[-2], x.device)),
    "first_call_cut": lambda module, x, s: HOLDERS["first_call"](module, x, s)[: x.shape[-2], : x.shape[-2]],
}


class Attention(nn.Module):
    """Right, but for its knobs. A subclass may choose the knobs of each call (`knobs_now`), and what is done with q, k
    and v (`gather`)."""

    knobs = None

    def __init__(self, n_embd, n_head, block_size, dropout=0.0):
        k = self.knobs
        super().__init__()
        divided = block_size if k.divisibility == "of_block" else n_embd
        if divided % n_head and k.divisibility != "open":
            raise ValueError(f"n_embd = {n_embd} cannot be cut into n_head = {n_head} equal heads")
        self.n_head, self.block_size = n_head, block_size
        self.p = 0.1 if k.rate in ("fixed", "fixed_weights") else dropout  # of the weights
        make_layers(self, k.params, n_embd, block_size)
        self.drop = nn.Dropout(self.p)
        self.drop_output = nn.Dropout(0.1 if k.rate in ("fixed", "fixed_output") else dropout)
        self.hold_mask(k.holder, block_size)

    def hold_mask(self, holder, size):
        seen = lower(size)
        if holder == "attribute":
            self.seen = seen
        elif holder in ("parameter", "float_parameter"):
            self.seen = nn.Parameter(seen.float(), requires_grad=holder == "float_parameter")
        else:
            self.register_buffer("seen", seen, persistent=False)

    def mask_for(self, x, holder, s):
        """The mask for x: scores, or queries. holder: one of HOLDERS, or a number of tokens to which it is cut."""
        if holder in HOLDERS:
            return HOLDERS[holder](self, x, s)
        size = holder if isinstance(holder, int) else x.shape[-2]
        return self.seen[:size, :size].bool()

    def cut(self, place, t, k):
        """The tensor, detached if this is where the graph is cut."""
        return t.detach() if place in k.cut_gradient else t

    def knobs_now(self):
        return self.knobs

    def forward(self, x):
        k = self.knobs_now()
        if x.shape[1] > self.block_size:
            if k.context == "checked":
                raise ValueError(f"T = {x.shape[1]} tokens do not fit block_size = {self.block_size}")
            if k.context == "cut":
                x = x[:, : self.block_size]
        given, x = x, ENTRANCES[k.entrance](x)
        s = Sizes(x, self.n_head, self.block_size, k.fixed or {})
        y = self.cut("y", self.attend(self.cut("x", x, k), s, k), k)
        out = PROJS[k.proj](y, self.cut("proj", self.weight_of("proj"), k))
        if self.knobs.params in ("proj_bias", "both_biases"):
            out = out + self.proj.bias
        out = self.cut("out", self.dropped_output(out, k), k)
        if k.entrance in EXITS:
            EXITS[k.entrance](given, out)
        return RETURNS[k.returned](out)

    def weight_of(self, name):
        params = self.knobs.params
        if params == "renamed":
            name = {"qkv": "c_attn", "proj": "c_proj"}[name]
        if params in ("recreated", "anew") or (params in ("proj_recreated", "proj_anew") and name == "proj"):
            C = self.C
            return nn.Linear(C, 3 * C if name == "qkv" else C, bias=False).weight.to(self.marker)
        if params == "separate" and name == "qkv":
            return torch.cat([self.W_query.weight, self.W_key.weight, self.W_value.weight])
        if params == "bare" and name == "qkv":
            return self.qkv
        return getattr(self, name).weight

    def attend(self, x, s, k):
        W = self.cut("W", self.weight_of("qkv"), k)
        z = F.linear(x, W)
        if self.knobs.params in ("qkv_bias", "both_biases"):
            z = z + self.qkv.bias
        parts = CUTS[k.cut](z, x, W, s)
        ways = [k.split if name in k.split_of else "heads" for name in "qkv"]
        q, key, v = (t if t.dim() == 4 else SPLITS[way](t, s) for t, way in zip(parts, ways, strict=True))
        q, key, v = SOURCES[k.source](q, key, v, SPLITS["heads"](x, s))
        if k.attend_over == "heads":
            q, key, v = (t.transpose(1, 2) for t in (q, key, v))
        y = self.gather(*(self.cut(place, t, k) for place, t in zip("qkv", (q, key, v), strict=True)), s, k)
        if k.attend_over == "heads":
            y = y.transpose(1, 2)
        return MERGES[k.merge](y, s)

    def gather(self, q, key, v, s, k):
        return self.weigh(q, key, v, s, k)

    def weigh(self, q, key, v, s, k):
        """Each head's mix of the values."""
        by, (which, how) = factor(k.scale, s), self.mask_of(k)

        def at(place, t):
            """The scores or weights, scaled, struck out or detached if this is the place for it."""
            t = ROUNDED_SCORES[k.scores](t * by) if place in k.scaled.split("+") else t
            return self.cut(place, self.dropped(place, t, k), k)

        scores = q @ key.transpose(-2, -1)
        scores = at("scores", scores.mT if k.softmax_of == "keys_by_queries" else scores)
        seen = self.mask_for(scores, k.holder_in_use, s)
        seen = None if seen is None else VISIBLE[which](seen)
        scores = at("hidden", hidden(scores, seen, how))
        return MIXES[k.mix](at("weights", weighed(scores, seen, how, k.softmax)), v)

    def mask_of(self, k):
        """What may be seen, and how the rest is hidden."""
        return of_mask(k.mask)

    def dropped(self, place, t, k):
        if place == "weights":
            return self.dropped_weights(t, k)
        return self.drop(t) if place == "hidden" and k.dropout == "scores" else t

    def dropped_weights(self, weights, k):
        if k.dropout in ("missing", "weights_missing", "scores"):
            return weights
        if k.dropout in ("functional", "weights_functional", "ungated"):
            return F.dropout(weights, self.p)
        if k.dropout == "kept_training":
            self.drop.train()
        return self.drop(self.drop(weights) if k.dropout == "weights_twice" else weights)

    def dropped_output(self, out, k):
        if k.dropout in ("missing", "output_missing") or k.output_dropout == "missing":
            return out
        if k.dropout in ("functional", "output_functional"):
            return F.dropout(out, self.p)
        return self.drop_output(self.drop_output(out) if k.dropout == "output_twice" else out)


def make_layers(self, params, C, block):
    """The two layers, as `params` says."""
    if params == "renamed":
        self.c_attn, self.c_proj = nn.Linear(C, 3 * C, bias=False), nn.Linear(C, C, bias=False)
        return
    if params in ("recreated", "proj_recreated", "anew", "proj_anew"):
        self.C = C
        self.register_buffer("marker", torch.zeros(()), persistent=False)
    if params == "recreated":
        return
    if params == "separate":
        self.W_query, self.W_key, self.W_value = (nn.Linear(C, C, bias=False) for _ in range(3))
    elif params == "bare":
        self.qkv = nn.Parameter(torch.randn(3 * C, C) / C**0.5)
    elif params in ("unregistered", "qkv_unregistered"):
        self.qkv = Weight(C, 3 * C)
    elif params == "in_list":
        object.__setattr__(self, "qkv", nn.Linear(C, 3 * C, bias=False))
    else:
        self.qkv = nn.Linear(C, 3 * C, bias=params in ("qkv_bias", "both_biases"))
    if params in ("unregistered", "proj_unregistered"):
        self.proj = Weight(C, C)
    elif params != "proj_recreated":
        self.proj = nn.Linear(C, C, bias=params in ("proj_bias", "both_biases"))
    if params == "temperature":
        self.temperature = nn.Parameter(torch.ones(1))
    elif params == "layer_norm":
        self.norm = nn.LayerNorm(C)
    elif params == "positions":
        self.positions = nn.Parameter(torch.zeros(block + 1, C))
    elif params == "extra_layer":
        self.query = nn.Linear(C, C, bias=False)


def by_sdpa(self, q, k, v):
    return F.scaled_dot_product_attention(q, k, v, dropout_p=self.p if self.training else 0.0, is_causal=True)


# What forward does with x at its end, (x, output), and what it makes of x at its start.
EXITS = {
    "zeroed": lambda x, out: x.zero_(),
    "overwritten": lambda x, out: x.copy_(out),
    "residual": lambda x, out: x.add_(out),
    "scaled": lambda x, out: x.mul_(x.shape[-1] ** -0.5),
}
ENTRANCES = dict.fromkeys(EXITS, torch.clone) | {
    "plain": lambda x: x,
    "float32": lambda x: x.float(),
    "float64": lambda x: x.double(),
    "half": lambda x: x.half(),
    "cuda": lambda x: x.cuda(),
    "cpu": lambda x: x.cpu(),
    "cpu_back": lambda x: x + torch.zeros(x.shape, dtype=x.dtype),
}
RETURNS = {
    "tensor": lambda out: out,
    "with_nothing": lambda out: (out, None),
    "list": lambda out: [out],
    "nothing": lambda out: None,
    "numpy": lambda out: out.detach().numpy(),
    "float32": lambda out: out.float(),
} | {f"rounded_{n}": lambda out, n=n: out.round(decimals=n) for n in (2, 3, 4)}


# Where gradients stop.
CUTS_OF_GRADIENT = [(place,) for place in ("x", "W", "q", "k", "v", "scores", "weights", "y", "proj", "out")]
CUTS_OF_GRADIENT += [("q", "k"), ("k", "v"), ("W", "proj")]
