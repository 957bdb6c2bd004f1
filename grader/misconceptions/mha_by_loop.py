"""The wrong ways to write the loop over heads."""

from manyheads.checks import Mutant

from ._mutants import (
    FILLS_TRIED,
    SCALES_TRIED,
    mutants,
    written_in,
)

PARTS_OF_QKV = ("v", "qk", "q", "k", "qv", "kv")
WEAK = (-10.0, -5.0, -12.0, -1.0)  # −1 added: mask_added
NUMBERS = (8, 64, 4, 2, 0.125, 3, 768, "math.sqrt(2)", "math.sqrt(768)")

# Texts of the reference. WRITTEN_INTO are made to its arguments before it returns.
DEF, SIZES_READ = (
    "def mha_by_loop(mha: nn.Module, x: torch.Tensor)",
    "T, C, hd = x.shape[1], x.shape[2], mha.head_dim",
)
ROWS, HEADS_EMPTY, HD, LOOPS = (
    "mha.qkv.weight.split(C, dim=0)",
    "heads = []",
    "mha.head_dim",
    "range(mha.n_head)",
)
QKV = [f"x @ w_{name}[own].T" for name in "qkv"]
PRODUCT = "q @ k.transpose(1, 2)"
PRODUCTS_OF_WRONG_TENSORS = [f"{a} @ {b}.transpose(1, 2)" for a, b in ("qq", "kk", "qv")]
ASSIGNED = f"q, k, v = {', '.join(QKV)}"
SCALE, SHARES, VALUES_MIXED = "/ math.sqrt(hd)", "scores.softmax(dim=-1)", " @ v)"
SCALE_THEN_SCORES = (
    f"{SCALE}\n        scores ="  # followed by a change of the scores, before the mask
)
HIDING, HIDDEN, MASKED_SCORE = ".masked_fill(~visible, -math.inf)", "~visible", "-math.inf"
square, ROWS_OF_HEAD = "torch.ones({0}, {0},".format, "slice(h * hd, (h + 1) * hd)"
SQUARE = square("T")
JOINED, PROJ, END_OF_ANSWER = "torch.cat(heads, dim=-1)", "mha.proj(", ")  # (B, T, C)"
OUT = f"return mha.proj({JOINED})"
NEW_QKV = {"mha.qkv.weight.split": "nn.Linear(C, 3 * C, bias=False).to(x).weight.split"}
NEW_PROJ = {PROJ: "nn.Linear(C, C, bias=False).to(x)("}
SDPA = "nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=~visible)"
WRITTEN_INTO = (
    "x.detach().mul_(2)",
    "x.transpose_(1, 2)",
    "x.detach()[:, 0].zero_()",
    "mha.qkv.weight.data.div_(hd**0.5)",
    "mha.qkv.weight.data[:C].div_(hd**0.5)",
    "mha.proj.weight.data.copy_(mha.proj.weight.data.mT.clone())",
    "mha.proj.weight.data.zero_()",
)


def projection_edit(text, names="qkv"):
    """Return an edit that makes these of q, k and v in another way; {0} is the layer's weight."""
    return {QKV["qkv".index(name)]: text.format(f"w_{name}") for name in names}


def heads_before_loop_edit(text):
    """Return an edit that makes the heads of q, k and v before the loop.

    Args:
        text: follows the projection, and selects one head.
    """
    heads = (
        f"{HEADS_EMPTY}\n    dealt = [[(x @ w.T){text} for h in range(mha.n_head)]"
        " for w in (w_q, w_k, w_v)]"
    )
    return {HEADS_EMPTY: heads, ASSIGNED: "q, k, v = (part[h] for part in dealt)"}


def rows(*texts):
    """Return edits that cut the stacked weight, w, into those of q, k and v in other ways."""
    return [{ROWS: text.replace("w.", "mha.qkv.weight.")} for text in texts]


turned = "[part.T for part in {}]".format
COLUMNS, VIEWED = "w.reshape(C, 3 * C).T.split(C)", "w.T.reshape(3 * C, C).split(C)"
EVERY_THIRD_COLUMN, BY_CHANNEL = (
    "w.reshape(C, C, 3).unbind(-1)",
    ".transpose(0, 1).reshape(3, C, C)",
)
AS_STORED = "(x @ {0})[..., own]"
PACKED, INTERLEAVED = (
    f"w.view(mha.n_head, 3, hd, C){BY_CHANNEL}",
    f"w.view(hd, 3, mha.n_head, C){BY_CHANNEL}",
)
BLOCKS = f"[w * torch.block_diag(*[torch.ones(hd, hd)] * mha.n_head).to(w) for w in {ROWS}]"
COLUMNS_OF_WRONG_SIZE = (
    "w.chunk(3, dim=1)",
    "[w.T[i * C // 3 : (i + 1) * C // 3] for i in range(3)]",
    "[w.T[i * C : (i + 1) * C].T for i in range(3)]",
)
HEAD_CUT_LAST = {old: f"(x @ w_{name}.T)[..., own]" for name, old in zip("qkv", QKV, strict=True)}
FIVE_AXES = (
    "(x @ mha.qkv.weight.T).view(len(x), T, 3, -1, hd).permute(0, 2, 3, 1, 4).reshape(3, -1,"
    " len(x), T, hd)"
)
BY_TOKEN, BY_BATCH = ".view(len(x), T, -1, hd)[:, h]", ".view(len(x), T, -1, hd).transpose(1, 2)[h]"
TOKENS_BEFORE_BATCH = ".view(T, mha.n_head, len(x), hd).permute(1, 2, 0, 3)[h]"
UNMASKED = {HIDING: ""}
SPLIT_WITHOUT_TRANSPOSE = "(x @ {0}.T).reshape(len(x), mha.n_head, T, hd)[:, h]"
EVERY_NTH_ROW, SPLIT_BEFORE_BATCH = (
    "x @ {0}[h :: mha.n_head].T",
    "(x @ {0}.T).reshape(mha.n_head, len(x), T, hd)[h]",
)
BY_LINEAR = "nn.functional.linear(weight=mha.proj.weight{}, input="
HEADS_AND_WIDTH_SWAPPED = {
    LOOPS: "range(hd)",
    ROWS_OF_HEAD: "slice(h * mha.n_head, (h + 1) * mha.n_head)",
}
SUMS = ("scores / scores.abs().sum(-1, keepdim=True)", "scores / T", "scores.exp()")
NO_SOFTMAX = ("scores", "scores / scores.sum(-1, keepdim=True)")
DETACHED = {
    "q": ("q @", "q.detach() @"),
    "k": ("k.transpose", "k.detach().transpose"),
    "v": (VALUES_MIXED, " @ v.detach())"),
}
OVER_BATCH_AXIS, MASK_WITHOUT_SELF = "scores.softmax(dim=0)", "~visible.tril(-1)"
QUERIES_BY_HAND = "(e := (scores - scores.amax(-1, keepdim=True)).exp()) / e.sum(-2, keepdim=True)"
# ways to merge the heads, (B, nh, T, hd)
MERGED_WITHOUT_TRANSPOSE, axes, TO_TOKENS = (
    "reshape(x.shape)",
    "permute({}).reshape(x.shape)".format,
    "transpose(1, 2).flatten(2)",
)
HEADS_LAST, BATCH_FIRST, BATCH_THIRD = map(axes, ("0, 2, 3, 1", "1, 0, 2, 3", "1, 2, 0, 3"))
FROM_BATCH = f"transpose(0, 1).reshape(len(x), -1, T, hd).{TO_TOKENS}"
# a loop over tokens, in which heads attend to heads
LOOP_OVER_TOKENS = {
    LOOPS: "range(T)",
    SQUARE: square("mha.n_head"),
    JOINED: "torch.stack(heads, 1).flatten(2)",
}
HEADS_OF_TOKEN = "(x[:, h] @ {0}.T).view(len(x), -1, hd)"


def detach_edit(names):
    """Return an edit that detaches these of q, k and v."""
    return dict(DETACHED[name] for name in names)


def late(shares=SHARES, hide=HIDDEN, fill="0.0"):
    """Return an edit that masks after the softmax."""
    return {HIDING: "", SHARES: f"({shares}).masked_fill({hide}, {fill})"}


def join_heads_edit(method):
    """Return an edit that joins the heads in another way."""
    return {JOINED: f"torch.stack(heads, 1).{method}"}


def sizes(T="x.shape[1]", C="x.shape[2]", hd=HD, loops=LOOPS):
    """Return an edit with hard-coded sizes. It demands that there are three weights."""
    three = f"[w for _, w in zip('qkv', {ROWS}, strict=True)]"
    return {SIZES_READ: f"T, C, hd = {T}, {C}, {hd}", LOOPS: loops, ROWS: three}


def one_size(**sizes_by_name):
    """An edit for each of these numbers."""
    for size in written_in(**sizes_by_name):
        [(name, n)] = size.items()
        by_name = {
            "nh": {"hd": f"x.shape[2] // {n}", "loops": f"range({n})"},
            "loops": {"loops": f"range({n})"},
        }
        by_name |= {"hd": {"hd": n}, "T": {"T": n}, "C": {"C": n, "hd": f"{n} // mha.n_head"}}
        yield sizes(**by_name[name])


MUTANTS = (
    Mutant("scale_sqrt_c", "/ math.sqrt(C)", replacing=SCALE),
    Mutant("scale_missing", "", replacing=SCALE),
    Mutant("scores_ignored", "* 0.0", replacing=SCALE),
    Mutant("scale_no_sqrt", "/ hd", replacing=SCALE),
    Mutant("scale_twice", f"{SCALE} {SCALE}", replacing=SCALE),
    *mutants(
        "scale_precedence",
        "/ hd**1 / 2",
        "/ (hd**1 / 2)",
        "/ max(hd**1 // 2, 1)",
        "* hd**1 / 2",
        *(f"/ {c} mha.n_head**0.5)" for c in ("(C /", "(C //", "math.sqrt(C //")),
        replacing=SCALE,
    ),
    Mutant("mask_missing", UNMASKED),
    Mutant("proj_missing", "(", replacing=PROJ),
    Mutant("proj_transposed", BY_LINEAR.format(".T"), replacing=PROJ),
    Mutant("proj_twice", "nn.Sequential(mha.proj, mha.proj)(", replacing=PROJ),
    Mutant("weight_not_transposed", projection_edit(AS_STORED)),
    *mutants("qkv_packed_per_head", *rows(PACKED)),
    *mutants(
        "qkv_order",
        *("w_{}, w_{}, w_{}".format(*order) for order in "kqv qvk vkq vqk kvq".split()),
        replacing="w_q, w_k, w_v",
    ),
    Mutant("scale_multiplied", "* math.sqrt(hd)", replacing=SCALE),
    *mutants(
        "scale_after_softmax",
        {SCALE: "", SHARES: f"{SHARES} {SCALE}"},
        {SHARES: f"{SHARES} {SCALE}"},
    ),
    Mutant("scale_sqrt_heads", "/ math.sqrt(mha.n_head)", replacing=SCALE),
    Mutant("scale_sqrt_tokens", "/ math.sqrt(T)", replacing=SCALE),
    Mutant("scale_wrong_axis", "/ math.sqrt(len(x))", replacing=SCALE),
    *mutants(
        "scale_rounded",
        *(f"/ {rounding}(math.sqrt(hd))" for rounding in ("int", "round", "math.ceil")),
        f"{SCALE_THEN_SCORES} scores.div(1, rounding_mode='floor')",
        f"{SCALE} // 1",
        replacing=SCALE,
    ),
    *mutants(
        "softmax_query_axis",
        "scores.softmax(dim=-2)",
        QUERIES_BY_HAND,
        replacing=SHARES,
    ),
    Mutant("mask_after_softmax", late()),
    *mutants("mask_reversed", "~visible.mT", "visible", replacing=HIDDEN),
    *mutants("mask_reversed", {HIDDEN: "visible", MASKED_SCORE: "-1e9"}, late(hide="~visible.mT")),
    *mutants(
        "mask_excludes_self",
        {HIDDEN: MASK_WITHOUT_SELF},
        {HIDDEN: MASK_WITHOUT_SELF, MASKED_SCORE: "-1e9"},
        {HIDING: f" + ({MASK_WITHOUT_SELF}).to(x.dtype) * -1e9"},
        {HIDDEN: MASK_WITHOUT_SELF, SHARES: f"{SHARES}.nan_to_num()"},
    ),
    *mutants(
        "mask_excludes_self",
        *(f"~torch.cat([visible[:1]{all}, visible.tril(-1)[1:]])" for all in (" | True", "")),
        replacing=HIDDEN,
    ),
    Mutant("mask_peeks_one", "torch.ones_like(visible).triu(2)", replacing=HIDDEN),
    *mutants(
        "mask_peeks_ahead",
        *(f"torch.ones_like(visible).triu({n})" for n in (3, 4)),
        replacing=HIDDEN,
    ),
    Mutant("mask_zero_fill", "0.0", replacing=MASKED_SCORE),
    *mutants("mask_weak_fill", *map(str, WEAK), replacing=MASKED_SCORE),
    *mutants(
        "mask_weak_fill",
        *(f" + (~visible).to(x.dtype) * {low}" for low in WEAK[:-1]),
        replacing=HIDING,
    ),
    *mutants(
        "mask_weak_fill", "scores.min() - 1", "scores.min().item() - 1", replacing=MASKED_SCORE
    ),
    Mutant(
        "mask_weak_fill", ".where(visible, scores.amin(-1, keepdim=True) - 1)", replacing=HIDING
    ),
    *mutants("mask_weak_fill", "scores.min()", "-scores.abs().max() - 1", replacing=MASKED_SCORE),
    Mutant("mask_plus_inf", "math.inf", replacing=MASKED_SCORE),
    Mutant("mask_high_fill", "1e9", replacing=MASKED_SCORE),
    Mutant("mask_high_fill", " + (~visible).to(x.dtype) * 1e9", replacing=HIDING),
    *mutants(
        "mask_nan",
        " + (~visible).to(x.dtype) * -math.inf",
        " * torch.where(visible, 1.0, -math.inf).to(x.dtype)",
        replacing=HIDING,
    ),
    Mutant("mask_nan", late(fill="-math.inf")),
    *mutants("mask_added", " + visible", " + ~visible", replacing=HIDING),
    Mutant("mask_sdpa_inverted", SDPA, replacing=f"{SHARES} @ v"),
    # the same by hand
    Mutant("mask_reversed", {HIDDEN: "visible", SHARES: f"{SHARES}.nan_to_num()"}),
    *mutants(
        "softmax_wrong_axis",
        OVER_BATCH_AXIS,
        "scores.flatten(1).softmax(-1).view_as(scores)",
        "scores.flatten().softmax(0).view_as(scores)",
        replacing=SHARES,
    ),
    *mutants(
        "softmax_wrong_axis", {SHARES: OVER_BATCH_AXIS, MASKED_SCORE: "-1e9"}, late(OVER_BATCH_AXIS)
    ),
    *mutants("softmax_missing", *NO_SOFTMAX, replacing=SHARES),
    *mutants(
        "softmax_missing",
        *({SHARES: text} | {MASKED_SCORE: "0.0"} for text in (*NO_SOFTMAX, *SUMS)),
    ),
    *mutants("softmax_missing", *map(late, (*NO_SOFTMAX, *SUMS))),
    *mutants("softmax_missing", *({SHARES: text} | UNMASKED for text in (*NO_SOFTMAX, *SUMS))),
    *mutants(
        "softmax_missing",
        *SUMS,
        "(scores - scores.amax(-1, keepdim=True)).exp()",
        "scores.log_softmax(-1)",
        "scores.sigmoid()",
        replacing=SHARES,
    ),
    *mutants("values_wrong_source", " @ k)", " @ x[..., own])", " @ q)", replacing=VALUES_MIXED),
    *mutants("scores_wrong_source", *PRODUCTS_OF_WRONG_TENSORS, replacing=PRODUCT),
    Mutant(
        "wrong_view_both",
        projection_edit(SPLIT_WITHOUT_TRANSPOSE) | join_heads_edit(MERGED_WITHOUT_TRANSPOSE),
    ),
    Mutant("wrong_view", projection_edit(SPLIT_WITHOUT_TRANSPOSE)),
    *mutants(
        "wrong_view_values",
        *(projection_edit(SPLIT_WITHOUT_TRANSPOSE, names) for names in PARTS_OF_QKV),
    ),
    Mutant(
        "reshape_out_of_order",
        projection_edit("(x @ {0}.T).transpose(1, 2).reshape(len(x), mha.n_head, T, hd)[:, h]"),
    ),
    *mutants(
        "merge_no_transpose",
        join_heads_edit(MERGED_WITHOUT_TRANSPOSE),
        {JOINED: "torch.cat(heads, dim=1)"},
    ),
    *mutants(
        "heads_interleaved",
        projection_edit(EVERY_NTH_ROW),
        projection_edit(EVERY_NTH_ROW) | join_heads_edit(HEADS_LAST),
        *(projection_edit(EVERY_NTH_ROW, names) for names in PARTS_OF_QKV),
    ),
    *mutants(
        "heads_and_width_swapped",
        HEADS_AND_WIDTH_SWAPPED,
        HEADS_AND_WIDTH_SWAPPED | {SCALE: "/ math.sqrt(mha.n_head)"},
    ),
    Mutant("heads_interleaved", join_heads_edit(HEADS_LAST)),
    *mutants(
        "merge_wrong_axes",
        join_heads_edit(HEADS_LAST),
        *(
            join_heads_edit(axes(order))
            for order in ("0, 1, 3, 2", "0, 3, 2, 1", "1, 2, 0, 3", "2, 0, 1, 3")
        ),
    ),
    *mutants(
        "heads_reversed",
        *(
            join_heads_edit(f"{method}.{TO_TOKENS}")
            for method in ("flip(1)", "roll(1, 1)", "roll(-1, 1)")
        ),
    ),
    Mutant("heads_one_width", "        return ", replacing="    return "),  # inside the loop
    *mutants("heads_one_width", *(join_heads_edit(f"{mix}(1)") for mix in ("mean", "sum"))),
    *mutants(
        "heads_averaged",
        *(
            join_heads_edit(f"{mix}(1){again}")
            for again in ("", ".repeat(1, 1, mha.n_head)")
            for mix in ("mean", "sum")
        ),
    ),
    *mutants(
        "heads_missing_transpose",
        projection_edit(HEADS_OF_TOKEN) | LOOP_OVER_TOKENS,
        projection_edit(HEADS_OF_TOKEN) | LOOP_OVER_TOKENS | UNMASKED,
        heads_before_loop_edit(BY_TOKEN),
        heads_before_loop_edit(BY_TOKEN) | UNMASKED,
    ),
    *mutants(
        "heads_mix_batch",
        projection_edit(SPLIT_BEFORE_BATCH),
        projection_edit(SPLIT_BEFORE_BATCH) | join_heads_edit(BATCH_FIRST),
        heads_before_loop_edit(BY_BATCH),
    ),
    Mutant("reshape_out_of_order", heads_before_loop_edit(TOKENS_BEFORE_BATCH)),
    Mutant(
        "qkv_mix_batch",
        {HEADS_EMPTY: f"{HEADS_EMPTY}\n    dealt = {FIVE_AXES}", ASSIGNED: "q, k, v = dealt[:, h]"},
    ),
    *mutants(
        "qkv_mix_batch",
        f"q, k, v = {FIVE_AXES.replace('-1, len(x)', 'len(x), -1')}[:, :, h]",
        "q, k, v = (x @ mha.qkv.weight.T).reshape(3, len(x), T, -1, hd)[..., h, :]",
        replacing=ASSIGNED,
    ),
    *mutants(
        "heads_mix_batch",
        *map(
            join_heads_edit,
            (BATCH_FIRST, BATCH_THIRD, FROM_BATCH, f"reshape(-1, len(x), T, hd).{BATCH_THIRD}"),
        ),
    ),
    *mutants(
        "weight_not_transposed", *(projection_edit(AS_STORED, names) for names in PARTS_OF_QKV)
    ),
    *mutants(
        "weight_not_transposed",
        projection_edit("x @ {0}[own]"),
        projection_edit("x @ {0}[own]", "qk"),
    ),
    *mutants("qkv_packed_per_head", *rows("w.view(C, 3, C).unbind(1)", INTERLEAVED)),
    Mutant("heads_one_for_all", heads_before_loop_edit("[..., :hd]")),
    Mutant("qkv_sliced_by_columns", projection_edit(AS_STORED)),
    *mutants(
        "qkv_sliced_by_columns",
        *rows(
            COLUMNS,
            turned(COLUMNS),
            VIEWED,
            turned(VIEWED),
            EVERY_THIRD_COLUMN,
            turned(EVERY_THIRD_COLUMN),
            BLOCKS,
        ),
    ),
    *mutants(
        "qkv_sliced_by_columns",
        *(edit | HEAD_CUT_LAST for edit in rows(*COLUMNS_OF_WRONG_SIZE)),
    ),
    *mutants(
        "view_not_contiguous",
        join_heads_edit("transpose(1, 2).view(x.shape)"),
        {JOINED: "torch.stack(heads).permute(1, 2, 0, 3).view(len(x), T, C)"},
    ),
    *mutants("mask_not_sliced", *map(square, (1024, 8, 16, 64, 128)), replacing=SQUARE),
    *mutants("size_wrong_axis", *map(square, ("len(x)", "mha.n_head")), replacing=SQUARE),
    Mutant(
        "size_wrong_axis", join_heads_edit("transpose(1, 2).reshape(len(x), mha.n_head, T * hd)")
    ),
    *mutants("scale_constant", *(f"/ {c}" for c in NUMBERS), replacing=SCALE),
    Mutant("scale_sqrt_c", "/ math.sqrt(3 * C)", replacing=SCALE),
    Mutant("scale_c", "/ C", replacing=SCALE),
    Mutant("scale_heads", "/ mha.n_head", replacing=SCALE),
    Mutant("scale_tokens", "/ T", replacing=SCALE),
    *mutants("scale_multiplied", "* hd", "* math.sqrt(C)", replacing=SCALE),
    Mutant("proj_bias", ") + 1", replacing=END_OF_ANSWER),
    *mutants(
        "hard_coded_shape",
        *one_size(nh=[4], hd=[16, 64], C=[64], T=[8]),
        sizes(hd=16, loops="range(4)"),
    ),
    *mutants("hard_coded_shape", *one_size(nh=[2, 3, 8, 12], hd=[4, 8], C=[12], T=[5, 3])),
    *mutants(
        "hard_coded_shape",
        sizes(T=8, C=64, hd="64 // mha.n_head"),
        *one_size(T=[1024], loops=[4, 2, 3, 8, 12]),
    ),
    *mutants(
        "hard_coded_shape",
        *(
            projection_edit(f"(x @ {{0}}.T).view(len(x), T, {n}, hd)[:, :, h]")
            | {LOOPS: f"range({n})", HD: f"x.shape[2] // {n}"}
            for n in (4, 2, 8, 12, 6, 3)
        ),
    ),
    *mutants(
        "hard_coded_shape",
        *(
            heads_before_loop_edit(".view(len(x), T, mha.n_head, hd)[:, :, h]") | {HD: str(n)}
            for n in (64, 16)
        ),
    ),
    *mutants(
        "hard_coded_shape",
        *(projection_edit(SPLIT_WITHOUT_TRANSPOSE.replace("len(x)", str(n))) for n in (2, 1)),
    ),
    Mutant("gradient_cut", "qkv.weight.detach()", replacing="qkv.weight"),
    Mutant(
        "gradient_cut",
        {"qkv.weight": "qkv.weight.detach()", PROJ: BY_LINEAR.format(".detach()")},
    ),
    Mutant("gradient_cut", f"@torch.no_grad()\n{DEF}", replacing=DEF),
    Mutant("gradient_cut", "x = x.detach()\n    T, C, hd =", replacing="T, C, hd ="),
    Mutant("gradient_cut", BY_LINEAR.format(".detach()"), replacing=PROJ),
    Mutant("gradient_cut", ").detach()", replacing=END_OF_ANSWER),
    Mutant("gradient_cut", f"{SCALE_THEN_SCORES} scores.detach()", replacing=SCALE),
    Mutant("gradient_cut", f"{SHARES}.detach()", replacing=SHARES),
    *mutants("gradient_cut", *map(detach_edit, ("q", "k", "v", "qk", "kv", "qkv"))),
    *mutants("gradient_cut", *(projection_edit("x.detach() @ {0}[own].T", name) for name in "qkv")),
    *mutants("params_not_registered", NEW_QKV, NEW_PROJ, NEW_QKV | NEW_PROJ),
    *mutants(
        "dropout_always_on",
        *({text: f"nn.functional.dropout({text}, 0.1)"} for text in (SHARES, JOINED)),
    ),
    Mutant(
        "dropout_always_on",
        f"{SCALE_THEN_SCORES} nn.functional.dropout(scores, 0.1)",
        replacing=SCALE,
    ),
    *mutants(
        "input_mutated",
        *(
            {"return ": "out = ", END_OF_ANSWER: f")\n    {change}\n    return out"}
            for change in WRITTEN_INTO
        ),
    ),
    *mutants(
        "hard_coded_dtype",
        *(f").{dtype}()" for dtype in ("float", "double", "half", "bfloat16")),
        replacing=END_OF_ANSWER,
    ),
    Mutant("hard_coded_dtype", "x = x.float()\n    T, C, hd =", replacing="T, C, hd ="),
    Mutant("hard_coded_device", "dtype=torch.bool", replacing="dtype=torch.bool, device=x.device"),
    *mutants(
        "hard_coded_device", ").cpu()", ") @ torch.eye(C, dtype=x.dtype)", replacing=END_OF_ANSWER
    ),
    *mutants(
        "output_rounded", *(f").round(decimals={n})" for n in (4, 3, 2)), replacing=END_OF_ANSWER
    ),
    *mutants(
        "interface",
        f"{OUT}, heads",
        "return heads",
        f"{OUT}.detach().cpu().numpy()",
        "return None",
        replacing=OUT,
    ),
    *mutants(
        "interface",
        "def mha_by_loop(x, mha)",
        "def mha_by_loop(mha, x, n_head)",
        "def mha_by_loop(x)",
        "def mha_by_loop(qkv, proj, x, n_head)",
        "def mha_loop(mha, x)",
        replacing=DEF,
    ),
    Mutant("keys_not_transposed", "", replacing=".transpose(1, 2)"),
    Mutant("values_transposed", " @ v.transpose(1, 2))", replacing=VALUES_MIXED),
    Mutant("heads_one_for_all", heads_before_loop_edit("[..., -hd:]")),
)

# parametric mutants: the number can have any value
FAMILIES = (
    (
        "scale_constant",
        lambda c: Mutant("scale_constant", f"/ {c!r}", replacing=SCALE),
        SCALES_TRIED,
    ),
    (
        "mask_weak_fill",
        lambda c: Mutant("mask_weak_fill", f"{-c!r}", replacing=MASKED_SCORE),
        FILLS_TRIED,
    ),
    (
        "mask_weak_fill",
        lambda c: Mutant("mask_weak_fill", f" + (~visible).to(x.dtype) * {-c!r}", replacing=HIDING),
        FILLS_TRIED,
    ),
    (
        "mask_weak_fill",
        lambda c: Mutant("mask_weak_fill", f"scores.min().item() - {c!r}", replacing=MASKED_SCORE),
        FILLS_TRIED,
    ),
)
