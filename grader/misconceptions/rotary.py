"""Wrong attempts at rotary positions, each an edit of the reference.

rotary_scores calls rotate, so an edit of rotate changes both. If one of the two alone is wrong,
a copy of rotate, called `turn`, stands above rotary_scores.
"""

from manyheads.checks import Mutant

from ._mutants import (
    KEYS_NOT_TRANSPOSED,
    SCALES_TRIED,
    mutants,
)

# Texts of the reference.
WIDTH = "hd = x.shape[-1]"
REFUSED = 'raise ValueError(f"{hd} channels cannot be paired: hd should be even")'
EXPONENTS = "torch.arange(0, hd, 2, device=x.device, dtype=torch.float64)"  # 0, 2, 4, …
SPEED = f"base ** -({EXPONENTS} / hd)"
POSITIONS = "positions.to(x.device)"
ANGLE = f"{POSITIONS}[:, None] * speed"
COS, SIN = "angle.cos().to(x.dtype)", "angle.sin().to(x.dtype)"
PAIRS = "x[..., 0::2], x[..., 1::2]"
FIRST, SECOND = "a * cos - b * sin", "a * sin + b * cos"
TURNED = f"torch.stack([{FIRST}, {SECOND}], dim=-1)"
ROTATED = "turned.flatten(-2)"
CALLS = "rotate(q, q_positions, base), rotate(k, k_positions, base)"
PRODUCT, SCALE = "q @ k.transpose(-2, -1)", " / math.sqrt(q.shape[-1])"
SCORES = f"{PRODUCT}{SCALE}"
ROWS_OF_PAIRS = "weight.reshape(n_head, C // n_head // 2, 2, C_in)"
HALVES = "pairs.transpose(1, 2)"
REORDERED = f"{HALVES}.reshape(C, C_in)"
DEF_SCORES = "def rotary_scores("
# The first line of each function, its arguments of numbers, and its answer.
FIRST_LINES = {"rotate": WIDTH, "rotary_scores": "q, k = ", "pairs_to_halves": "C, C_in = "}
NUMBERS = {"rotate": "x", "rotary_scores": "qk", "pairs_to_halves": ["weight"]}
RESULTS = {"rotate": ROTATED, "rotary_scores": SCORES, "pairs_to_halves": REORDERED}

LINES_OF_ROTATE = (
    "def turn(x, positions, base):",
    WIDTH,
    f"speed = {SPEED}",
    f"angle = {ANGLE}",
    f"cos, sin = {COS}, {SIN}",
    f"a, b = {PAIRS}",
    f"turned = {TURNED}",
    f"return {ROTATED}",
)
COS_BY_CHANNEL = (
    "torch.stack([a * cos[..., 0::2] - b * sin[..., 0::2],"
    " a * sin[..., 1::2] + b * cos[..., 1::2]], dim=-1)"
)
COS_BY_HALF = (
    "torch.cat([a * cos[..., : hd // 2] - b * sin[..., : hd // 2],"
    " a * sin[..., hd // 2 :] + b * cos[..., hd // 2 :]], dim=-1)"
)
READ_AS_HALVES = {PAIRS: "x.chunk(2, dim=-1)"}
WRITTEN_AS_HALVES = {TURNED: TURNED.replace("stack", "cat"), ROTATED: "turned"}


def turned_in_scores(changes):
    """Return the edit by which rotary_scores turns with a copy of rotate, which has changes."""
    copy = "\n    ".join(LINES_OF_ROTATE)
    for old, new in changes.items():
        copy = copy.replace(old, new)
    return {DEF_SCORES: f"{copy}\n\n\n{DEF_SCORES}", CALLS: CALLS.replace("rotate", "turn")}


RIGHT_IN_SCORES = turned_in_scores({})
RIGHT_ELSEWHERE = {"rotate": RIGHT_IN_SCORES, "rotary_scores": {}, "pairs_to_halves": {}}


def turns(id_, *edits):
    """Return mutants that turn differently: in both functions, in rotary_scores, in rotate."""
    listed = []
    for changes in edits:
        listed += [changes, turned_in_scores(changes), changes | RIGHT_IN_SCORES]
    return mutants(id_, *listed)


def turns_unless_in_rotate(id_, *edits):
    listed = []
    for changes in edits:
        listed += [changes, turned_in_scores(changes)]
    return mutants(id_, *listed)


def speeds(id_, *texts):
    return turns(id_, *({SPEED: text} for text in texts))


def signs(id_, *texts):
    """Return mutants that add up a pair, a and b, in other ways."""
    return turns(id_, *({f"{FIRST}, {SECOND}": text} for text in texts))


def positions(id_, *texts):
    """Return mutants with other positions; {0} stands for those that are given."""
    return turns(id_, *({POSITIONS: f"({text.format('positions')})"} for text in texts))


def positions_of(name, *texts):
    """Return mutants of rotary_scores with other positions of the queries or of the keys."""
    old = f"({name}, {name}_positions"
    changed = (f"({name}, {text.format(f'{name}_positions')}" for text in texts)
    return mutants("rope_positions", *changed, replacing=old)


def scales(id_, *texts):
    return mutants(id_, *texts, replacing=SCALE)


def rows(id_, *texts):
    return mutants(id_, *texts, replacing=HALVES)


def odd_widths(block, result):
    """Return the edit by which rotate takes an odd number of channels."""
    return {f"{REFUSED}": block, f"return {ROTATED}": f"return {result}"}


def argument_edit(function, template):
    """Return the edit by which a function changes its arguments, {0}, at its beginning."""
    names, line = NUMBERS[function], FIRST_LINES[function]
    changed = ", ".join(template.format(name) for name in names)
    return {line: f"{', '.join(names)} = {changed}\n    {line}"}


def single_function_edits(change, *values):
    """Return the edits of each function alone, for each of these values."""
    listed = []
    for value in values:
        listed += [change(function, value) | RIGHT_ELSEWHERE[function] for function in RESULTS]
    return listed


def return_edit(function, template):
    """Return the edit by which a function returns something else than its answer, {0}."""
    return {f"return {RESULTS[function]}": f"return {template.format(RESULTS[function])}"}


def rounding_mutants(function):
    edits = (return_edit(function, f"({{0}}).round(decimals={number})") for number in (4, 3, 2))
    return mutants("output_rounded", *(edit | RIGHT_ELSEWHERE[function] for edit in edits))


def axes_unpacked(number):
    """Return an edit that reads the sizes of exactly so many axes."""
    message = f"not enough values to unpack (expected {number}, got {{q.dim()}})"
    lines = f'if q.dim() != {number}:\n        raise ValueError(f"{message}")\n    return q'
    return {"return q": lines}


def scores_written_into(name):
    return {
        "q, k = ": f"given = {name}\n    q, k = ",
        f"return {SCORES}": f"out = {SCORES}\n    given.mul_(2.0)\n    return out",
    }


COUNTED = "torch.arange(len({0}), device=x.device)"
COUNTED_IN_SCORES = "torch.arange(len({0}), device={0}.device)"
HEADS = "(q.shape[-3] if q.dim() > 3 else 1)"
ON_CPU = "{0} + torch.zeros({0}.shape, dtype={0}.dtype)"
IN_SINGLE, IN_DOUBLE = "{0}.float()", "{0}.double()"

MUTANTS = (
    *turns("rope_halves", READ_AS_HALVES | WRITTEN_AS_HALVES),
    *turns_unless_in_rotate(
        "rope_mixed_layouts",
        {ANGLE: f"torch.cat([{ANGLE}] * 2, dim=-1)", TURNED: COS_BY_CHANNEL},
        READ_AS_HALVES
        | {
            ANGLE: f"({ANGLE}).repeat_interleave(2, dim=-1)",
            TURNED: COS_BY_HALF,
            ROTATED: "turned",
        },
    ),
    Mutant("rope_mixed_layouts", WRITTEN_AS_HALVES),
    Mutant("rope_mixed_layouts", READ_AS_HALVES),
    Mutant("rope_mixed_layouts", READ_AS_HALVES | RIGHT_IN_SCORES),
    *speeds(
        "rope_angle",
        f"base ** -({EXPONENTS} / 2 / hd)",
        f"base ** -({EXPONENTS} * 2 / hd)",
        f"base ** ({EXPONENTS} / hd)",
        f"base ** -{EXPONENTS} / hd",  # brackets forgotten
        f"base ** -{EXPONENTS}",
        f"base ** -(({EXPONENTS} + 2) / hd)",
        f"base ** -(({EXPONENTS} + 1) / hd)",
        f"base ** -({EXPONENTS} / 2 / max(hd // 2 - 1, 1))",
        f"base ** (0 * {EXPONENTS})",
        f"base ** -({EXPONENTS}.flip(0) / hd)",
        f"1 / (1 + {EXPONENTS} / hd * base)",
        f"torch.exp(-{EXPONENTS} / hd)",
        f"1 / base * ({EXPONENTS} / hd)",
        f"{SPEED} * math.pi / 180",
        f"{SPEED} * 2 * math.pi",
        f"{SPEED} * math.pi",
        f"{SPEED} * 2",
        f"{SPEED} / 2",
    ),
    *turns_unless_in_rotate(
        "rope_angle",
        {EXPONENTS: EXPONENTS.replace("0, hd, 2", "hd"), TURNED: COS_BY_CHANNEL},
        {EXPONENTS: EXPONENTS.replace("0, hd, 2", "0, 2 * hd, 2"), TURNED: COS_BY_CHANNEL},
    ),
    *signs(
        "rope_sign",
        "a * cos + b * sin, b * cos - a * sin",
        "a * cos + b * sin, b * cos + a * sin",
        "a * cos - b * sin, b * cos - a * sin",
    ),
    Mutant("rope_sign", "-k_positions, base)", replacing="k_positions, base)"),
    *signs("rope_sin_cos", "a * sin - b * cos, a * cos + b * sin"),
    *signs(
        "rope_overwritten",
        f"a := {FIRST}, {SECOND}",
        f"a * cos - ({SECOND}) * sin, {SECOND}",
    ),
    Mutant("rope_missing", "return x + 0.0", replacing=f"return {ROTATED}"),
    Mutant("rope_missing", {f"return {ROTATED}": "return x + 0.0"} | RIGHT_IN_SCORES),
    *mutants(
        "rope_missing",
        "rotate(q, q_positions, base), k",
        "q, rotate(k, k_positions, base)",
        "q, k",
        replacing=CALLS,
    ),
    *positions(
        "rope_positions",
        COUNTED,
        f"{{0}}[:1].to(x.device) + {COUNTED}",
        "{0}.sort().values.to(x.device)",
        f"{COUNTED}.flip(0)",
        "({0} - {0}[:1]).to(x.device)",
    ),
    Mutant("rope_positions", f"({POSITIONS} + 1)", replacing=POSITIONS),
    *positions_of(
        "q", COUNTED_IN_SCORES, "{0} + 1", "{0} - {0}[:1]", f"{COUNTED_IN_SCORES}.flip(0)"
    ),
    *positions_of(
        "k", COUNTED_IN_SCORES, "{0} + 1", "{0} - {0}[:1]", f"{COUNTED_IN_SCORES}.flip(0)"
    ),
    Mutant(
        "rope_positions",
        "rotate(q, k_positions, base), rotate(k, q_positions, base)",
        replacing=CALLS,
    ),
    *speeds(
        "rope_base_fixed",
        SPEED.replace("base", "10000.0"),
        SPEED.replace("base", "1000.0"),
        SPEED.replace("base", "500000.0"),
        SPEED.replace("base", "100.0"),
        SPEED.replace("base", "1000000.0"),
    ),
    *rows(
        "halves_order",
        "weight.reshape(n_head, 2, C // n_head // 2, C_in).transpose(1, 2)",
        "torch.cat([weight[0::2], weight[1::2]])",
        "weight.reshape(2, C // 2, C_in).transpose(0, 1)",
        "pairs.flip(2).transpose(1, 2)",
        "(weight + 0.0)",
        "weight.reshape(C // n_head // 2, 2, n_head, C_in).transpose(0, 1)",
        "weight.reshape(C // n_head // 2, 2, n_head, C_in).permute(2, 1, 0, 3)",
        "pairs.transpose(1, 2).flip(2)",
    ),
    *rows("halves_columns", "torch.cat([weight[:, 0::2], weight[:, 1::2]], 1)"),
    # the right rows, one half with another sign
    *rows(
        "halves_sign",
        "torch.stack([pairs[:, :, 0], -pairs[:, :, 1]], 1)",
        "torch.stack([-pairs[:, :, 1], pairs[:, :, 0]], 1)",
    ),
    Mutant(
        "halves_order", "weight.reshape(C // n_head, n_head // 2, 2, -1)", replacing=ROWS_OF_PAIRS
    ),
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
    *scales("scale_sqrt_tokens", " / math.sqrt(k.shape[-2])", " / math.sqrt(q.shape[-2])"),
    *scales("scale_tokens", " / q.shape[-2]"),
    *scales("scale_wrong_axis", f" / math.sqrt{HEADS}", " / math.sqrt(q.shape[1])"),
    *scales("scale_sqrt_c", f" / math.sqrt({HEADS} * q.shape[-1])"),
    *scales("scale_wrong_axis", " / math.sqrt(len(q))", " / math.sqrt(q.shape[-1] // 2)"),
    *scales(
        "scale_rounded",
        " / math.floor(math.sqrt(q.shape[-1]))",
        " / round(math.sqrt(q.shape[-1]))",
        " / math.ceil(math.sqrt(q.shape[-1]))",
    ),
    *scales("scale_constant", *(f" / {number} ** 0.5" for number in (8, 64, 2, 4, 768))),
    Mutant("qkv_order", "k @ q.transpose", replacing="q @ k.transpose"),
    Mutant("scores_already_shared", f"return ({SCORES}).softmax(-1)", replacing=f"return {SCORES}"),
    Mutant(
        "argument_unchecked",
        'raise RuntimeError(f"The size of tensor a ({hd // 2 + 1}) must match the size of tensor b '
        '({hd // 2})")',
        replacing=REFUSED,
    ),
    *mutants(
        "argument_unchecked",
        {REFUSED: "x, hd = x[..., :-1], hd - 1"},
        odd_widths(
            "x, odd, hd = x[..., :-1], x[..., -1:], hd - 1\n    else:\n        odd = x[..., :0]",
            f"torch.cat([{ROTATED}, odd], -1)",
        ),
        odd_widths(
            "x, hd, padded = x[..., :-1], hd - 1, 2\n    else:\n        padded = 0",
            f"torch.nn.functional.pad({ROTATED}, (0, padded))",
        ),
    ),
    *rounding_mutants("rotate"),
    *rounding_mutants("rotary_scores"),
    *rounding_mutants("pairs_to_halves"),
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
    Mutant("gradient_cut", {PAIRS: PAIRS.replace("x", "x.detach()")} | RIGHT_IN_SCORES),
    Mutant("gradient_cut", "rotate(q.detach(), q_", replacing="rotate(q, q_"),
    Mutant("gradient_cut", "rotate(k.detach(), k_", replacing="rotate(k, k_"),
    Mutant("gradient_cut", return_edit("rotary_scores", "({0}).detach()")),
    Mutant(
        "input_mutated",
        {f"return {ROTATED}": f"x.mul_(2.0)\n    return {ROTATED}"} | RIGHT_IN_SCORES,
    ),
    Mutant("input_mutated", scores_written_into("q")),
    Mutant("input_mutated", scores_written_into("k")),
    Mutant("input_mutated", return_edit("pairs_to_halves", "weight.copy_({0}).clone()")),
    *mutants("hard_coded_dtype", *single_function_edits(argument_edit, IN_SINGLE)),
    Mutant(
        "hard_coded_dtype",
        argument_edit("rotate", IN_SINGLE)
        | argument_edit("rotary_scores", IN_SINGLE)
        | argument_edit("pairs_to_halves", IN_SINGLE),
    ),
    *mutants("hard_coded_dtype", *single_function_edits(argument_edit, IN_DOUBLE)),
    Mutant(
        "hard_coded_dtype",
        argument_edit("rotate", IN_DOUBLE) | argument_edit("rotary_scores", IN_DOUBLE),
    ),
    Mutant(
        "hard_coded_dtype",
        argument_edit("rotate", IN_DOUBLE)
        | argument_edit("rotary_scores", IN_DOUBLE)
        | argument_edit("pairs_to_halves", IN_DOUBLE),
    ),
    *mutants("hard_coded_device", *single_function_edits(argument_edit, ON_CPU)),
    Mutant(
        "hard_coded_device",
        argument_edit("rotate", ON_CPU) | argument_edit("rotary_scores", ON_CPU),
    ),
    *mutants(
        "interface",
        *single_function_edits(
            return_edit, "({0},) * 2", "({0}).tolist()", "({0}).detach().cpu().numpy()", "None"
        ),
    ),
    Mutant("interface", {"def rotate(": "def rope("} | RIGHT_IN_SCORES),
    Mutant("interface", "def scores(", replacing=DEF_SCORES),
    Mutant("interface", "def reorder(", replacing="def pairs_to_halves("),
    Mutant(
        "interface",
        {
            "def rotate(x: torch.Tensor, positions: torch.Tensor, base: float = 10000.0)": (
                "def rotate(t, p, b=10000.0)"
            ),
            WIDTH: f"x, positions, base = t, p, b\n    {WIDTH}",
        }
        | RIGHT_IN_SCORES,
    ),
    Mutant(
        "interface",
        {
            f"{DEF_SCORES}\n    q: torch.Tensor,": f"{DEF_SCORES}\n    queries,",
            "q, k = ": "q = queries\n    q, k = ",
        },
    ),
    Mutant(
        "interface",
        {
            "def pairs_to_halves(weight: torch.Tensor, n_head: int)": "def pairs_to_halves(w, n)",
            "C, C_in = ": "weight, n_head = w, n\n    C, C_in = ",
        },
    ),
    KEYS_NOT_TRANSPOSED,
    Mutant("state_kept", f"rotate.__dict__.setdefault(hd, {SPEED}).to(x.device)", replacing=SPEED),
    Mutant("hard_coded_dtype", f"({ANGLE}).half()", replacing=ANGLE),
    Mutant("hard_coded_dtype", f"({ANGLE}).bfloat16()", replacing=ANGLE),
    *mutants(
        "hard_coded_dtype",
        "angle.cos().half().to(x.dtype), angle.sin().half().to(x.dtype)",
        "angle.cos().bfloat16().to(x.dtype), angle.sin().bfloat16().to(x.dtype)",
        replacing=f"{COS}, {SIN}",
    ),
    Mutant("hard_coded_shape", f"{COS}[None, None], {SIN}[None, None]", replacing=f"{COS}, {SIN}"),
    Mutant("rope_angle", SPEED.replace("/ hd)", "/ x.shape[1])"), replacing=SPEED),
    Mutant(
        "rope_positions",
        "torch.arange(x.shape[1], device=x.device)[:, None] * speed",
        replacing=ANGLE,
    ),
    *mutants(
        "rope_positions",
        CALLS.replace("q, q_positions", "q, k_positions[: q.shape[-2]]"),
        CALLS.replace(
            "k_positions", "(q_positions[:1] + torch.arange(k.shape[-2], device=k.device))"
        ),
        replacing=CALLS,
    ),
    Mutant("scale_rounded", SCALE.replace("/", "//"), replacing=SCALE),
    Mutant(
        "halves_order",
        "weight.reshape(C // n_head // 2, 2, n_head, C_in)",
        replacing=ROWS_OF_PAIRS,
    ),
)


def constant_scale(number):
    return Mutant("scale_constant", f" * {number}", replacing=SCALE)


# parametric mutants: the number can have any value
FAMILIES = (("scale_constant", constant_scale, SCALES_TRIED),)
