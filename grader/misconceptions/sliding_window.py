"""Wrong attempts at the sliding window, each an edit of the reference.

local_attention calls window_mask, so an edit of window_mask changes both. If one of the two
alone is wrong, a copy of window_mask, called `band`, stands above local_attention.
"""

from manyheads.checks import Mutant

from ._mutants import (
    FILLS_TRIED,
    SCALES_TRIED,
    mutants,
)

# Texts of the reference.
QUERY = "torch.arange(T_k - T_q, T_k, device=device)[:, None]"
KEY = "torch.arange(T_k, device=device)"
NOT_AHEAD, NOT_FAR = "key <= query", "key > query - window"
BAND = f"({NOT_AHEAD}) & ({NOT_FAR})"
QUERIES_REFUSED = (
    'ValueError(f"{T_q} queries cannot stand at the last of {T_k} keys: there are more of them")'
)
PRODUCT, SCALE = "q @ k.transpose(-2, -1)", " / math.sqrt(q.shape[-1])"
SCORES = f"{PRODUCT}{SCALE}"
HIDDEN = 'scores.masked_fill(~mask, float("-inf"))'
SOFTMAX, AXIS = "torch.softmax(", "dim=-1"
OUT = "weights @ v"
MASK_MADE = "window_mask(q.shape[-2]"
FIRST_LINE = "mask = "  # of local_attention
DEF_LOCAL = "def local_attention("
AFTER_SOFTMAX = f"{HIDDEN}, {AXIS})"

LINES_OF_MASK = (
    "def band(T_q, T_k, window, device):",
    f"query = {QUERY}",
    f"key = {KEY}",
    f"return {BAND}",
)


def mask_copy_edit(changes):
    """Return the edit by which local_attention has a copy of window_mask, which has changes."""
    copy = "\n    ".join(LINES_OF_MASK)
    for old, new in changes.items():
        copy = copy.replace(old, new)
    return {DEF_LOCAL: f"{copy}\n\n\n{DEF_LOCAL}", MASK_MADE: "band(q.shape[-2]"}


RIGHT_BAND = mask_copy_edit({})


def bands(id_, *edits):
    """Return mutants with another mask: in both functions, in local_attention, in window_mask."""
    listed = []
    for changes in edits:
        listed += [changes, mask_copy_edit(changes), changes | RIGHT_BAND]
    return mutants(id_, *listed)


def finite_bands(id_, changes, rows):
    """Return mutants with another mask whose rows stay finite if they see no key.

    The mask is wrong in both functions, or in local_attention alone.
    """
    edits = (changes, mask_copy_edit(changes))
    return mutants(id_, *(edit | row for edit in edits for row in rows))


def fill_text(number):
    return f"scores.masked_fill(~mask, {number})"


def added_mask_text(number):
    return f"scores + (~mask).to(scores.dtype) * {number}"


def hides(id_, *texts):
    return mutants(id_, *texts, replacing=HIDDEN)


def scales(id_, *texts):
    return mutants(id_, *texts, replacing=SCALE)


def shares(id_, *texts):
    """Return mutants that turn hidden scores s into something else than a softmax."""
    texts = [f"(lambda s, dim: {text})(" for text in texts]
    return mutants(id_, *texts, replacing=SOFTMAX)


def insert_first(statement):
    """Return the edit that puts a statement at the beginning of local_attention."""
    return {FIRST_LINE: f"{statement}\n    {FIRST_LINE}"}


def roles(id_, *orders):
    """Return mutants with other tensors as queries, keys and values."""
    return mutants(id_, *(insert_first(f"q, k, v = {', '.join(order)}") for order in orders))


def masks(template):
    """Return the edit by which window_mask alone returns this; {0} stands for its right answer."""
    return {f"return {BAND}": f"return {template.format(f'({BAND})')}"} | RIGHT_BAND


def answers(template):
    """Return mutants of window_mask and of local_attention with another type of answer."""
    answer = {f"return {OUT}": f"return {template.format(f'({OUT})')}"}
    return mutants("interface", masks(template), answer)


def axes_unpacked(number):
    """Return an edit that reads the sizes of exactly so many axes."""
    message = f"not enough values to unpack (expected {number}, got {{q.dim()}})"
    lines = f'if q.dim() != {number}:\n        raise ValueError(f"{message}")\n    scores = '
    return {"scores = ": lines}


# −1 added is a mask of ones: mask_added
WEAK = (-10.0, -1.0, -20.0, -5.0, -50.0, -30.0, -12.0)
HEADS = "(q.shape[-3] if q.dim() > 3 else 1)"
BELOW_ALL = "float(scores.detach().min()) - {0}"
FROM_0 = {QUERY: "torch.arange(T_q, device=device)[:, None]"}
SQUARE_OF_QUERIES = FROM_0 | {KEY: "torch.arange(T_q, device=device)"}
SQUARE_OF_KEYS = {QUERY: "torch.arange(T_k, device=device)[:, None]"}
UNLIMITED, NOT_CAUSAL = {BAND: NOT_AHEAD}, {BAND: NOT_FAR}
ONE_LESS = {NOT_FAR: "key > query - window + 1"}
ONE_EARLY = {QUERY: QUERY.replace("T_q, T_k", "T_q - 1, T_k - 1")}
FAR = {NOT_FAR: "key <= query - window"}
FUTURE_FROM_0 = FROM_0 | {NOT_FAR: "key > query + (T_k - T_q) - window"}
INVERTED = {BAND: f"~({BAND})"}
SELF_EXCLUDED = {NOT_AHEAD: "key < query"}
LOW_FILL = {HIDDEN: fill_text(-1e9)}
NAN_TO_ZERO = {f"return {OUT}": "return weights.nan_to_num(0.0) @ v"}
FINITE = (LOW_FILL, NAN_TO_ZERO)
HEAD_AXIS, BATCH_AXIS = {AXIS: "dim=1"}, {AXIS: "dim=0"}
ON_CPU = "{0} + torch.zeros({0}.shape, dtype={0}.dtype)"
ARGUMENTS_ON_CPU = insert_first(f"q, k, v = {', '.join(ON_CPU.format(name) for name in 'qkv')}")
MASK_ON_CPU = {name: name.replace("=device", '="cpu"') for name in (QUERY, KEY)} | RIGHT_BAND

MUTANTS = (
    *bands("window_missing", UNLIMITED),
    *bands(
        "window_off_by_one",
        {NOT_FAR: "key >= query - window"},
        ONE_LESS,
        {NOT_FAR: "key > query - max(window - 1, 1)"},
    ),
    *finite_bands("window_off_by_one", ONE_LESS, FINITE),
    *bands(
        "window_two_sided",
        {NOT_AHEAD: "key < query + window"},
        {NOT_AHEAD: "key <= query + window", NOT_FAR: "key >= query - window"},
        {NOT_AHEAD: "key <= query + window // 2", NOT_FAR: "key >= query - window // 2"},
    ),
    *bands("window_not_causal", NOT_CAUSAL),
    *bands("mask_missing", {BAND: "(key == key) & (query == query)"}),
    *bands(
        "window_top_left",
        FROM_0,
        FROM_0 | UNLIMITED,
        {NOT_FAR: "key > query - (T_k - T_q) - window"},
        FUTURE_FROM_0,
    ),
    *finite_bands("window_top_left", FUTURE_FROM_0, FINITE),
    *bands(
        "window_misplaced",
        ONE_EARLY,
        {QUERY: QUERY.replace("T_q, T_k", "T_q + 1, T_k + 1")},
        {QUERY: QUERY.replace("T_k - T_q, T_k", "T_q - T_k, 2 * T_q - T_k")},
        {QUERY: QUERY.replace("T_k - T_q, T_k", "T_k - 1, T_k - 1 + T_q")},
    ),
    *finite_bands("window_misplaced", ONE_EARLY, FINITE),
    *bands(
        "window_square",
        SQUARE_OF_QUERIES,
        SQUARE_OF_KEYS,
        SQUARE_OF_QUERIES | UNLIMITED,
        SQUARE_OF_KEYS | UNLIMITED,
    ),
    *bands(
        "window_blocks",
        {NOT_FAR: "query // window == key // window"},
        {BAND: "query // window == key // window"},
    ),
    *bands("window_far_past", FAR, {NOT_FAR: "key < query - window"}),
    *finite_bands("window_far_past", FAR, FINITE),
    *bands("window_fixed", *({NOT_FAR: f"key > query - {n}"} for n in (3, 2, 4, 5, 8, 16, 32))),
    *bands("mask_reversed", {BAND: "(key >= query) & (key < query + window)"}, INVERTED),
    *finite_bands("mask_reversed", INVERTED, FINITE[:1]),
    Mutant("mask_sdpa_inverted", mask_copy_edit(INVERTED) | NAN_TO_ZERO),
    Mutant("mask_reversed", mask_copy_edit(INVERTED) | NAN_TO_ZERO),  # the same by hand
    *bands("mask_excludes_self", SELF_EXCLUDED),
    *finite_bands("mask_excludes_self", SELF_EXCLUDED, FINITE),
    *bands("mask_peeks_one", {NOT_AHEAD: "key <= query + 1"}),
    *bands("mask_peeks_ahead", {NOT_AHEAD: "key <= query + 2"}, {NOT_AHEAD: "key <= query + 3"}),
    *hides("mask_zero_fill", fill_text(0.0)),
    *hides("mask_weak_fill", *map(fill_text, WEAK)),
    *hides("mask_weak_fill", *(added_mask_text(number) for number in WEAK if number != -1.0)),
    *hides(
        "mask_weak_fill",
        "torch.where(mask, scores, scores.min() - 1)",
        fill_text(BELOW_ALL.format(1)),
        "torch.where(mask, scores, scores.amin(-1, keepdim=True) - 1)",
        "torch.where(mask, scores, scores.min())",
        "torch.where(mask, scores, -scores.abs().max() - 1)",
    ),
    *hides("mask_plus_inf", fill_text('float("inf")')),
    *hides("mask_high_fill", fill_text(1e9), added_mask_text(1e9)),
    Mutant(
        "mask_after_softmax", f"scores, {AXIS}).masked_fill(~mask, 0.0)", replacing=AFTER_SOFTMAX
    ),
    *hides(
        "mask_nan",
        added_mask_text('float("-inf")'),
        'scores * torch.where(mask, 1.0, float("-inf")).to(scores.dtype)',
        fill_text('float("nan")'),
    ),
    Mutant(
        "mask_nan", f'scores, {AXIS}).masked_fill(~mask, float("-inf"))', replacing=AFTER_SOFTMAX
    ),
    *hides("mask_added", "scores + mask", "scores + ~mask"),
    *scales("scale_missing", ""),
    *scales("scale_no_sqrt", " / q.shape[-1]"),
    *scales("scale_twice", " / q.shape[-1]"),
    *scales("scale_multiplied", " * math.sqrt(q.shape[-1])", " * q.shape[-1]"),
    *scales(
        "scale_precedence",
        " / q.shape[-1] ** 1 / 2",
        " / (q.shape[-1] ** 1 / 2)",
        " / max(q.shape[-1] // 2, 1)",
        " * q.shape[-1] ** 1 / 2",
    ),
    Mutant("scale_after_softmax", {SCALE: "", "return weights": f"return weights{SCALE}"}),
    Mutant("scale_after_softmax", f"return weights{SCALE}", replacing="return weights"),
    *scales("scale_sqrt_tokens", " / math.sqrt(k.shape[-2])", " / math.sqrt(q.shape[-2])"),
    *scales("scale_tokens", " / q.shape[-2]"),
    *scales("scale_wrong_axis", f" / math.sqrt{HEADS}", " / math.sqrt(q.shape[1])"),
    *scales("scale_sqrt_c", f" / math.sqrt({HEADS} * q.shape[-1])"),
    *scales("scale_wrong_axis", " / math.sqrt(v.shape[-1])", " / math.sqrt(len(q))"),
    *scales(
        "scale_rounded",
        " / math.floor(math.sqrt(q.shape[-1]))",
        " / round(math.sqrt(q.shape[-1]))",
        " / math.ceil(math.sqrt(q.shape[-1]))",
    ),
    *mutants(
        "scale_rounded",
        f'torch.div({SCORES}, 1, rounding_mode="floor")',
        f"({SCORES}) // 1",
        replacing=SCORES,
    ),
    *scales("scale_constant", *(f" / {number} ** 0.5" for number in (8, 64, 2, 4, 768))),
    Mutant("softmax_query_axis", "dim=-2", replacing=AXIS),
    *shares(
        "softmax_query_axis",
        "(e := (s - s.amax(-1, keepdim=True)).exp()) / e.sum(-2, keepdim=True)",
    ),
    Mutant("softmax_wrong_axis", HEAD_AXIS),
    Mutant("softmax_wrong_axis", BATCH_AXIS),
    *shares(
        "softmax_wrong_axis",
        "s.flatten(-2).softmax(-1).view_as(s)",
        "s.flatten().softmax(0).view_as(s)",
    ),
    Mutant("softmax_query_axis", {AXIS: "dim=-2"} | LOW_FILL),
    *mutants("softmax_wrong_axis", *(a | row for row in FINITE for a in (HEAD_AXIS, BATCH_AXIS))),
    *scales("scores_ignored", " * 0.0"),
    *shares(
        "softmax_missing",
        "s",
        "s.masked_fill(s.isneginf(), 0.0)",
        "s / s.sum(-1, keepdim=True)",
        "(z := s.masked_fill(s.isneginf(), 0.0)) / z.sum(-1, keepdim=True)",
        "s.exp()",
        "s.sigmoid()",
    ),
    *roles("values_wrong_source", "qkk", "qkq"),
    *roles("scores_wrong_source", "qqv", "kkv", "qvv"),
    # The copy of window_mask refuses no number of queries.
    Mutant("qkv_order", insert_first("q, k, v = k, q, v") | RIGHT_BAND),
    *roles("qkv_order", "qvk", "vkq", "kvq"),
    Mutant("qkv_order", insert_first("q, k, v = v, q, k") | RIGHT_BAND),
    *mutants("output_rounded", *(f"({OUT}).round(decimals={n})" for n in (4, 3, 2)), replacing=OUT),
    *mutants(
        "argument_unchecked",
        {"if window < 1:": "if False:"},
        {"if T_q > T_k:": "if False:"},
        {"if window < 1:": "if False:", "if T_q > T_k:": "if False:"},
        {QUERIES_REFUSED: ('RuntimeError(f"start ({T_k - T_q}) must be within [0, {T_k}]")')},
    ),
    Mutant("mask_not_bool", masks("{0}.float()")),
    Mutant("mask_not_bool", masks("{0}.long()")),
    Mutant("mask_not_bool", masks("{0}.to(torch.uint8)")),
    Mutant("mask_not_bool", masks("{0}.double()")),
    Mutant("mask_not_bool", masks("{0}.int()")),
    Mutant(
        "mask_not_bool",
        masks('torch.zeros(T_q, T_k, device=device).masked_fill(~{0}, float("-inf"))'),
    ),
    Mutant("axes_turned", "q @ k.permute(*reversed(range(k.dim())))", replacing=PRODUCT),
    *mutants(
        "hard_coded_shape",
        "q @ k.transpose(1, 2)",
        "q @ k.transpose(2, 3)",
        "torch.bmm(q, k.mT)",
        axes_unpacked(3),
        axes_unpacked(4),
        replacing=PRODUCT,
    ),
    *shares("gradient_cut", "(s - s.logsumexp(-1, keepdim=True).detach()).exp()"),
    Mutant("gradient_cut", "q.detach() @ k", replacing="q @ k"),
    Mutant("gradient_cut", "q @ k.detach()", replacing="q @ k"),
    *mutants(
        "gradient_cut",
        "weights @ v.detach()",
        "(weights @ v).detach()",
        "weights.detach() @ v",
        replacing=OUT,
    ),
    Mutant("gradient_cut", "scores.detach().masked_fill", replacing="scores.masked_fill"),
    *mutants(
        "input_mutated",
        f"out = {OUT}\n    q.mul_(2.0)\n    return out",
        f"out = {OUT}\n    k.mul_(2.0)\n    return out",
        f"out = {OUT}\n    v.mul_(2.0)\n    return out",
        replacing=f"return {OUT}",
    ),
    Mutant("hard_coded_dtype", insert_first("q, k, v = q.float(), k.float(), v.float()")),
    Mutant("hard_coded_dtype", insert_first("q, k, v = q.double(), k.double(), v.double()")),
    Mutant("hard_coded_device", MASK_ON_CPU),
    Mutant("hard_coded_device", ARGUMENTS_ON_CPU),
    Mutant("hard_coded_device", MASK_ON_CPU | ARGUMENTS_ON_CPU),
    *answers("({0},) * 2"),
    *answers("{0}.tolist()"),
    *answers("{0}.detach().cpu().numpy()"),
    *answers("None"),
    Mutant("interface", {"def window_mask(": "def mask_of("} | RIGHT_BAND),
    Mutant("interface", "def attention(", replacing=DEF_LOCAL),
    Mutant(
        "interface",
        {
            "def window_mask(T_q: int, T_k: int, window: int,": "def window_mask(n, m, w,",
            "if window < 1:": "T_q, T_k, window = n, m, w\n    if window < 1:",
        },
    ),
    Mutant(
        "interface",
        {f"{DEF_LOCAL}q: torch.Tensor,": f"{DEF_LOCAL}queries,"} | insert_first("q = queries"),
    ),
    Mutant("keys_not_transposed", "q @ k", replacing=PRODUCT),
    Mutant("values_transposed", f"{OUT}.transpose(-2, -1)", replacing=OUT),
    *bands(
        "window_halved",
        {NOT_FAR: "key >= query - window // 2"},
        {NOT_FAR: "key > query - max(window // 2, 1)"},
    ),
    Mutant(
        "values_width",
        f"out = torch.zeros_like(q)\n    out[:] = {OUT}\n    return out",
        replacing=f"return {OUT}",
    ),
    Mutant("hard_coded_dtype", "return weights.half().to(v) @ v", replacing=f"return {OUT}"),
)


def constant_scale(number):
    return Mutant("scale_constant", f" * {number}", replacing=SCALE)


def weak_fill(number):
    return Mutant("mask_weak_fill", fill_text(-number), replacing=HIDDEN)


def weak_summand(number):
    return Mutant("mask_weak_fill", added_mask_text(-number), replacing=HIDDEN)


def fill_below_all(number):
    return Mutant("mask_weak_fill", fill_text(BELOW_ALL.format(number)), replacing=HIDDEN)


# parametric mutants: the number can have any value
FAMILIES = (
    ("scale_constant", constant_scale, SCALES_TRIED),
    ("mask_weak_fill", weak_fill, FILLS_TRIED),
    ("mask_weak_fill", weak_summand, FILLS_TRIED),
    ("mask_weak_fill", fill_below_all, (0.02, 8.0)),
)
