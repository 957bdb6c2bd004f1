"""The wrong ways to let one sequence ask another, and to hide its padding."""

from manyheads.checks import Mutant

from . import _head_edits as heads
from . import _module_edits as edits
from . import _steps as step
from ._layer_edits import ANEW, AS_STORED, DETACHED, layer_edit, renamed_layers
from ._mutants import (
    KEYS_NOT_TRANSPOSED,
    SCORES_WRONG_SOURCE,
    SUPER_INIT_MISSING,
    insert_before,
    mutants,
    values_transposed,
)
from ._steps import (
    HIDE,
    added_mask_edits,
    at_first,
    each_softmax,
    each_with,
    fills,
    scales,
    softmaxes,
)

# Texts of the reference.
QK, SOFTMAX = "q @ k.transpose(-2, -1)", "scores.softmax(dim=-1)"
JOINED = "y.reshape(B, T_q, self.num_heads * self.head_dim)"
KEEP = "keep[:, None, None, :]"  # (B, 1, 1, T_k)
HIDING = f"scores.masked_fill(~{KEEP}, -math.inf)"
OUT, SIZES, UNDIVIDED = (
    f"self.out_proj({JOINED})",
    "B, T_q, _ = x.shape",
    "if d_out % num_heads != 0:",
)
PROJ = "self.out_proj = nn.Linear(d_out, d_out)"
STEPS = {
    "SIZES": SIZES,
    "SCALE": "/ math.sqrt(self.head_dim)",
    "MASKING": "if keep is not None:",
    "HIDDEN": f"~{KEEP}",
    "FILL": "-math.inf",
    "SOFTMAX": SOFTMAX,
    "OUT": OUT,
    "VISIBLE": KEEP,
    "hd": "self.head_dim",
    "nh": "self.num_heads",
    "C": "(self.num_heads * self.head_dim)",
}
CONTEXT_LAYER = ("nn.Linear(d_context, d_out, bias=False)", "context")
LAYERS = {
    "W_query": ("nn.Linear(d_query, d_out, bias=False)", "x"),
    "W_key": CONTEXT_LAYER,
    "W_value": CONTEXT_LAYER,
    "out_proj": ("nn.Linear(d_out, d_out)", JOINED),
}
ONE_HEAD = (
    "y[:, :, h] @ self.out_proj.weight[:, h * self.head_dim : (h + 1) * self.head_dim].T +"
    " self.out_proj.bias"
)

WIDTHS = {
    "self.W_key = nn.Linear(d_context": "self.W_key = nn.Linear(d_query",
    "self.W_value = nn.Linear(d_context": "self.W_value = nn.Linear(d_query",
}
NUMBER = "self.num_heads = num_heads"
AVERAGED = [{heads.TRANSPOSED: f"v).{mean}", JOINED: "y"} for mean in heads.AVERAGED]
PADDED = {JOINED: "nn.functional.pad(y, (0, (self.num_heads - 1) * self.head_dim))"}
FROM_BATCH = heads.TO_HEADS.format(T="T_q")
CHOICES = ("q", "k", "v", "qk", "qv", "kv", "qkv")
BIAS_FLIPPED = (
    "self.{0} = {1}\n        no_bias = self.{0}.bias is None\n"
    "        self.{0}.bias = nn.Parameter(torch.zeros(d_out)) if no_bias else None"
)
CHOICES_OF_BIASES = ("o", "qkv", "kv", "q", "qkvo", "k", "v", "qk", "qv")

# Wrong visible keys, in place of KEEP. The two lengths are made the same by cutting, or by padding
# with visible or hidden tokens.
QUERIES = "keep[:, None, :, None]"
CUT = "nn.functional.pad(keep[:, :T_q], (0, max(0, T_q - T_k)), value={})[:, None, :, None]"
ON_QUERIES = (
    QUERIES,
    f"({QUERIES} & {KEEP})",
    f"({QUERIES} | {KEEP})",
    CUT.format(True),
    CUT.format(False),
)
PAST = "torch.ones({0}, {1}, dtype=torch.bool, device=x.device).tril({2})".format
CAUSAL, FROM_THE_END = (f"({PAST('T_q', 'T_k', end)} & {KEEP})" for end in ("0", "T_k - T_q"))
# A causal mask acts without keep, too.
KEEP_ALL = insert_before(
    "{MASKING}",
    "if keep is None:\n            keep = torch.ones_like(context[..., 0], dtype=torch.bool)",
)
# Heads folded into the batch, and keep repeated in the other order.
BATCH_INNERMOST = "keep.repeat(self.num_heads, 1).view(B, self.num_heads, 1, -1)"
BATCH_OUTERMOST = (
    "keep.repeat_interleave(self.num_heads, 0).view(self.num_heads, B, 1, -1).transpose(0, 1)"
)
FIRST_HEAD = f"({KEEP} | (torch.arange(self.num_heads, device=x.device) > 0)[:, None, None])"
WEAK = (-10.0, -1.0, -5.0, -8.0, -9.0, -12.0, -13.0, -14.0, -15.0, -16.0, -20.0, -40.0)
ADDED_WEAK = added_mask_edits(-10.0, -5.0)  # −1 added is a mask of ones: mask_added
CONSTANTS = (0.125, 0.5, 0.25, 8.0, 64.0, "1 / 64", "1 / 3", "3**-0.5", "768**-0.5", "1 / 768")


def visible(*texts):
    """Return edits by which other keys may be seen."""
    return [{KEEP: text} for text in texts]


def mask_after_softmax_edit(fill):
    """Return an edit that masks after the softmax."""
    line = f"weights = weights.masked_fill(~{KEEP}, {fill})"
    return {HIDE: ""} | insert_before("y = (", f"{{MASKING}}\n            {line}")


def split_edit(text, roles="qkv"):
    """Return an edit that splits these of q, k and v in another way, as in `_head_edits`."""
    edit = {}
    for role, (name, (_, argument)) in zip("qkv", LAYERS.items(), strict=False):
        sizes = {"t": f"self.{name}({argument})", "T": "T_q" if role == "q" else "T_k"}
        if role in roles:
            edit[heads.HEADS.format(**sizes) + ".transpose(1, 2)"] = text.format(**sizes)
    return edit


def in_order(letters):
    """Return an edit in which q, k and v come from these layers."""
    edit, names = {}, dict(zip("qkv", LAYERS, strict=False))
    for role, letter in zip("qkv", letters, strict=True):
        if role != letter:
            edit[f"{role} = self.{names[role]}("] = f"{role} = self.{names[letter]}("
    return edit


def buffer_edit(*names):
    """Return an edit that makes the weights of these layers buffers."""
    lines = (
        f"{PROJ}\n        for layer in [{', '.join(names)}]:\n"
        "            weight = torch.randn_like(layer._parameters.pop('weight').data)\n"
        "            weight = weight / layer.in_features**0.5\n"
        "            layer.register_buffer('weight', weight, persistent=False)\n"
        "            layer.bias = None"
    )
    return {PROJ: lines}


TEMPLATES = (
    Mutant("mask_missing", step.NO_MASK),
    Mutant("keep_inverted", step.MASK_INVERTED),
    *mutants("keep_on_queries", *visible(*ON_QUERIES)),
    *scales("scale_sqrt_c", "/ math.sqrt({C})"),
    *scales("scale_missing", ""),
    *at_first("context_ignored", "context = x"),
    *mutants(
        "context_ignored",
        {"self.W_key(context).view(B, T_k": "self.W_key(x).view(B, T_q"},
        {"self.W_value(context).view(B, T_k": "self.W_value(x).view(B, T_q"},
    ),
    Mutant("wrong_view", split_edit(heads.STRAIGHT)),
    Mutant("wrong_view_both", split_edit(heads.STRAIGHT) | heads.MERGED_STRAIGHT),
    Mutant("merge_no_transpose", heads.MERGED_STRAIGHT),
    *scales("scale_no_sqrt", "/ {hd}"),
    *scales("scale_twice", "{SCALE} {SCALE}"),
    *scales("scores_ignored", "* 0.0"),
    Mutant("scores_ignored", {"{SCALE}": "* 0.0"} | step.SCORES_DETACHED),
    *softmaxes("softmax_query_axis", step.OVER_QUERIES),
    Mutant("product_turned", f"({QK}).mT", replacing=QK),
    Mutant("mask_after_softmax", mask_after_softmax_edit(0.0)),
    Mutant("mask_zero_fill", step.ZERO_FILL),
    # the context itself set to 0
    *at_first(
        "mask_zero_fill",
        "if keep is not None:\n"
        "            context, keep = context.masked_fill(~keep[..., None], 0.0), None",
    ),
    Mutant("proj_missing", JOINED, replacing=OUT),
    *mutants(
        "size_wrong_axis",
        {"T_k = context.shape[1]": "T_k = T_q"},
        {SIZES: "B, T_q = len(x), context.shape[1]"},
        {"y.reshape(B, T_q,": "y.reshape(B, T_k,"},
    ),
    *mutants("layer_widths", WIDTHS, WIDTHS | insert_before(SIZES, "context = x")),
    Mutant("view_not_contiguous", "y.view", replacing="y.reshape"),
    SUPER_INIT_MISSING,
    Mutant("keep_inverted", step.MASK_INVERTED | step.FINITE),
    Mutant("keep_inverted", added_mask_edits(-1e9)[0] | step.MASK_INVERTED),
    # Fused code answers a row that is hidden whole with zeros, and takes keep as attn_mask or as
    # key_padding_mask.
    Mutant("keep_inverted", step.MASK_INVERTED | step.AS_NUMBERS),
    Mutant("mask_sdpa_inverted", step.MASK_INVERTED | step.AS_NUMBERS),
    *mutants(
        "keep_on_queries",
        *(
            hidden | edit
            for edit in visible(*ON_QUERIES)
            for hidden in (step.FINITE, step.ZERO_FILL, mask_after_softmax_edit(0.0))
        ),
    ),
    *mutants("keep_on_queries", *each_with(visible(*ON_QUERIES), step.AS_NUMBERS)),
    *mutants("size_wrong_axis", *visible("keep", "keep[:, None, :]", "keep[:, :, None]")),
    *mutants(
        "causal_extra",
        *each_with(
            visible(CAUSAL, PAST("T_q", "T_k", 0), FROM_THE_END, PAST("T_q", "T_q", 0)), KEEP_ALL
        ),
        *each_with(visible(CAUSAL, FROM_THE_END), KEEP_ALL | step.FINITE),
        *each_with(visible(CAUSAL, FROM_THE_END), KEEP_ALL | step.AS_NUMBERS),
    ),
    *mutants("heads_mix_batch", *visible(BATCH_INNERMOST, BATCH_OUTERMOST)),
    *mutants("mask_missing", *visible(FIRST_HEAD)),
    *at_first("sides_swapped", "x, context = context, x", "x = context"),
    *at_first("context_ignored", "context = torch.cat([x, context], dim=1)"),
    Mutant("interface", "if ~keep is not None:", replacing="if keep is not None:"),
    *scales("scale_multiplied", "* math.sqrt({hd})", "* {hd}", "* {C}"),
    *scales("scale_precedence", *step.PRECEDENCE),
    *scales("scale_sqrt_heads", "/ math.sqrt({nh})"),
    *scales("scale_heads", "/ {nh}"),
    *scales("scale_sqrt_tokens", "/ math.sqrt(T_q)", "/ math.sqrt(T_k)"),
    *scales("scale_tokens", "/ T_q"),
    *scales("scale_sqrt_c", "/ math.sqrt(x.shape[-1])", "/ math.sqrt(context.shape[-1])"),
    *scales("scale_wrong_axis", "/ math.sqrt(B)", "/ math.sqrt(B * {nh})"),
    *scales("scale_c", "/ {C}"),
    *scales("scale_twice", "/ {hd}**1.5"),
    *scales("scale_rounded", "/ math.floor(math.sqrt({hd}))", "/ math.ceil(math.sqrt({hd}))"),
    *mutants("scale_rounded", *step.SCORES_ROUNDED),
    *mutants("scale_after_softmax", {"{SCALE}": ""} | step.SCALED_WEIGHTS, step.SCALED_WEIGHTS),
    *scales("scale_constant", *(f"* ({number})" for number in CONSTANTS)),
    *mutants("softmax_wrong_axis", *each_softmax(step.AXES, {}, step.FINITE, step.NO_MASK)),
    *mutants(
        "softmax_query_axis",
        *each_softmax((step.OVER_QUERIES, step.OVER_QUERIES_BY_HAND), step.FINITE, step.NO_MASK),
    ),
    *softmaxes("softmax_query_axis", "scores.softmax(dim=-2).nan_to_num()"),
    *softmaxes(
        "softmax_missing",
        *("scores", step.ZERO_FILLED, step.SUM_ZERO_FILLED, step.NO_SOFTMAX[1]),
        f"(e := {step.ZERO_FILLED}) / e.abs().sum(-1, keepdim=True)",
        *("scores.exp()", step.NO_SOFTMAX[2]),
        f"nn.functional.normalize({step.ZERO_FILLED}, dim=-1)",
        f"{step.ZERO_FILLED} / scores.shape[-1]",
    ),
    *mutants(
        "softmax_missing",
        *each_softmax(step.NO_SOFTMAX, step.ZERO_FILL, step.FINITE, step.NO_MASK),
    ),
    *mutants("mask_weak_fill", *fills(*WEAK), *ADDED_WEAK, *step.LOW_FILLS, *step.OF_HEADS),
    *mutants("mask_weak_fill", *each_with((*fills(*WEAK[:3]), *ADDED_WEAK), step.LATE_SCALE)),
    *mutants("mask_plus_inf", *fills("math.inf")),
    *mutants("mask_high_fill", *fills(1e9)),
    *mutants("mask_nan", *step.NAN_PRODUCTS, {HIDE: step.NAN_FACTOR.replace("1.0", "0.0")}),
    Mutant("mask_after_softmax", mask_after_softmax_edit(-1e9)),
    *mutants("mask_added", *step.MASKS_ADDED, *each_with(step.MASKS_ADDED, step.LATE_SCALE)),
    *mutants("wrong_view_values", *(split_edit(heads.STRAIGHT, roles) for roles in heads.PARTS)),
    *mutants("reshape_out_of_order", *map(split_edit, heads.OUT_OF_ORDER)),
    *mutants("merge_wrong_axes", *heads.permutation_text("0132", "0231", "0312", "0321")),
    *mutants(
        "heads_interleaved",
        split_edit(heads.INTERLEAVED),
        split_edit(heads.INTERLEAVED) | heads.LAST_AXES,
    ),
    *mutants("heads_one_width", *AVERAGED),
    *mutants(
        "heads_averaged",
        *AVERAGED,
        *heads.merges(*heads.AVERAGED_AGAIN),
        *each_with(heads.merges(*heads.AVERAGED), PADDED),
    ),
    *mutants("heads_reversed", *heads.REVERSED),
    *mutants(
        "view_not_contiguous",
        *each_with(
            heads.merges("permute(0, 2, 3, 1)", "contiguous().transpose(1, 2)"),
            {"y.reshape": "y.view"},
        ),
    ),
    Mutant("proj_transposed", layer_edit(LAYERS, "o", "", AS_STORED)),
    Mutant("proj_twice", f"self.out_proj({OUT})", replacing=OUT),
    *mutants(
        "heads_and_width_swapped",
        split_edit(heads.SIZES_SWAPPED),
        split_edit(heads.SIZES_SWAPPED) | {"{SCALE}": "/ math.sqrt({nh})"},
    ),
    Mutant("heads_missing_transpose", split_edit(heads.HEADS) | heads.MERGED_STRAIGHT),
    Mutant(
        "heads_missing_transpose", split_edit(heads.HEADS) | heads.MERGED_STRAIGHT | step.NO_MASK
    ),
    *mutants(
        "heads_mix_batch",
        *heads.permutation_text("1203"),
        *heads.merges(f"transpose(0, 1){FROM_BATCH}.transpose(1, 2)"),
        heads.BATCH_VIEWED,
        split_edit(heads.BATCH_AFTER_HEADS),
        split_edit(heads.BATCH_SWAPPED),
    ),
    Mutant("reshape_out_of_order", split_edit(heads.BATCH_AND_TOKENS)),
    *mutants("qkv_order", *map(in_order, ("qvk", "kqv", "vqk", "kvq", "vkq"))),
    *mutants("values_wrong_source", "@ k", "@ q", replacing="@ v"),
    *SCORES_WRONG_SOURCE,
    *mutants(
        "weight_not_transposed",
        *(layer_edit(LAYERS, letters, "", AS_STORED) for letters in CHOICES),
    ),
    *mutants(
        "proj_bias", *(layer_edit(LAYERS, letters, BIAS_FLIPPED) for letters in CHOICES_OF_BIASES)
    ),
    *mutants(
        "dropout_extra",
        *({text: f"nn.functional.dropout({text}, 0.1, self.training)"} for text in (SOFTMAX, OUT)),
    ),
    Mutant("dropout_always_on", f"nn.functional.dropout({SOFTMAX}, 0.1)", replacing=SOFTMAX),
    *at_first(
        "state_kept",
        "self.kept = getattr(self, 'kept', None) if keep is None else keep\n"
        "        keep = self.kept\n"
        "        if keep is not None and keep.shape != context.shape[:2]:\n"
        "            keep = None",
        "stored = vars(self).setdefault('context', context)\n"
        "        context = stored if stored.shape == context.shape else context",
    ),
    Mutant("state_kept", step.ANSWERS_KEPT),
    *at_first(
        "state_kept",
        "size = vars(self).setdefault('batch', len(x))\n"
        "        x, context = x[:size], context[:size]\n"
        "        keep = None if keep is None else keep[:size]",
    ),
    Mutant("state_kept", step.MOST_TOKENS_KEPT),
    *mutants(
        "divisibility_unchecked",
        "if False:",
        "if d_query % num_heads != 0:",
        replacing=UNDIVIDED,
    ),
    *edits.cast(SIZES),
    Mutant("hard_coded_dtype", f"{OUT}.float()", replacing=OUT),
    *mutants(
        "params_not_registered",
        buffer_edit("self.W_query", "self.W_key", "self.W_value", "self.out_proj"),
        buffer_edit("self.W_key"),
        buffer_edit("self.out_proj"),
        layer_edit(LAYERS, "qkvo", *ANEW),
    ),
    *mutants(
        "params_extra",
        renamed_layers(LAYERS, "W_query_ W_key_ W_value_ out_proj_"),
        renamed_layers(LAYERS, "W_query W_key W_value out_proj_"),
        {PROJ: f"{PROJ}\n        self.temperature = nn.Parameter(torch.ones(1))"},
        {PROJ: f"{PROJ}\n        self.norm = nn.LayerNorm(d_out)"},
    ),
    *at_first("gradient_cut", "x = x.detach()"),
    *mutants(
        "gradient_cut",
        layer_edit(
            LAYERS, "qkvo", "", "nn.functional.linear({1}, self.{0}.weight.detach(), self.{0}.bias)"
        ),
        *step.PARTS_DETACHED,
        step.SCORES_DETACHED,
        {"weights @": "weights.detach() @"},
        layer_edit(LAYERS, "o", "", DETACHED),
        {OUT: f"{OUT}.detach()"},
        step.PARTS_DETACHED[0] | step.PARTS_DETACHED[1],
        step.PARTS_DETACHED[1] | step.PARTS_DETACHED[2],
    ),
    Mutant("gradient_cut", insert_before(SIZES, "context = context.detach()")),
    *edits.written_into(
        "zero_()",
        sizes=SIZES,
        out=OUT,
        copies=[f"given, {x} = {x}, {x}.clone()" for x in ("x", "context")],
    ),
    *mutants(
        "hard_coded_shape",
        {NUMBER: "self.num_heads = 4"},
        {NUMBER: "self.num_heads = 8"},
        {"self.head_dim = d_out // num_heads": "self.head_dim = 64"},
        {SIZES: "B, T_q = 2, x.shape[1]"},
        {SIZES: "B, T_q = len(x), 8"},
        {"T_k = context.shape[1]": "T_k = 8"},
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

MUTANTS = step.of_reference(TEMPLATES, **STEPS)
FAMILIES = step.families(step.FAMILIES[:3], **STEPS)
