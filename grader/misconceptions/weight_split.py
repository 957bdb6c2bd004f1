"""Wrong attempts at multi-head attention by weight split: one implementation, a knob for each fault."""

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
    "heads": lambda s: s.softmax(1),
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


# (B, T, C) to (B, nh, T, hd), or what was taken for it.
SPLIT = {
    "heads": lambda t, nh: t.unflatten(-1, (nh, -1)).transpose(1, 2),
    "view": lambda t, nh: t.reshape(t.shape[0], nh, t.shape[1], -1),
    "interleaved": lambda t, nh: t.unflatten(-1, (-1, nh)).permute(0, 3, 1, 2),
    "heads_first": lambda t, nh: t.reshape(nh, t.shape[0], t.shape[1], -1).transpose(0, 1),
    "batch_beside_heads": lambda t, nh: SPLIT["heads"](t, nh).transpose(0, 1).reshape(t.shape[0], nh, t.shape[1], -1),
    "reversed": lambda t, nh: SPLIT["heads"](t, nh).flip(1),
    "first_shared": lambda t, nh: SPLIT["heads"](t, nh)[:, :1].expand(-1, nh, -1, -1),
    "tokens_first": lambda t, nh: t.unflatten(-1, (nh, -1)),
    "view_not_contiguous": lambda t, nh: SPLIT["heads"](t, nh).view(len(t) * nh, t.shape[1], -1).unflatten(0, (-1, nh)),
}


def axes(*order):
    """A merge that moves the axes of (B, nh, T, hd) so before it flattens."""
    return lambda y, B, T: y.permute(order).reshape(B, T, -1)


# (B, nh, T, hd) to (B, T, C), or what was taken for it.
MERGE = {
    "heads": axes(0, 2, 1, 3),
    "no_transpose": axes(0, 1, 2, 3),
    "stacked_last": axes(0, 2, 3, 1),
    "swapped_1_3": axes(0, 3, 2, 1),
    "swapped_2_3": axes(0, 1, 3, 2),
    "hd_nh_t": axes(0, 3, 1, 2),
    "t_b": axes(2, 0, 1, 3),
    "nh_b": axes(1, 0, 2, 3),
    "nh_t_b": axes(1, 2, 0, 3),
    "t_nh_b": axes(2, 1, 0, 3),
    "nh_t_b_folded": lambda y, B, T: y.reshape(y.shape[1], B, T, -1).permute(1, 2, 0, 3).reshape(B, T, -1),
    "reversed": lambda y, B, T: MERGE["heads"](y.flip(1), B, T),
    "rolled": lambda y, B, T: MERGE["heads"](y.roll(1, 1), B, T),
    "rolled_back": lambda y, B, T: MERGE["heads"](y.roll(-1, 1), B, T),
    "mean": lambda y, B, T: y.mean(1),
    "sum": lambda y, B, T: y.sum(1),
    "mean_repeated": lambda y, B, T: y.mean(1).repeat(1, 1, y.shape[1]),
    "sum_repeated": lambda y, B, T: y.sum(1).repeat(1, 1, y.shape[1]),
    "mean_interleaved": lambda y, B, T: y.mean(1).repeat_interleave(y.shape[1], -1),
    "sum_interleaved": lambda y, B, T: y.sum(1).repeat_interleave(y.shape[1], -1),
    "view": lambda y, B, T: y.contiguous().transpose(1, 2).view(B, T, -1),
}


def fixed(tensor, sizes):
    """View (B, T, C) with some of its sizes written in."""
    B, T, C = tensor.shape
    if not sizes.keys() & {"B", "T", "C"}:
        return tensor
    return tensor.contiguous().view(sizes.get("B", B), sizes.get("T", T), sizes.get("C", C))


def projected(proj, y, how):
    """The output projection, or what is left of it."""
    if how == "missing":
        return y
    if how == "transposed":
        return y @ proj.weight if proj.bias is None else y @ proj.weight + proj.bias
    if how == "no_bias_used":
        return F.linear(y, proj.weight)
    return proj(y)


class Awake(nn.Module):
    """Dropout that acts when it should, always, or in eval mode only."""

    def __init__(self, p, when):
        super().__init__()
        self.p, self.when = p, when

    def forward(self, x):
        awake = {"training": self.training, "always": True, "eval": not self.training}[self.when]
        return F.dropout(x, self.p, training=awake)


WRONG_AXES = ("heads", "batch", "square", "everything")


def make(
    *,
    divide_by="hd",  # hd d_in d_out nh T context B
    power=-0.5,
    constant=None,
    scaled="scores",  # scores, weights, both, hidden: once they are hidden
    softmax="keys",
    mask="causal",
    how=-INF,
    sliced="both",  # both, rows, no, fit, or a number of tokens
    store="buffer",  # buffer, attribute, parameter, trained_parameter, cpu
    mask_size=None,
    checked=True,
    divides=True,
    order="qkv",
    values="v",  # v, k, q, x
    transposed="",
    no_bias="",  # layers without a bias where one is asked for; o: out_proj
    own_bias="",  # layers with a bias where none is
    split="heads",
    split_only="qkv",  # the others are split well
    merge="heads",
    proj="linear",
    drop="weights",
    when="training",
    cut=(),
    mutate="",
    sizes=None,
    dtype="",
    registered="yes",
    names=("W_query", "W_key", "W_value", "out_proj"),
    extra="",
    super_init=True,
    interface="",
):
    """The exercise's names, with these faults; the defaults are right."""
    sizes = sizes or {}

    class MultiHeadAttention(nn.Module):
        def __init__(self, d_in, d_out, context_length, num_heads, dropout=0.0, qkv_bias=False):
            if super_init:
                super().__init__()
            if divides and d_out % num_heads:
                raise ValueError(f"{d_out} channels do not divide into {num_heads} heads")
            self.context_length, self.d_out = context_length, d_out
            self.num_heads = sizes.get("nh", d_out // sizes["hd"] if "hd" in sizes else num_heads)
            biased = {c: c not in no_bias if qkv_bias else c in own_bias for c in "qkv"}
            layers = [nn.Linear(d_in, d_out, bias=biased[c]) for c in "qkv"]
            layers.append(nn.Linear(d_out, d_out, bias="o" not in no_bias))
            if registered == "list":
                self.layers = [layers]
            if registered == "proj_hidden":
                object.__setattr__(self, names[3], layers[3])
            for name, layer in zip(names, layers, strict=True):
                if registered == "tensor":
                    setattr(self, name, layer.weight.detach())
                elif (registered in ("proj_in_forward", "proj_hidden") and name != names[3]) or (
                    registered in ("yes", "anew", "proj_anew")
                    and not (proj == "missing" and name == "out_proj" and extra == "no_layer")
                ):
                    setattr(self, name, layer)
            self.dropout = Awake(dropout, when)
            if extra == "norm":
                self.norm = nn.LayerNorm(d_out)
            elif extra == "temperature":
                self.temperature = nn.Parameter(torch.ones(()))
            elif extra == "layer":
                self.c_attn = nn.Linear(d_in, 3 * d_out)
            n = mask_size or context_length
            seen = VISIBLE[mask](torch.arange(n)[None] - torch.arange(n)[:, None])
            if store == "attribute":
                self.seen = seen
            elif store.endswith("parameter"):
                trained = store == "trained_parameter"
                self.seen = nn.Parameter(seen.float() if trained else seen, requires_grad=trained)
            elif store == "buffer":
                self.register_buffer("seen", seen)

        def _layers(self, x):
            if registered == "list":
                return [layer.to(x) for layer in self.layers[0]]
            if registered in ("proj_in_forward", "proj_anew"):
                return [*(getattr(self, name) for name in names[:3]), nn.Linear(self.d_out, self.d_out).to(x)]
            if registered in ("forward", "anew"):
                widths = [x.shape[-1]] * 3 + [self.d_out]
                return [nn.Linear(width, self.d_out).to(x) for width in widths]
            return [getattr(self, name, None) for name in names]

        def _seen(self, T, n_q, n_k, device):
            if store == "cpu" or not checked:
                n = torch.arange(T, device="cpu" if store == "cpu" else device)
                return VISIBLE[mask](n[None] - n[:, None])
            if isinstance(sliced, int):
                return self.seen[:sliced, :sliced].bool()
            cuts = {"both": (T, T), "rows": (T, None), "no": (None, None), "fit": (n_q, n_k)}
            rows, columns = cuts[sliced]
            return self.seen[:rows, :columns].bool()

        def _split(self, t, which):
            how = split if which in split_only else "heads"
            return SPLIT[how](
                fixed(t, sizes | {"T": self.context_length} if "context" in sizes else sizes), self.num_heads
            )

        def forward(self, x):
            B, T, d_in = x.shape
            if checked and T > self.context_length:
                raise ValueError(f"{T} tokens do not fit a context of {self.context_length}")
            x_given, x = x, cut_off(x, "x", cut)
            if mutate == "scale":
                x.mul_(0.5)
            if dtype == "input":
                x = x.float()
            *layers, out_proj = self._layers(x)
            if registered == "tensor":
                found = [x @ w.to(x).T for w in layers]
            else:
                inputs = [cut_off(x, f"x_{c}", cut) for c in "qkv"]
                found = [project(layer, y, c in transposed) for layer, y, c in zip(layers, inputs, "qkv", strict=True)]
            named = dict(zip("qkv", found, strict=True))
            q, k, v = (self._split(cut_off(named[c], o, cut), o) for c, o in zip(order, "qkv", strict=True))
            v = (
                {"v": v, "k": k, "q": q}[values]
                if values != "x"
                else x.reshape(B, T, self.num_heads, q.shape[-1]).transpose(1, 2)
            )
            widths = {"hd": q.shape[-1], "nh": self.num_heads, "d_in": d_in, "d_out": self.d_out}
            out = self._mix(q, k, v, T, widths | {"T": T, "context": self.context_length, "B": B})
            out = MERGE[merge](out, B, T)
            out = self.dropout(out) if drop == "merged" else out
            out = out @ out_proj.to(x).T if registered == "tensor" else projected(out_proj, out, proj)
            out = self.dropout(out) if drop in ("output", "both") else out
            out = self.norm(out) if extra == "norm" else out * getattr(self, "temperature", 1.0)
            if mutate == "after":
                x_given.detach().zero_()
            if dtype in ("output", "half"):
                out = out.float() if dtype == "output" else out.half()
            return (out, None) if interface == "pair" else cut_off(out, "output", cut)

        def _mix(self, q, k, v, T, widths):
            scale = factor(divide_by, power, constant, widths)
            scores = q @ k.transpose(-2, -1)
            seen = self._seen(T, *scores.shape[-2:], q.device)
            scores = scores * scale if scaled in ("scores", "both") else scores
            scores = self.dropout(scores) if drop == "scores" else scores
            scores = hidden(cut_off(scores, "scores", cut), seen, how)
            scores = scores * scale if scaled == "hidden" else scores
            scores = self.dropout(scores) if drop == "hidden_scores" else scores
            weights = weighed(scores.float() if dtype == "weights" else scores, seen, how, softmax)
            weights = weights * scale if scaled in ("weights", "both") else weights
            weights = self.dropout(weights) if drop in ("weights", "both") else weights
            return cut_off(weights, "weights", cut) @ v

    class Required(MultiHeadAttention):
        def __init__(self, d_in, d_out, context_length, num_heads, dropout, qkv_bias):
            super().__init__(d_in, d_out, context_length, num_heads, dropout, qkv_bias)

    class DropoutFourth(MultiHeadAttention):
        def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
            super().__init__(d_in, d_out, context_length, num_heads, dropout, qkv_bias)

    class Renamed(MultiHeadAttention):
        def __init__(self, d_in, d_out, block_size, n_head, p=0.0, bias=False):
            super().__init__(d_in, d_out, block_size, n_head, p, bias)

    class Stub(nn.Module):
        def __init__(self, *args, **kwargs):
            raise NotImplementedError("your turn")

    class Silent(nn.Module):
        def __init__(self, *args, **kwargs):
            super().__init__()

        def forward(self, x):
            raise NotImplementedError

    if interface == "class":
        return {"MHA": MultiHeadAttention}
    shapes = {"required": Required, "fourth": DropoutFourth, "renamed": Renamed, "stub": Stub, "silent": Silent}
    return {"MultiHeadAttention": shapes.get(interface, MultiHeadAttention)}


DIVISORS = (8, 4, 2, 16, 10, 64, 100, 3, 768, 12)
WEAK = (-10, -1, -5, -2, -3, -4, -6, -7, -8, -9, -11, -12, -20, -30, -15, -40, -50, -0.5, -0.1, -16, -32, -25, -13, -14)

MUTANTS = (
    ("scale_missing", {"power": 0}),
    ("scale_sqrt_c", {"divide_by": "d_out"}),
    ("scale_sqrt_c", {"divide_by": "d_in"}),
    ("scale_no_sqrt", {"power": -1}),
    ("scale_twice", {"power": -1}),
    ("scale_multiplied", {"power": 0.5}),
    ("scale_after_softmax", {"scaled": "weights"}),
    ("scale_sqrt_heads", {"divide_by": "nh"}),
    ("scale_sqrt_tokens", {"divide_by": "T"}),
    ("scale_sqrt_tokens", {"divide_by": "context"}),
    *(("scale_constant", {"constant": 1 / n}) for n in DIVISORS),
    *(("scale_constant", {"constant": 1 / math.sqrt(n)}) for n in (2, 3, 6, 5, 12, 32, 128, 512, 768)),
    ("softmax_query_axis", {"softmax": "queries"}),
    ("softmax_wrong_axis", {"softmax": "heads"}),
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
    ("divisibility_unchecked", {"divides": False}),
    ("wrong_view", {"split": "view"}),
    ("wrong_view_both", {"split": "view", "merge": "no_transpose"}),
    *(("wrong_view_values", {"split": "view", "split_only": which}) for which in ("v", "q", "k", "qk", "qv", "kv")),
    *(
        ("wrong_view_values", {"split": "view", "split_only": which, "merge": "no_transpose"})
        for which in ("v", "q", "k", "qk", "qv", "kv")
    ),
    ("merge_no_transpose", {"merge": "no_transpose"}),
    ("merge_wrong_axes", {"merge": "swapped_1_3"}),
    ("merge_wrong_axes", {"merge": "swapped_2_3"}),
    ("merge_wrong_axes", {"merge": "stacked_last"}),
    ("heads_interleaved", {"merge": "stacked_last"}),
    *(("merge_wrong_axes", {"merge": m}) for m in ("hd_nh_t", "t_b", "nh_b", "nh_t_b", "t_nh_b")),
    ("heads_interleaved", {"split": "interleaved"}),
    ("heads_interleaved", {"split": "interleaved", "merge": "stacked_last"}),
    *(("heads_interleaved", {"split": "interleaved", "split_only": w}) for w in ("v", "q", "k", "qk", "qv", "kv")),
    ("heads_missing_transpose", {"split": "tokens_first", "sliced": "fit", "merge": "no_transpose"}),
    ("heads_missing_transpose", {"split": "tokens_first", "sliced": "fit"}),
    ("heads_missing_transpose", {"split": "tokens_first"}),
    ("heads_missing_transpose", {"split": "tokens_first", "mask": "none", "sliced": "fit", "merge": "no_transpose"}),
    ("heads_missing_transpose", {"split": "tokens_first", "mask": "none", "sliced": "fit"}),
    *(("heads_missing_transpose", {"split": "tokens_first", "split_only": w}) for w in ("v", "q", "k", "qk")),
    *(("heads_averaged", {"merge": m}) for m in ("mean", "sum", "mean_repeated", "sum_repeated")),
    *(("heads_averaged", {"merge": m}) for m in ("mean_interleaved", "sum_interleaved")),
    *(("heads_reversed", {"merge": m}) for m in ("reversed", "rolled", "rolled_back")),
    ("heads_mix_batch", {"split": "view"}),
    ("heads_mix_batch", {"split": "heads_first"}),
    ("heads_mix_batch", {"split": "batch_beside_heads"}),
    ("heads_mix_batch", {"merge": "nh_t_b_folded"}),
    *(("heads_mix_batch", {"split": s, "merge": "nh_t_b_folded"}) for s in ("view", "heads_first")),
    ("heads_mix_batch", {"split": "heads_first", "merge": "no_transpose"}),
    ("proj_missing", {"proj": "missing"}),
    ("proj_missing", {"proj": "missing", "extra": "no_layer"}),
    ("proj_transposed", {"proj": "transposed"}),
    ("proj_bias", {"no_bias": "o"}),
    ("proj_bias", {"proj": "no_bias_used"}),
    ("view_not_contiguous", {"merge": "view"}),
    ("view_not_contiguous", {"split": "view_not_contiguous"}),
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
    ("dropout_on_output_only", {"drop": "merged"}),
    *(("gradient_cut", {"cut": places}) for places in (("output",), ("weights",), ("scores",), ("x",))),
    *(("gradient_cut", {"cut": places}) for places in (("q",), ("k",), ("v",), ("q", "k"))),
    *(("gradient_cut", {"cut": (place,)}) for place in ("x_q", "x_k", "x_v")),
    ("input_mutated", {"mutate": "after"}),
    ("input_mutated", {"mutate": "scale"}),
    *(("hard_coded_shape", {"sizes": {"B": n}}) for n in (2, 1, 8, 4, 3, 16, 32)),
    *(("hard_coded_shape", {"sizes": {"T": n}}) for n in (6, 4, 8, 5, 16, 1024)),
    ("hard_coded_shape", {"sizes": {"context": True}}),
    *(("hard_coded_shape", {"sizes": {"C": n}}) for n in (4, 12, 64, 8, 16, 768)),
    *(("hard_coded_shape", {"sizes": {"nh": n}}) for n in (2, 4, 3, 8, 12, 6, 1)),
    *(("hard_coded_shape", {"sizes": {"hd": n}}) for n in (64, 2, 4, 8, 3, 16)),
    *(("hard_coded_shape", {"sliced": n}) for n in (6, 4, 8, 5, 7)),
    *(("hard_coded_shape", {"mask_size": n, "checked": True}) for n in (6, 4, 5, 8)),
    ("hard_coded_dtype", {"dtype": "output"}),
    ("hard_coded_dtype", {"dtype": "input"}),
    ("hard_coded_dtype", {"dtype": "weights"}),
    ("hard_coded_dtype", {"dtype": "half"}),
    ("hard_coded_device", {"store": "cpu"}),
    ("params_not_registered", {"registered": "list"}),
    ("params_not_registered", {"registered": "tensor"}),
    *(("params_not_registered", {"registered": way}) for way in ("forward", "anew", "proj_anew", "proj_hidden")),
    ("params_not_registered", {"split": "first_shared"}),
    ("heads_reversed", {"split": "reversed"}),
    ("params_extra", {"extra": "layer"}),
    ("params_extra", {"extra": "norm"}),
    ("params_extra", {"extra": "temperature"}),
    ("params_extra", {"names": ("w_q", "w_k", "w_v", "w_o")}),
    ("params_extra", {"names": ("W_query", "W_key", "W_value", "proj")}),
    ("params_extra", {"names": ("q_proj", "k_proj", "v_proj", "o_proj")}),
    ("super_init_missing", {"super_init": False}),
    ("interface", {"interface": "class"}),
    ("interface", {"interface": "pair"}),
    ("interface", {"interface": "required"}),
    ("interface", {"interface": "fourth"}),
    ("interface", {"interface": "renamed"}),
    ("stub_untouched", {"interface": "stub"}),
    ("stub_untouched", {"interface": "silent"}),
)
