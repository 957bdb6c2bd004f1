"""The wrong ways to attend in groups, and to count a cache."""

from manyheads.checks import Mutant

from . import _attention_edits as edit
from . import _fused_mutants as fused
from . import _module_edits as edits
from ._attention_edits import JOINED as OUT
from ._attention_edits import (
    JOINED_STRAIGHT,
    SOFTMAX,
    combined_edits,
    replacements,
    scales,
    split_edit,
)
from ._mutants import (
    HEADS_NOT_JOINED,
    KEYS_NOT_TRANSPOSED,
    SCORES_WRONG_SOURCE,
    mutants,
    values_transposed,
)

# How many bytes a cache takes, wrongly.
BYTES = (
    "2 * n_layer * n_head * head_dim * T * bytes_per_number",
    "n_layer * n_kv_head * head_dim * T * bytes_per_number",
    "n_layer * n_head * head_dim * T * bytes_per_number",
    "3 * n_layer * n_kv_head * head_dim * T * bytes_per_number",
    "3 * n_layer * n_head * head_dim * T * bytes_per_number",
    "n_layer * (n_head + 2 * n_kv_head) * head_dim * T * bytes_per_number",
    "numbers",
    "2 * numbers",
    "4 * numbers",
    "numbers * bytes_per_number // n_layer",
    "numbers * bytes_per_number // T",
    "numbers * bytes_per_number // head_dim",
    "numbers * bytes_per_number // n_kv_head",
    "2 * n_layer * (n_head // n_kv_head) * head_dim * T * bytes_per_number",
    "2 * n_layer * n_head * n_kv_head * head_dim * T * bytes_per_number",
    "numbers * T * bytes_per_number",
    "n_layer * n_head * T * T * bytes_per_number",
    "n_layer * n_kv_head * T * T * bytes_per_number",
    "numbers * bytes_per_number * 8",
    "numbers * bytes_per_number // 1024",
    "numbers * bytes_per_number // 1024**2",
    "2 * n_layer * (n_kv_head + head_dim) * T * bytes_per_number",
    "2 * n_layer * n_kv_head * head_dim * n_head * head_dim * bytes_per_number",
)
NUMBERS = ("float", "torch.tensor", "str")

# Texts of the reference.
HALVED = "self.kv(x).chunk(2, dim=-1)"
CUT_K, CUT_V = (
    f"{name} = {name}.view(B, T, self.n_kv_head, self.head_dim).transpose(1, 2)" for name in "kv"
)
SIZES, QK = "B, T, C = x.shape", "q @ k.transpose(-2, -1)"
PROJECTED, COUNT = f"self.proj({OUT})", "return numbers * bytes_per_number"
Q, KV, SETS = (
    "self.q = nn.Linear(n_embd, n_embd, bias=False)",
    "self.kv = nn.Linear(n_embd, 2 * n_kv_head * self.head_dim, bias=False)",
    "if n_head % n_kv_head != 0:",
)
QUERIES = ("self.q(x)",)  # the tensor that is split into the queries' heads
SHARED = "{0}.repeat_interleave(group, dim=1)"  # of k or v

TWO_LAYERS = (
    "self.k, self.v = (nn.Linear(n_embd, n_kv_head * self.head_dim, bias=False) for _ in range(2))"
)
DROPPED = f"nn.functional.dropout({PROJECTED}, 0.1, self.training)"
ALWAYS = f"nn.functional.dropout({SOFTMAX}, 0.1)"
MEAN_OF_GROUP = "q.unflatten(1, (-1, group)).mean(2).repeat_interleave(group, 1)"
GROUPED = "y.unflatten(1, (-1, group))"  # (B, n_kv_head, group, T, hd)
K_WITHOUT_TRANSPOSE, V_WITHOUT_TRANSPOSE = (
    f"{name} = {name}.reshape(B, self.n_kv_head, T, self.head_dim)" for name in "kv"
)
KV_STRAIGHT = {CUT_K: K_WITHOUT_TRANSPOSE, CUT_V: V_WITHOUT_TRANSPOSE}
PER_SET = "self.kv(x).view(B, T, self.n_kv_head, 2, self.head_dim).unbind(3)"


def share_heads_edit(text, names="kv"):
    """Return the edit that makes the heads of keys and values, {0}, as many as the queries'."""
    return {SHARED.format(name): text.format(name) for name in names}


def share(id_, *texts, names=("kv",)):
    """Return mutants that share the heads of k, v or both in each of these ways."""
    return mutants(id_, *(share_heads_edit(text, group) for text in texts for group in names))


TILED = "{0}.repeat(1, group, 1, 1)"
FIRST_ONLY = "{0}[:, :1].expand(-1, self.n_head, -1, -1)"
NOT_TRANSPOSED = (
    split_edit(edit.VIEWED, QUERIES)
    | share_heads_edit(f"{SHARED}.transpose(1, 2)")
    | {OUT: "y.reshape(B, T, C)"}
)
# The queries' heads in another order.
REORDERED = (
    ".unflatten(1, (self.n_kv_head, -1)).transpose(1, 2).flatten(1, 2)",
    ".unflatten(1, (-1, self.n_kv_head)).transpose(1, 2).flatten(1, 2)",
)
# Softmax over the sets, over a group, and over the queries of a group.
BY_SETS = "scores.unflatten(1, (self.n_kv_head, -1))"
OVER_SETS, OVER_GROUP, OVER_QUERIES_OF_GROUP = replacements(
    SOFTMAX,
    f"{BY_SETS}.softmax(dim=1).flatten(1, 2)",
    f"{BY_SETS}.softmax(dim=2).flatten(1, 2)",
    f"{BY_SETS}.flatten(2, 3).softmax(dim=2).view_as(scores)",
)
MASKS = ({}, edit.LOW_FILL, edit.NO_MASK)
Q_UNTURNED, KV_UNTURNED = (
    {f"self.{name}(x)": f"(x @ self.{name}.weight.view(C, -1))"} for name in ("q", "kv")
)
STEPS = edit.gradient_cuts(OUT, PROJECTED, "self.q", "self.kv")

# Which head of keys and values a head of queries gets.
STRETCHED = ("repeat(1, 1, 1, group)", "repeat_interleave(group, 3)")
MISASSIGNED = (
    "{0}[:, [min(h // self.n_kv_head, self.n_kv_head - 1) for h in range(self.n_head)]]",
    "{0}[:, [h // self.n_kv_head for h in range(self.n_head)]]",
)
EITHER = ("kv", "k", "v")

MUTANTS = (
    *share("kv_heads_tiled", TILED),
    *scales("sqrt_c", "missing"),
    Mutant("mask_missing", edit.NO_MASK),
    *combined_edits("scores_ignored", [{edit.SCALE: " * 0.0"}], ({}, STEPS["scores"])),
    Mutant("kv_packed_wrong", PER_SET, replacing=HALVED),
    Mutant("qkv_order", f"{HALVED}[::-1]", replacing=HALVED),
    *share("kv_heads_first_only", FIRST_ONLY),
    *share("kv_heads_not_repeated", "{0}"),
    Mutant("layer_widths", "self.kv = nn.Linear(n_embd, 2 * n_embd, bias=False)", replacing=KV),
    Mutant("wrong_view", split_edit(edit.STRAIGHT, QUERIES) | KV_STRAIGHT),
    Mutant("wrong_view_both", split_edit(edit.STRAIGHT, QUERIES) | KV_STRAIGHT | JOINED_STRAIGHT),
    Mutant("merge_no_transpose", JOINED_STRAIGHT),
    *scales("hd"),
    Mutant("scale_twice", 2 * edit.SCALE, replacing=edit.SCALE),
    Mutant("proj_missing", OUT, replacing=PROJECTED),
    *fused.LIKELY,
    *share("kv_heads_tiled", TILED, names="kv"),
    *edit.splits(
        "query_groups_swapped", *(edit.SPLIT + order for order in REORDERED), tensors=[QUERIES]
    ),
    *mutants(
        "heads_reversed", *(f"self.proj(y{order}" for order in REORDERED), replacing="self.proj(y"
    ),
    *share(
        "reshape_out_of_order",
        f"{{0}}.transpose(1, 2).repeat(1, 1, group, 1){edit.TO_HEADS}",
    ),
    *share("heads_mix_batch", f"{{0}}.expand(group, -1, -1, -1, -1){edit.TO_HEADS}"),
    *share(
        "kv_heads_first_only",
        FIRST_ONLY,
        "{0}[:, -1:].expand(-1, self.n_head, -1, -1)",
        names=EITHER,
    ),
    *share(
        "kv_heads_repeated_wrong",
        "{0}.repeat_interleave(group, dim=2)",
        "{0}.repeat_interleave(group, dim=0)",
        "{0}.repeat_interleave(group)",
        "{0}.repeat_interleave(self.n_kv_head, dim=1)",
        "{0}.repeat_interleave(self.n_head, dim=1)",
        "{0}.expand(-1, self.n_head, -1, -1)",
    ),
    *share(
        "kv_heads_averaged",
        "{0}.mean(1, keepdim=True).expand(-1, self.n_head, -1, -1)",
        "{0}.sum(1, keepdim=True).expand(-1, self.n_head, -1, -1)",
        names=EITHER,
    ),
    *share(
        "kv_heads_misassigned",
        "{0}.flip(1).repeat_interleave(group, dim=1)",
        "{0}.roll(1, 1).repeat_interleave(group, dim=1)",
        names=EITHER,
    ),
    *mutants(
        "kv_packed_wrong",
        f"{PER_SET}[::-1]",
        "self.kv(x).view(B, T, self.n_kv_head, self.head_dim, 2).unbind(4)",
        replacing=HALVED,
    ),
    Mutant(
        "heads_interleaved",
        "self.kv(x).view(B, T, 2, self.head_dim, self.n_kv_head).permute(2, 0, 1, 4, 3)",
        replacing=HALVED,
    ),
    Mutant("wrong_view_values", KV_STRAIGHT),
    Mutant(
        "reshape_out_of_order",
        "self.kv(x).reshape(B, 2, self.n_kv_head, T, self.head_dim).permute(1, 0, 3, 2, 4)",
        replacing=HALVED,
    ),
    Mutant(
        "qkv_mix_batch",
        "self.kv(x).reshape(2, B, T, self.n_kv_head, self.head_dim)",
        replacing=HALVED,
    ),
    *scales("times_sqrt_hd", "times_hd", "times_c", *edit.PRECEDENCE),
    *scales("sqrt_heads", "sqrt_sets", "sqrt_group", "heads", "sqrt_tokens", "sqrt_block"),
    *scales("tokens", "block", "sqrt_kv_width", "sqrt_c_over_sets", "sqrt_3c", "c", "three_times"),
    *scales("sqrt_batch", "sqrt_batch_and_heads"),
    *fused.ROUNDED,
    *edits.rounding_mutants(PROJECTED),
    *mutants("scale_after_softmax", *edit.LATE_SCALES),
    *edit.factors("scale_constant", *edit.CONSTANTS),
    *fused.AXES_MASKED_OR_NOT,
    *combined_edits("softmax_wrong_axis", (OVER_SETS, OVER_GROUP), MASKS),
    *combined_edits("softmax_query_axis", [OVER_QUERIES_OF_GROUP], MASKS),
    Mutant("softmax_query_axis", edit.OVER_QUERIES | edit.NO_MASK),
    *fused.NO_SOFTMAX,
    *mutants("mask_reversed", edit.INVERTED | edit.LOW_FILL, edit.REVERSED_MASK),
    *mutants("mask_excludes_self", edit.WITHOUT_SELF | edit.LOW_FILL, edit.WITHOUT_SELF_BUT_FIRST),
    Mutant("mask_sdpa_inverted", edit.INVERTED | edit.AS_NUMBERS),
    Mutant("mask_reversed", edit.INVERTED | edit.AS_NUMBERS),  # the same by hand
    Mutant("mask_excludes_self", edit.WITHOUT_SELF | edit.AS_NUMBERS),
    *fused.mask_mutants(SOFTMAX),
    Mutant("wrong_view_values", split_edit(edit.STRAIGHT, QUERIES)),
    *edit.splits("reshape_out_of_order", *edit.OUT_OF_ORDER[:2], tensors=[QUERIES]),
    *fused.heads(OUT, QUERIES),
    *combined_edits(
        "heads_missing_transpose", [NOT_TRANSPOSED], (edit.CUT_TO_SCORES, edit.NO_MASK)
    ),
    *mutants("heads_mix_batch", *edit.MIXED_WITH_BATCH, replacing=OUT),
    *mutants(
        "values_wrong_source", *(f" @ {text}" for text in edit.OTHER_VALUES), replacing=" @ v"
    ),
    *SCORES_WRONG_SOURCE,
    *mutants("weight_not_transposed", Q_UNTURNED, KV_UNTURNED, Q_UNTURNED | KV_UNTURNED),
    *mutants(
        "proj_bias",
        edits.with_bias(Q, KV, edits.PROJ),
        edits.with_bias(Q),
        edits.with_bias(KV),
        edits.with_bias(edits.PROJ),
    ),
    Mutant("dropout_extra", DROPPED, replacing=PROJECTED),
    Mutant(
        "dropout_extra", f"nn.functional.dropout({SOFTMAX}, 0.1, self.training)", replacing=SOFTMAX
    ),
    Mutant(
        "dropout_always_on",
        {SOFTMAX: ALWAYS, PROJECTED: f"nn.functional.dropout({PROJECTED}, 0.1)"},
    ),
    Mutant("dropout_always_on", {SOFTMAX: ALWAYS, PROJECTED: DROPPED}),
    *fused.STATE_KEPT,
    Mutant("state_kept", edits.known_by_shape(PROJECTED)),
    Mutant("divisibility_unchecked", {edits.UNDIVIDED: "if False:", SETS: "if False:"}),
    *mutants("divisibility_unchecked", {SETS: "if False:"}, {edits.UNDIVIDED: "if False:"}),
    *edits.cast(),
    Mutant("hard_coded_dtype", f"{PROJECTED}.float()", replacing=PROJECTED),
    *mutants(
        "params_not_registered",
        edits.kept_as_buffers(Q, KV, edits.PROJ),
        edits.kept_as_buffers(KV),
        edits.kept_as_buffers(Q),
        edits.made_anew(Q, KV, edits.PROJ),
        edits.made_anew(KV),
    ),
    *mutants(
        "params_extra",
        edits.rename_layers(q="W_query", kv="W_kv", proj="out_proj"),
        edits.rename_layers(q="query"),
        {KV: TWO_LAYERS, HALVED: "self.k(x), self.v(x)"},
        *edits.EXTRA[:2],
    ),
    Mutant("layer_widths", KV.replace("2 * ", ""), replacing=KV),
    *edit.gradients_cut(STEPS),
    *edits.written_into("zero_()", out=PROJECTED),
    *mutants(
        "hard_coded_shape",
        *map(edit.heads_hard_coded, (4, 8, 12)),
        *map(edit.width_hard_coded, (64, 16, 8)),
    ),
    *edit.hard_coded("B = 2", "B = 1", "T = 8", "T = self.block_size", "C = 64"),
    *fused.MASK_ON_DEFAULT_DEVICE,
    *edits.on_a_device(layer_call="self.kv(x"),
    *mutants("cache_bytes", *(f"return {count}" for count in BYTES), replacing=COUNT),
    *mutants(
        "interface",
        *(f"return {conversion}(numbers * bytes_per_number)" for conversion in NUMBERS),
        "return None",
        replacing=COUNT,
    ),
    *edits.answers(PROJECTED),
    values_transposed("scores.softmax(dim=-1) @ v"),
    *edits.ADDED_MASK_KEPT,
    KEYS_NOT_TRANSPOSED,
    HEADS_NOT_JOINED,
    *(
        Mutant(
            "heads_averaged",
            f"{GROUPED}.{reduction}(2).repeat_interleave(group, 1).transpose(1, 2).reshape(B,"
            " T, C)",
            replacing=OUT,
        )
        for reduction in ("mean", "sum")
    ),
    Mutant(
        "heads_averaged",
        f"{GROUPED}.mean(2).transpose(1, 2).reshape(B, T, -1).repeat(1, 1, group)",
        replacing=OUT,
    ),
    Mutant("heads_one_width", "self.proj(y[:, -1])", replacing=PROJECTED),
    Mutant("heads_share_weights", f"{SOFTMAX}.mean(1, keepdim=True)", replacing=SOFTMAX),
    Mutant("heads_share_weights", f"({QK}).mean(1, keepdim=True)", replacing=QK),
    Mutant("heads_share_weights", f"{MEAN_OF_GROUP} @ k.transpose(-2, -1)", replacing=QK),
    *(
        Mutant("kv_cut_wrong_axis", f"self.kv(x).chunk(2, dim={axis})", replacing=HALVED)
        for axis in (1, 0)
    ),
    Mutant("merge_wrong_axes", f"{GROUPED}.transpose(2, 3).reshape(B, T, C)", replacing=OUT),
    Mutant("merge_wrong_axes", f"{GROUPED}.permute(0, 3, 1, 4, 2).reshape(B, T, C)", replacing=OUT),
    Mutant("hard_coded_shape", f"x = x[:1]\n        {SIZES}", replacing=SIZES),
    *(
        Mutant("hard_coded_dtype", f"q @ k.{half}().to(k).transpose(-2, -1)", replacing=QK)
        for half in ("half", "bfloat16")
    ),
    Mutant("wrong_view_values", K_WITHOUT_TRANSPOSE, replacing=CUT_K),
    Mutant("wrong_view_values", V_WITHOUT_TRANSPOSE, replacing=CUT_V),
    Mutant(
        "heads_mix_batch",
        "self.q(x).view(self.n_head, B, T, -1).transpose(0, 1)",
        replacing="self.q(x).view(B, T, self.n_head, self.head_dim).transpose(1, 2)",
    ),
    Mutant(
        "heads_mix_batch",
        CUT_K.replace("view(B, T, self.n_kv_head,", "reshape(self.n_kv_head, B, T,").replace(
            "(1, 2)", "(0, 1)"
        ),
        replacing=CUT_K,
    ),
    Mutant("cache_bytes", f"{COUNT} / 1024**3", replacing=COUNT),
    *share("kv_heads_misassigned", *MISASSIGNED),
    *share(
        "kv_heads_repeated_wrong",
        *(f"{{0}}.{method}.reshape(B, self.n_head, T, -1)" for method in STRETCHED),
    ),
)

FAMILIES = fused.FAMILIES
