"""Wrong attempts at the attention scores, each an edit of the reference.

attend calls attention_scores and attention_weights, so an edit of one of these changes both. If
one of the two alone is wrong, a second change writes the right text into attend.
"""

from manyheads.checks import Mutant

from ._mutants import (
    KEYS_NOT_TRANSPOSED,
    SCALES_TRIED,
    SCORES_WRONG_SOURCE,
    mutants,
)

# Texts of the reference.
PRODUCT = "q @ k.transpose(-2, -1)"
SCALE = " / math.sqrt(q.shape[-1])"
SCORES = f"{PRODUCT}{SCALE}"
SHARES = "torch.softmax(scores, dim=-1)"
SELF_PRODUCT = "x @ x.transpose(-2, -1)"
SOFTMAX_OF_X, SOFTMAX_OF_SCORES = "torch.softmax(x", "torch.softmax(scores"
SCORES_CALLED = "attention_scores(q, k)"  # in attend
WEIGHTS_CALLED = "attention_weights(attention"
ATTENDED = f"attention_weights({SCORES_CALLED}) @ v"
# The first text of each function.
FIRST = {
    "simplified_attention": "weights = torch",
    "attention_scores": "return q",
    "attention_weights": "return torch",
    "attend": "return attention_weights(",
}
RESULT = {
    "simplified_attention": "weights @ x",
    "attention_scores": SCORES,
    "attention_weights": SHARES,
    "attend": ATTENDED,
}
ARGUMENTS = {
    "simplified_attention": "x",
    "attention_scores": "qk",
    "attention_weights": ["scores"],
    "attend": "qkv",
}
# The change that keeps attend right if this function is wrong.
RIGHT_IN_ATTEND = {
    "simplified_attention": {},
    "attention_scores": {SCORES_CALLED: SCORES},
    "attention_weights": {WEIGHTS_CALLED: "(lambda s: s.softmax(-1))(attention"},
    "attend": {},
}


def scales(id_, *texts):
    """Return mutants with another scale: in both functions, in attend, in attention_scores."""
    listed = []
    for text in texts:
        wrong_scale = {SCALE: text}
        in_attend = {SCORES_CALLED: f"{PRODUCT}{text}"}
        listed += [wrong_scale, in_attend, wrong_scale | RIGHT_IN_ATTEND["attention_scores"]]
    return mutants(id_, *listed)


def scales_in_both(id_, *texts):
    return mutants(id_, *texts, replacing=SCALE)


def scales_in_attend(id_, *texts):
    return mutants(id_, *(f"{PRODUCT}{text}" for text in texts), replacing=SCORES_CALLED)


def shared_by_x(text):
    return {SOFTMAX_OF_X: f"(lambda s, dim: {text})(x"}


def shared_by_scores(text):
    return {SOFTMAX_OF_SCORES: f"(lambda s, dim: {text})(scores"}


def shared_everywhere(text):
    return shared_by_x(text) | shared_by_scores(text)


def shares(id_, *texts):
    """Return mutants that turn scores s into something else than a softmax over the keys.

    They are wrong everywhere, in simplified_attention, in the two functions that follow each other,
    in attend alone, and in attention_weights alone.
    """
    listed = []
    for text in texts:
        listed += [
            shared_everywhere(text),
            shared_by_x(text),
            shared_by_scores(text),
            {WEIGHTS_CALLED: f"(lambda s: {text})(attention"},
            shared_by_scores(text) | RIGHT_IN_ATTEND["attention_weights"],
        ]
    return mutants(id_, *listed)


def roles(id_, *orders):
    """Return mutants of attend with other tensors as queries, keys and values."""
    texts = [f"q, k, v = {', '.join(order)}\n    {FIRST['attend']}" for order in orders]
    return mutants(id_, *texts, replacing=FIRST["attend"])


def argument_edit(function, template):
    """Return the edit by which a function changes its arguments, {0}, at its beginning."""
    names = ARGUMENTS[function]
    changed = ", ".join(template.format(name) for name in names)
    return {FIRST[function]: f"{', '.join(names)} = {changed}\n    {FIRST[function]}"}


def prepared_in_all(template):
    changes = {}
    for function in FIRST:
        changes |= argument_edit(function, template)
    return changes


def each_prepared(template):
    """Return for each function the edit by which it alone changes its arguments."""
    return [argument_edit(function, template) | RIGHT_IN_ATTEND[function] for function in FIRST]


def return_edit(function, template):
    """Return the edit by which a function returns something else than its answer, {0}."""
    return {f"return {RESULT[function]}": f"return {template.format(RESULT[function])}"}


def returned_by_all(template):
    changes = {}
    for function in FIRST:
        changes |= return_edit(function, template)
    return changes


def rows_alone(function, number, row):
    """Return the edit by which an answer has so many rows; its other rows are zero."""
    lines = (
        f"out = {RESULT[function]}",
        "rows = torch.zeros_like(out)",
        f"for i in range({number}):",
        f"    rows[{row}] = out[{row}]",
        "return rows",
    )
    return {f"return {RESULT[function]}": "\n    ".join(lines)}


def rows_alone_in_all(number, row="..., i, :"):
    changes = {}
    for function in FIRST:
        changes |= rows_alone(function, number, row)
    return changes


def rounding_mutants(function):
    return mutants(
        "output_rounded",
        *(return_edit(function, f"({{0}}).round(decimals={number})") for number in (4, 3, 2)),
    )


def product_edit(text):
    """Return the edit by which all scores are this product of queries {0} and keys {1}."""
    return {PRODUCT: text.format("q", "k"), SELF_PRODUCT: text.format("x", "x")}


def axes_unpacked(number, name, line):
    """Return an edit that reads the sizes of exactly so many axes."""
    message = f"not enough values to unpack (expected {number}, got {{{name}.dim()}})"
    return {
        line: f'if {name}.dim() != {number}:\n        raise ValueError(f"{message}")\n    {line}'
    }


def q_unpacked(number):
    return axes_unpacked(number, "q", "return q")


def x_unpacked(number):
    return axes_unpacked(number, "x", "weights = torch")


def divided_afterwards(scale="math.sqrt(q.shape[-1])"):
    return {f"{SCORES_CALLED})": f"{SCORES_CALLED}) / {scale}"}


SUMS = (
    "s / s.abs().sum(-1, keepdim=True)",
    "s.abs() / s.abs().sum(-1, keepdim=True)",
    "s / s.sum(-2, keepdim=True)",
    "s / s.sum((-2, -1), keepdim=True)",
    "s / s.sum()",
    "s / s.sum(1, keepdim=True)",
    "s / s.sum(0, keepdim=True)",
)
SUM_OF_SIZES, SUM_ALL = SUMS[0], SUMS[4]
EXP, EXP_SHIFTED = "s.exp()", "(s - s.amax(-1, keepdim=True)).exp()"
IMPLICIT = "s.softmax(0 if s.dim() == 3 else 1)"  # functional.softmax without an axis
DETACHED_SUM = "(s - s.logsumexp(-1, keepdim=True).detach()).exp()"
HEADS, HEADS_OR_1 = (f"(q.shape[-3] if q.dim() > {axes} else 1)" for axes in (3, 2))
SCALED_AFTERWARDS = {SHARES: f"{SHARES} / math.sqrt(scores.shape[-1])"}
ON_CPU = "{0} + torch.zeros({0}.shape, dtype={0}.dtype)"
QUERIES_AND_KEYS_COPIED = {SCORES_CALLED: "attention_scores(q.clone(), k.clone())"}

MUTANTS = (
    *scales("scale_missing", ""),
    *scales("scale_no_sqrt", " / q.shape[-1]"),
    *scales("scale_multiplied", " * math.sqrt(q.shape[-1])", " * q.shape[-1]"),
    *mutants(
        "scale_not_due",
        f"{SELF_PRODUCT} / math.sqrt(x.shape[-1])",
        f"{SELF_PRODUCT} / x.shape[-1]",
        f"{SELF_PRODUCT} / math.sqrt(x.shape[-2])",
        f"{SELF_PRODUCT} * math.sqrt(x.shape[-1])",
        replacing=SELF_PRODUCT,
    ),
    *shares(
        "softmax_query_axis",
        "s.softmax(-2)",
        "(e := (s - s.amax(-1, keepdim=True)).exp()) / e.sum(-2, keepdim=True)",
        "s.softmax(1)",
    ),
    *shares("softmax_wrong_axis", "s.softmax(0)"),
    *shares("scores_ignored", "(s * 0.0).softmax(-1)"),
    *shares("softmax_missing", "s + 0.0", "s / s.sum(-1, keepdim=True)"),
    *shares(
        "softmax_wrong_axis",
        "s.flatten(-2).softmax(-1).view_as(s)",
        "s.flatten().softmax(0).view_as(s)",
    ),
    Mutant("softmax_query_axis", shared_everywhere("s.softmax(2)")),
    Mutant("softmax_wrong_axis", shared_everywhere(IMPLICIT)),
    Mutant("softmax_wrong_axis", shared_everywhere("s.softmax(-3)")),
    Mutant("softmax_wrong_axis", shared_everywhere("s.softmax(1)")),
    Mutant("softmax_wrong_axis", shared_everywhere("s.softmax(2)")),
    Mutant("softmax_wrong_axis", shared_by_x(IMPLICIT)),
    Mutant("softmax_wrong_axis", shared_by_x("s.softmax(1)")),
    Mutant("softmax_wrong_axis", shared_by_scores(IMPLICIT)),
    Mutant("softmax_wrong_axis", shared_by_scores("s.softmax(-3)")),
    Mutant("softmax_wrong_axis", shared_by_scores("s.softmax(1)")),
    *mutants("softmax_missing", *map(shared_everywhere, (*SUMS, EXP, EXP_SHIFTED))),
    *mutants("softmax_missing", *map(shared_by_scores, (EXP, EXP_SHIFTED, *SUMS))),
    *mutants("softmax_missing", *map(shared_by_x, (EXP, EXP_SHIFTED, SUM_OF_SIZES, SUM_ALL))),
    *roles("values_wrong_source", "qkk", "qkq"),
    *SCORES_WRONG_SOURCE[:2],
    *roles("scores_wrong_source", "qqv", "kkv", "qvv"),
    Mutant("scale_after_softmax", {SCALE: ""} | divided_afterwards()),
    Mutant("scale_after_softmax", divided_afterwards()),
    Mutant("scale_after_softmax", {SCALE: ""} | SCALED_AFTERWARDS),
    Mutant("scale_after_softmax", SCALED_AFTERWARDS),
    Mutant(
        "scale_after_softmax",
        f"{PRODUCT}) / math.sqrt(q.shape[-1])",
        replacing=f"{SCORES_CALLED})",
    ),
    Mutant("scale_twice", f"attention_scores(q{SCALE}, k)) @ v", replacing=f"{SCORES_CALLED}) @ v"),
    Mutant("scale_twice", " / q.shape[-1]", replacing=SCALE),
    Mutant("scale_twice", {SCALE: " / q.shape[-1]", SCORES_CALLED: SCORES}),
    *scales(
        "scale_precedence",
        " / q.shape[-1] ** 1 / 2",
        " / (q.shape[-1] ** 1 / 2)",
        " / max(q.shape[-1] // 2, 1)",
        " * q.shape[-1] ** 1 / 2",
    ),
    *scales("scale_sqrt_tokens", " / math.sqrt(k.shape[-2])", " / math.sqrt(q.shape[-2])"),
    *scales("scale_tokens", " / q.shape[-2]"),
    *scales_in_both(
        "scale_wrong_axis",
        f" / math.sqrt{HEADS}",
        f" / math.sqrt{HEADS_OR_1}",
        " / math.sqrt(q.shape[-3])",
        " / math.sqrt(q.shape[1])",
        " / math.sqrt(len(q))",
    ),
    *scales_in_attend("scale_wrong_axis", " / math.sqrt(v.shape[-1])"),
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
    *rounding_mutants("simplified_attention"),
    *rounding_mutants("attention_scores"),
    *rounding_mutants("attention_weights"),
    *rounding_mutants("attend"),
    *scales_in_both("scale_sqrt_tokens", " / math.sqrt(q.shape[1])"),
    *scales_in_both(
        "scale_sqrt_c",
        f" / math.sqrt(q.shape[-1] * {HEADS})",
        f" / math.sqrt(q.shape[-1] * {HEADS_OR_1})",
        " / math.sqrt(q.shape[-1] * q.shape[-3])",
        " / math.sqrt(q.shape[-1] * q.shape[1])",
    ),
    *scales_in_both("scale_constant", *(f" / {number} ** 0.5" for number in (8, 64, 2, 4, 768))),
    *scales_in_attend("scale_constant", *(f" / {number} ** 0.5" for number in (8, 64, 2, 4))),
    *roles("qkv_order", "kqv", "qvk", "vkq", "kvq", "vqk"),
    Mutant("qkv_order", "k @ q.transpose", replacing="q @ k.transpose"),
    Mutant("axes_turned", product_edit("{0} @ {1}.permute(*reversed(range({1}.dim())))")),
    *mutants(
        "hard_coded_shape",
        product_edit("{0} @ {1}.t()"),
        product_edit("{0} @ {1}.transpose(0, 1)"),
        product_edit("{0} @ {1}.transpose(1, 2)"),
        product_edit("{0} @ {1}.transpose(2, 3)"),
        product_edit("{0} @ {1}.permute(0, 2, 1)"),
        product_edit("{0} @ {1}.permute(0, 1, 3, 2)"),
        product_edit("torch.bmm({0}, {1}.mT)"),
        product_edit("torch.mm({0}, {1}.mT)"),
        product_edit('torch.einsum("qc,kc->qk", {0}, {1})'),
        product_edit('torch.einsum("bqc,bkc->bqk", {0}, {1})'),
        product_edit('torch.einsum("bhqc,bhkc->bhqk", {0}, {1})'),
        q_unpacked(2) | x_unpacked(2),
        q_unpacked(3) | x_unpacked(3),
        q_unpacked(4) | x_unpacked(4),
    ),
    Mutant("axes_turned", "x @ x.permute(*reversed(range(x.dim())))", replacing=SELF_PRODUCT),
    *mutants(
        "hard_coded_shape",
        "x @ x.t()",
        "torch.mm(x, x.mT)",
        "x @ x.transpose(0, 1)",
        "x @ x.transpose(1, 2)",
        "torch.bmm(x, x.mT)",
        replacing=SELF_PRODUCT,
    ),
    Mutant("hard_coded_shape", x_unpacked(3)),
    *mutants("hard_coded_shape", *map(rows_alone_in_all, (6, 4, 3, 2, 8))),
    *mutants("hard_coded_shape", rows_alone_in_all(2, "i"), rows_alone_in_all(1, "i")),
    Mutant("hard_coded_shape", returned_by_all("({0}).view(2, 64, -1, 64)")),
    Mutant("hard_coded_shape", return_edit("simplified_attention", "({0}).view(2, 64, -1, 64)")),
    Mutant("hard_coded_shape", rows_alone("simplified_attention", 6, "..., i, :")),
    Mutant("gradient_cut", "weights.detach() @ x", replacing="weights @ x"),
    Mutant("gradient_cut", "x @ x.detach().transpose(-2, -1)", replacing=SELF_PRODUCT),
    Mutant("gradient_cut", "x.detach() @ x.transpose(-2, -1)", replacing=SELF_PRODUCT),
    Mutant("gradient_cut", "weights @ x.detach()", replacing="weights @ x"),
    Mutant("gradient_cut", "q.detach() @ k.transpose(-2, -1)", replacing=PRODUCT),
    Mutant("gradient_cut", "q @ k.detach().transpose(-2, -1)", replacing=PRODUCT),
    Mutant("gradient_cut", "@ v.detach()", replacing="@ v"),
    Mutant(
        "gradient_cut",
        {SCORES: f"({SCORES}).detach()", SOFTMAX_OF_SCORES: f"{SOFTMAX_OF_SCORES}.detach()"},
    ),
    Mutant("gradient_cut", f"{SHARES}.detach()", replacing=SHARES),
    Mutant("gradient_cut", returned_by_all("({0}).detach()")),
    Mutant("gradient_cut", shared_everywhere(DETACHED_SUM)),
    Mutant("gradient_cut", shared_by_scores(DETACHED_SUM)),
    Mutant("gradient_cut", shared_by_x(DETACHED_SUM)),
    # Queries and keys in attention_scores alone.
    *mutants(
        "input_mutated",
        *(
            {f"return {SCORES}": f"{name}.mul_(2.0)\n    return {SCORES} / 2.0"}
            | QUERIES_AND_KEYS_COPIED
            for name in "qk"
        ),
    ),
    Mutant(
        "input_mutated", {FIRST["attend"]: f"v.add_(1.0)\n    v = v - 1.0\n    {FIRST['attend']}"}
    ),
    Mutant(
        "input_mutated",
        "x.mul_(1.5)\n    x = x / 1.5\n    weights = torch",
        replacing="weights = torch",
    ),
    Mutant(
        "input_mutated",
        {f"return {SHARES}": f"scores -= scores.amax(-1, keepdim=True)\n    return {SHARES}"}
        | RIGHT_IN_ATTEND["attention_weights"],
    ),
    Mutant("hard_coded_dtype", prepared_in_all("{0}.float()")),
    Mutant("hard_coded_dtype", prepared_in_all("{0}.double()")),
    *mutants("hard_coded_dtype", *each_prepared("{0}.float()")),
    *mutants("hard_coded_device", *each_prepared(ON_CPU)),
    *mutants("hard_coded_device", *each_prepared("{0}.cpu()")),
    Mutant("interface", return_edit("attend", "({0},) * 2")),
    Mutant("interface", return_edit("attend", "[{0}]")),
    Mutant("interface", return_edit("attend", "None")),
    Mutant("interface", return_edit("attend", "({0}).detach().cpu().numpy()")),
    *mutants(
        "interface",
        *(
            return_edit(function, "({0},) * 2") | RIGHT_IN_ATTEND[function]
            for function in list(FIRST)[:3]
        ),
    ),
    Mutant("interface", "def simple_attention", replacing="def simplified_attention"),
    Mutant("interface", "def attention", replacing="def attend"),
    Mutant(
        "interface",
        {
            "def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor)": "def attend(a, b, c)",
            FIRST["attend"]: f"q, k, v = a, b, c\n    {FIRST['attend']}",
        },
    ),
    KEYS_NOT_TRANSPOSED,
    Mutant(
        "values_transposed",
        f"attention_weights({SCORES_CALLED}) @ v.transpose(-2, -1)",
        replacing=ATTENDED,
    ),
)


def constant_scale(number):
    return Mutant("scale_constant", f" * {number}", replacing=SCALE)


def constant_scale_in_attend(number):
    return Mutant("scale_constant", f"{PRODUCT} * {number}", replacing=SCORES_CALLED)


# parametric mutants: the number can have any value
FAMILIES = (
    ("scale_constant", constant_scale, SCALES_TRIED),
    ("scale_constant", constant_scale_in_attend, SCALES_TRIED),
)
