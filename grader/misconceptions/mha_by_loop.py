"""The wrong ways to write the loop over heads."""

import math

import torch
from torch import nn

from manyheads.checks import edit

from ._attention import HEADS_LAST
from ._attention_module import KNOBS, Attention
from ._attention_mutants import ATTENTION_FAMILIES, added
from ._masking import INF, lower
from ._mutants import LOW_FILLS, SCALES_TRIED, at, changed, each, known, of, written_in
from ._scaling import PRECEDENCE, scales


class Loop(Attention):
    """Right, but for its knobs: head by head, with the layers of another module."""

    def __init__(self, mha, knobs):
        super(Attention, self).__init__()
        self.knobs, self.qkv, self.proj, self.n_head, self.block_size = knobs, mha.qkv, mha.proj, mha.n_head, INF
        self.drop = self.drop_output = nn.Identity()
        self.seen = lower(1024, mha.proj.weight.device)  # of which a mask of another size is cut

    def gather(self, q, key, v, s, k):
        heads = zip(q.unbind(1), key.unbind(1), v.unbind(1), strict=True)
        return torch.stack([self.weigh(*head, s, k) for head in heads], 1)


def make(**faults):
    """The exercise's names, with these faults."""
    k = known(faults, KNOBS | {"holder_in_use": "made_in_forward"})
    return {"mha_by_loop": lambda mha, x: Loop(mha, k)(x)}


SOME = ("v", "qk", "q", "k", "qv", "kv")
SUMS = ("sum_of_sizes", "tokens", "exp")
EMPTY_ROWS = (-1e9, ("add", -1e9), "zero_row")  # how the others are hidden where a query may not see itself
WEAK = (-10.0, -5.0, -12.0, -1.0)  # −1 added: mask_added

# Texts of the reference, and what is written into before it returns.
DEF, START = "def mha_by_loop(mha: nn.Module, x: torch.Tensor)", "T, C, hd = x.shape[1], x.shape[2], mha.head_dim"
ROWS, EVERY, HD, LOOPS = "mha.qkv.weight.split(C, dim=0)", "heads = []", "mha.head_dim", "range(mha.n_head)"
QKV = [f"x @ w_{name}[own].T" for name in "qkv"]
ASSIGNED = f"q, k, v = {', '.join(QKV)}"
SCORES, SHARES = "q @ k.transpose(1, 2) / math.sqrt(hd)", "scores.softmax(dim=-1)"
MASKED = "scores.masked_fill(~visible, -math.inf)"
JOINED = "torch.cat(heads, dim=-1)"
OUT = f"return mha.proj({JOINED})"
NEW_QKV = "mha.qkv.weight.split", "nn.Linear(C, 3 * C, bias=False).to(x).weight.split"
NEW_PROJ = "mha.proj(", "nn.Linear(C, C, bias=False).to(x)("
SDPA = "nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=~visible)"
CHANGES = (
    "x.detach().mul_(2)",
    "x.transpose_(1, 2)",
    "x.detach()[:, 0].zero_()",
    "mha.qkv.weight.data.div_(hd**0.5)",
    "mha.qkv.weight.data[:C].div_(hd**0.5)",
    "mha.proj.weight.data.copy_(mha.proj.weight.data.mT.clone())",
    "mha.proj.weight.data.zero_()",
)


def projected(text, names="qkv"):
    """These of q, k and v made in another way, {0}: the layer's weight."""
    return changed({QKV["qkv".index(name)]: text.format(f"w_{name}") for name in names})


def dealt(text, more=None):
    """Heads of q, k and v made before the loop. text: what stands behind the projection for one head."""
    heads = f"{EVERY}\n    dealt = [[(x @ w.T){text} for h in range(mha.n_head)] for w in (w_q, w_k, w_v)]"
    return edit(EVERY, heads, {ASSIGNED: "q, k, v = (part[h] for part in dealt)"} | (more or {}))


def rows(*texts, more=None):
    """The stacked weight w cut in another way into those of q, k and v."""
    return [edit(ROWS, text.replace("w.", "mha.qkv.weight."), more) for text in texts]


def turned(text):
    return f"[part.T for part in {text}]"


COLUMNS, VIEWED = "w.reshape(C, 3 * C).T.split(C)", "w.T.reshape(3 * C, C).split(C)"
THIRD, BY_CHANNEL = "w.reshape(C, C, 3).unbind(-1)", ".transpose(0, 1).reshape(3, C, C)"
AS_STORED = "(x @ {0})[..., own]"
PACKED, INTERLEAVED = f"w.view(mha.n_head, 3, hd, C){BY_CHANNEL}", f"w.view(hd, 3, mha.n_head, C){BY_CHANNEL}"
BLOCKS = f"[w * torch.block_diag(*[torch.ones(hd, hd)] * mha.n_head).to(w) for w in {ROWS}]"
TOO_WIDE = (
    "w.chunk(3, dim=1)",
    "[w.T[i * C // 3 : (i + 1) * C // 3] for i in range(3)]",
    "[w.T[i * C : (i + 1) * C].T for i in range(3)]",
)
WHOLE = {old: f"(x @ w_{name}.T)[..., own]" for name, old in zip("qkv", QKV, strict=True)}
FIVE_AXES = "(x @ mha.qkv.weight.T).view(len(x), T, 3, -1, hd).permute(0, 2, 3, 1, 4).reshape(3, -1, len(x), T, hd)"
BY_TOKEN, BY_BATCH = ".view(len(x), T, -1, hd)[:, h]", ".view(len(x), T, -1, hd).transpose(1, 2)[h]"
MIXED = ".view(T, mha.n_head, len(x), hd).permute(1, 2, 0, 3)[h]"
UNMASKED = {MASKED: "scores"}


def sizes(T="x.shape[1]", C="x.shape[2]", hd=HD, loops=LOOPS):
    """Sizes that are written in. Three weights are counted on."""
    three = f"[w for _, w in zip('qkv', {ROWS}, strict=True)]"
    return edit(START, f"T, C, hd = {T}, {C}, {hd}", {LOOPS: loops, ROWS: three})


def one_size(**sizes_by_name):
    """An edit for each of these numbers."""
    for size in written_in(**sizes_by_name):
        [(name, n)] = size.items()
        by_name = {"nh": {"hd": f"x.shape[2] // {n}", "loops": f"range({n})"}, "loops": {"loops": f"range({n})"}}
        by_name |= {"hd": {"hd": n}, "T": {"T": n}, "C": {"C": n, "hd": f"{n} // mha.n_head"}}
        yield sizes(**by_name[name])


MUTANTS = (
    *scales("sqrt_c", "missing"),
    ("scores_ignored", {"scale": 0.0}),
    *scales("hd"),
    ("scale_twice", {"scale": "hd"}),
    *scales(*PRECEDENCE),
    ("mask_missing", {"mask": "missing"}),
    ("proj_missing", {"proj": "missing"}),
    ("proj_transposed", {"proj": "untransposed"}),
    ("proj_twice", {"proj": "twice"}),
    ("weight_not_transposed", projected(AS_STORED)),
    *of("qkv_packed_per_head", *rows(PACKED)),
    *each("qkv_order", cut=("kqv", "qvk", "vkq", "kvq", "vqk")),
    ("scale_multiplied", {"scale": "times_sqrt_hd"}),
    ("scale_after_softmax", {"scaled": "weights"}),
    *scales("sqrt_heads", "sqrt_tokens", "sqrt_batch", "rounded_down", "rounded", "rounded_up"),
    *each("scale_rounded", scores=("rounded_down", "rounded_down_without_gradient")),
    *each("softmax_query_axis", softmax=("queries", "queries_by_hand")),
    *each("mask_after_softmax", mask=("after_softmax", ("reversed", "after_softmax"))),
    *each("mask_reversed", mask=("reversed", "inverted", ("inverted", -1e9))),
    *each("mask_excludes_self", mask=("excludes_self", *(("excludes_self", how) for how in EMPTY_ROWS))),
    *each("mask_excludes_self", mask=("excludes_self_later", "excludes_self_but_first")),
    *each("mask_peeks_one", mask=("peeks_one", "peeks_two")),
    ("mask_zero_fill", {"mask": 0.0}),
    *each("mask_weak_fill", mask=(*WEAK, *added(*WEAK[:-1]), *LOW_FILLS)),
    *each("mask_plus_inf", mask=(INF, 1e9)),
    *each("mask_nan", mask=("nan_product", "nan_factor", "after_softmax_inf")),
    *each("mask_added", mask=("add_seen", "add_hidden")),
    ("mask_sdpa_inverted", edit(f"{SHARES} @ v", SDPA)),
    *each("softmax_wrong_axis", softmax=("batch", "sequence", "everything")),
    *each("softmax_wrong_axis", softmax="batch", mask=(-1e9, "after_softmax")),  # the latter masked before it, too
    *each("softmax_missing", softmax=("missing", "sum")),
    *each("softmax_missing", mask=(0.0, "after_softmax", "missing"), softmax=("missing", "sum", *SUMS)),
    *each("softmax_missing", softmax=(*SUMS, "exp_shifted", "log", "sigmoid")),
    *each("values_wrong_source", source=("v_is_k", "v_is_x", "v_is_q")),
    ("wrong_view_both", {"split": "straight", "merge": "straight"}),
    ("wrong_view", {"split": "straight"}),
    *each("wrong_view_values", split="straight", split_of=SOME),
    ("wrong_view", {"split": "swapped_first"}),
    ("merge_no_transpose", {"merge": "straight"}),
    ("merge_no_transpose", edit(JOINED, "torch.cat(heads, dim=1)")),
    *each("heads_interleaved", split="interleaved", merge=(..., HEADS_LAST)),
    *each("heads_interleaved", split="interleaved", split_of=SOME),
    *each("heads_and_width_swapped", split="sizes_swapped", scale=("sqrt_hd", "sqrt_heads")),
    ("heads_interleaved", {"merge": HEADS_LAST}),
    *each("merge_wrong_axes", merge=(HEADS_LAST, "axes_(0, 1, 3, 2)", "axes_(0, 3, 2, 1)")),
    *each("merge_wrong_axes", merge=("axes_(1, 2, 0, 3)", "axes_(2, 0, 1, 3)")),
    *each("heads_reversed", merge=("reversed", "rolled", "rolled_back")),
    ("heads_not_joined", edit("    return mha.proj", "        return mha.proj")),  # inside the loop
    *each("heads_averaged", merge=("mean", "sum", "mean_repeated", "sum_repeated")),
    *each("heads_missing_transpose", attend_over="heads", mask=(..., "missing")),
    *of("heads_missing_transpose", dealt(BY_TOKEN), dealt(BY_TOKEN, UNMASKED)),
    *each("heads_mix_batch", split="batch_after_heads", merge=(..., "axes_(1, 0, 2, 3)")),
    *of("heads_mix_batch", dealt(MIXED), dealt(BY_BATCH)),
    ("qkv_mix_batch", edit(EVERY, f"{EVERY}\n    dealt = {FIVE_AXES}", {ASSIGNED: "q, k, v = dealt[:, h]"})),
    *each("qkv_mix_batch", cut=("batch_then_three", "three_outermost")),
    *each("heads_mix_batch", merge=("axes_(1, 0, 2, 3)", "axes_(1, 2, 0, 3)", "heads_from_batch", "batch_viewed")),
    *of("weight_not_transposed", *(projected(AS_STORED, names) for names in SOME)),
    *of("weight_not_transposed", projected("x @ {0}[own]"), projected("x @ {0}[own]", "qk"), *rows(turned(VIEWED))),
    ("qkv_packed_per_head", {"cut": "per_channel"}),
    *of("qkv_packed_per_head", *rows(INTERLEAVED)),
    ("heads_one_for_all", dealt("[..., :hd]")),
    ("qkv_sliced_by_columns", projected(AS_STORED)),
    *of("qkv_sliced_by_columns", *rows(COLUMNS, turned(COLUMNS), VIEWED, turned(VIEWED), THIRD, turned(THIRD), BLOCKS)),
    *of("qkv_sliced_by_columns", *rows(*TOO_WIDE, more=WHOLE)),
    ("view_not_contiguous", {"merge": "view"}),
    ("view_not_contiguous", edit(JOINED, "torch.stack(heads).permute(1, 2, 0, 3).view(len(x), T, C)")),
    *each("mask_not_sliced", holder_in_use=(1024, 8, 16, 64, 128)),
    *each("size_wrong_axis", holder_in_use=("made_for_batch", "made_for_heads")),
    ("size_wrong_axis", {"merge": "sizes_of_transposed"}),
    *each("scale_constant", scale=[1 / c for c in (8, 64, 4, 2, 0.125, 3, 768, math.sqrt(2), math.sqrt(768))]),
    *scales("sqrt_3c", "c", "times_hd", "times_sqrt_c"),
    ("proj_bias", edit(OUT, f"{OUT} + 1")),
    *of("hard_coded_shape", *one_size(nh=[4], hd=[16, 64], C=[64], T=[8]), sizes(hd=16, loops="range(4)")),
    *of("hard_coded_shape", *one_size(nh=[2, 3, 8, 12], hd=[4, 8], C=[12], T=[5, 3])),
    *of("hard_coded_shape", sizes(T=8, C=64, hd="64 // mha.n_head"), *one_size(T=[1024], loops=[4, 2, 3, 8, 12])),
    *each("hard_coded_shape", fixed=written_in(nh=(4, 2, 8, 12, 6, 3))),
    *of("hard_coded_shape", *(dealt(".view(len(x), T, mha.n_head, hd)[:, :, h]", {HD: str(n)}) for n in (64, 16))),
    *each("hard_coded_shape", fixed=({"B": 2}, {"B": 1}), split="straight"),
    *each("gradient_cut", cut_gradient=(("W",), ("W", "proj"))),
    *at(DEF, ("gradient_cut", f"@torch.no_grad()\n{DEF}")),
    *each("gradient_cut", cut_gradient=[(place,) for place in "x proj out scores weights q k v".split()]),
    *each("gradient_cut", cut_gradient=(("q", "k"), ("k", "v"), ("q", "k", "v"))),
    *of("gradient_cut", *(projected("x.detach() @ {0}[own].T", name) for name in "qkv")),
    *of("params_not_registered", edit(*NEW_QKV), edit(*NEW_PROJ), edit(*NEW_QKV, dict([NEW_PROJ]))),
    *at(SHARES, ("dropout_always_on", f"nn.functional.dropout({SHARES}, 0.1)")),
    *at(JOINED, ("dropout_always_on", f"nn.functional.dropout({JOINED}, 0.1)")),
    *at(SCORES, ("dropout_always_on", f"nn.functional.dropout({SCORES}, 0.1)")),
    *at(OUT, ("input_mutated", *(f"out = {OUT[7:]}\n    {change}\n    return out" for change in CHANGES))),
    *at(OUT, ("hard_coded_dtype", *(f"{OUT}.{dtype}()" for dtype in ("float", "double", "half", "bfloat16")))),
    ("hard_coded_dtype", edit(START, f"x = x.float()\n    {START}")),
    ("hard_coded_device", edit("dtype=torch.bool, device=x.device", "dtype=torch.bool")),
    *at(OUT, ("hard_coded_device", f"{OUT}.cpu()", f"{OUT} @ torch.eye(C, dtype=x.dtype)")),
    *at(OUT, ("output_rounded", *(f"{OUT}.round(decimals={n})" for n in (4, 3, 2)))),
    *at(OUT, ("interface", f"{OUT}, heads", "return heads", f"{OUT}.detach().cpu().numpy()", "return None")),
    *at(DEF, ("interface", "def mha_by_loop(x, mha)", "def mha_by_loop(mha, x, n_head)", "def mha_by_loop(x)")),
    *at(DEF, ("interface", "def mha_by_loop(qkv, proj, x, n_head)", "def mha_loop(mha, x)")),
    ("keys_not_transposed", edit("q @ k.transpose(1, 2)", "q @ k")),
    ("heads_one_for_all", dealt("[..., -hd:]")),
)

# With a number that nobody can list.
FAMILIES = (("scale_constant", lambda c: {"scale": 1 / c}, SCALES_TRIED), *ATTENTION_FAMILIES[1:])
