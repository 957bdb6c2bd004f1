"""Wrong attempts at rotary positions: one implementation whose knobs turn one fault each."""

import torch

from manyheads.checks import edit

from ._masking import KEYS_NOT_TRANSPOSED, PRECEDENCE_OF_HD, SCALES_TRIED, each
from ._rotation import SPEEDS, turned
from ._scores import ANSWERS, CONSTANTS, PRODUCTS, multiplier

# The rows of pairs_to_halves, from (weight, n_head).
ROWS = {
    "right": lambda w, nh: w.reshape(nh, len(w) // nh // 2, 2, -1).transpose(1, 2).reshape(w.shape),
    "inverse": lambda w, nh: w.reshape(nh, 2, len(w) // nh // 2, -1).transpose(1, 2).reshape(w.shape),
    "whole": lambda w, nh: torch.cat([w[0::2], w[1::2]]),
    "whole_inverse": lambda w, nh: w.reshape(2, len(w) // 2, -1).transpose(0, 1).reshape(w.shape),
    "second_first": lambda w, nh: w.reshape(nh, len(w) // nh // 2, 2, -1).flip(2).transpose(1, 2).reshape(w.shape),
    "as_they_are": lambda w, nh: w + 0.0,
    "columns": lambda w, nh: torch.cat([w[:, 0::2], w[:, 1::2]], 1),
    "heads_last": lambda w, nh: w.reshape(len(w) // nh // 2, 2, nh, -1).transpose(0, 1).reshape(w.shape),
    "heads_first": lambda w, nh: w.reshape(len(w) // nh // 2, 2, nh, -1).permute(2, 1, 0, 3).reshape(w.shape),
    "heads_after": lambda w, nh: w.reshape(nh, len(w) // nh // 2, 2, -1).permute(2, 0, 1, 3).reshape(w.shape),
    "heads_as_width": lambda w, nh: w.reshape(len(w) // nh, nh // 2, 2, -1).transpose(1, 2).reshape(w.shape),
    "flipped": lambda w, nh: w.reshape(nh, len(w) // nh // 2, 2, -1).transpose(1, 2).flip(2).reshape(w.shape),
    "negated": lambda w, nh: ROWS["right"](
        torch.where(torch.arange(len(w), device=w.device)[:, None] % 2 == 1, -w, w), nh
    ),
}

FUNCTIONS = ("rotate", "rotary_scores", "pairs_to_halves")


def make(
    *,
    layout="pairs",  # of both functions, where own_layout does not say otherwise of rotary_scores; so are the next ones
    own_layout=None,
    spread=None,  # how the angles are laid out over the channels, if otherwise
    own_spread=None,
    written=None,  # how the turned channels are put back, if otherwise
    own_written=None,
    speed="right",
    own_speed=None,
    place="given",
    own_place=None,
    q_place=None,  # of the queries in rotary_scores
    k_place=None,
    sign="right",
    own_sign=None,
    k_sign=None,
    per_channel=None,  # a factor: each channel has a speed of its own
    own_per_channel=None,
    base_used="given",  # or a number
    own_base_used=None,
    turns="x",  # "": rotate turns nothing
    own_turns="qk",  # which of q and k rotary_scores turns; "vq" …
    swapped_places=False,
    odd="refused",  # "raises", "dropped", "kept", "padded"
    rows="right",
    scale="sqrt_hd",
    product="any",
    swapped=False,  # k qᵀ
    softmax=False,
    decimals=(),  # (function, decimals): what it returns is rounded
    cut=(),
    mutate=(),
    cast=None,  # (dtype, functions)
    promoted=(),  # functions whose answer has the dtype of the angles
    fixed_device=(),
    returns=None,
    without="",
    renamed="",
):
    """The exercise's names, with these faults; the defaults are right."""
    knobs = {"layout": layout, "spread": spread, "written": written, "speed": speed, "place": place, "sign": sign}
    knobs["per_channel"] = per_channel
    own = {"layout": own_layout, "spread": own_spread, "written": own_written, "speed": own_speed, "place": own_place}
    own |= {"sign": own_sign, "per_channel": own_per_channel}
    own = knobs | {name: value for name, value in own.items() if value is not None}

    def lose(name, t):
        return t.detach() if name in cut else t

    def on_its_device(name, t):
        return t + torch.zeros(t.shape, dtype=t.dtype) if name in fixed_device else t

    def rotate(x, positions, base=10000.0):
        given, hd = x, x.shape[-1]
        if hd % 2 and odd == "refused":
            raise ValueError(f"{hd} channels")
        if hd % 2 and odd == "raises":
            raise RuntimeError(f"The size of tensor a ({hd // 2 + 1}) must match the size of tensor b ({hd // 2})")
        left, x = (x[..., -1:], x[..., :-1]) if hd % 2 else (x[..., :0], x)
        used = base if base_used == "given" else base_used
        out = turned(on_its_device("rotate", lose("x", x)), positions, used, **knobs) if turns else x + 0.0
        if odd == "kept":
            out = torch.cat([out, left], -1)
        elif odd == "padded" and hd % 2:
            out = torch.nn.functional.pad(out, (0, 2))
        if "x" in mutate:
            given.mul_(2.0)
        return lose("out", out)

    def rotary_scores(q, k, q_positions, k_positions, base=10000.0):
        given = {"q": q, "k": k}
        kind = own_base_used if own_base_used is not None else base_used
        used = base if kind == "given" else kind
        if swapped_places:
            q_positions, k_positions = k_positions, q_positions
        q, k = lose("q", on_its_device("rotary_scores", q)), lose("k", k)
        if "q" in own_turns:
            q = turned(q, q_positions, used, **(own | {"place": q_place or own["place"]}))
        if "k" in own_turns:
            mine = {"place": k_place or own["place"], "sign": k_sign or own["sign"]}
            k = turned(k, k_positions, used, **(own | mine))
        out = PRODUCTS[product](*((k, q) if swapped else (q, k))) * multiplier(scale, q, k)
        for name, t in given.items():
            if name in mutate:
                t.mul_(2.0)
        return lose("scores", out.softmax(-1) if softmax else out)

    def pairs_to_halves(weight, n_head):
        out = ROWS[rows](on_its_device("pairs_to_halves", weight), n_head)
        if "weight" in mutate:
            weight.copy_(out)
        return out

    right = dict(zip(FUNCTIONS, (rotate, rotary_scores, pairs_to_halves), strict=True))

    def dressed(name):
        """The function with the faults that any function can have."""

        def run(*args):
            if cast and name in cast[1]:
                dtype = getattr(torch, cast[0])
                args = [a.to(dtype) if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in args]
            out = right[name](*args)
            out = out.double() if name in promoted else out
            out = out.round(decimals=decimals[1]) if decimals and decimals[0] == name else out
            return ANSWERS[returns[0]](out) if returns and name == returns[1] else out

        return run

    return {name: _with_names(dressed(name), name, renamed) for name in FUNCTIONS if name != without}


def _with_names(run, name, renamed):
    if name == renamed:
        return lambda *args: run(*args)
    return {
        "rotate": lambda x, positions, base=10000.0: run(x, positions, base),
        "rotary_scores": lambda q, k, q_positions, k_positions, base=10000.0: run(q, k, q_positions, k_positions, base),
        "pairs_to_halves": lambda weight, n_head: run(weight, n_head),
    }[name]


RIGHT = {"layout": "pairs", "speed": "right", "place": "given", "sign": "right", "base_used": "given"}


def _turns(id_, **faults):
    """In both functions, in rotary_scores alone, in rotate alone."""
    yield id_, faults
    yield id_, {f"own_{knob}": value for knob, value in faults.items()}
    if faults.keys() <= RIGHT.keys():
        yield id_, {**faults, **{f"own_{knob}": RIGHT[knob] for knob in faults}}


SPEED = "base ** -(torch.arange(0, hd, 2, device=x.device, dtype=torch.float64) / hd)"
ANGLE = "positions.to(x.device)[:, None] * speed"
COS, SIN = "angle.cos().to(x.dtype)", "angle.sin().to(x.dtype)"
TURNED = "rotate(q, q_positions, base), rotate(k, k_positions, base)"
HALVES = ("half", "bfloat16")

# Edits of the reference: (id, text, its replacement).
MORE = (
    ("state_kept", SPEED, f"rotate.__dict__.setdefault(hd, {SPEED}).to(x.device)"),
    *(("hard_coded_dtype", ANGLE, f"({ANGLE}).{half}()") for half in HALVES),
    *(("hard_coded_dtype", f"{COS}, {SIN}", f"angle.cos().{half}().to(x.dtype), angle.sin().{half}().to(x.dtype)") for half in HALVES),
    ("hard_coded_shape", f"{COS}, {SIN}", f"{COS}[None, None], {SIN}[None, None]"),
    ("rope_angle", SPEED, SPEED.replace("/ hd)", "/ x.shape[1])")),
    ("rope_positions", ANGLE, "torch.arange(x.shape[1], device=x.device)[:, None] * speed"),
    ("rope_positions", TURNED, TURNED.replace("q, q_positions", "q, k_positions[: q.shape[-2]]")),
    ("rope_positions", TURNED, TURNED.replace("k_positions", "(q_positions[:1] + torch.arange(k.shape[-2], device=k.device))")),
    ("scale_rounded", "/ math.sqrt(q.shape[-1])", "// math.sqrt(q.shape[-1])"),
    ("halves_order", "weight.reshape(n_head, C // n_head // 2, 2, C_in)", "weight.reshape(C // n_head // 2, 2, n_head, C_in)"),
)  # fmt: skip

MUTANTS = (
    *_turns("rope_halves", layout="halves"),
    *_turns("rope_mixed_layouts", spread="halves"),
    *_turns("rope_mixed_layouts", layout="halves", spread="pairs"),
    ("rope_mixed_layouts", {"written": "halves"}),
    ("rope_mixed_layouts", {"layout": "halves", "written": "pairs"}),
    ("rope_mixed_layouts", {"layout": "halves", "written": "pairs", "own_layout": "pairs"}),
    *(m for speed in tuple(SPEEDS)[1:] for m in _turns("rope_angle", speed=speed)),
    *_turns("rope_angle", per_channel=1.0),
    *_turns("rope_angle", per_channel=2.0),
    *_turns("rope_sign", sign="backwards"),
    *_turns("rope_sign", sign="plus"),
    *_turns("rope_sign", sign="minus"),
    ("rope_sign", {"k_sign": "backwards"}),
    *_turns("rope_sin_cos", sign="sin_cos"),
    *_turns("rope_overwritten", sign="first_overwritten"),
    *_turns("rope_overwritten", sign="second_overwritten"),
    ("rope_missing", {"turns": "", "own_turns": ""}),
    ("rope_missing", {"turns": ""}),
    *each("rope_missing", "own_turns", "q", "k", ""),
    *(
        m
        for kind in ("counted", "counted_from_first", "sorted", "counted_down")
        for m in _turns("rope_positions", place=kind)
    ),
    *_turns("rope_positions", place="from_first"),
    *each("rope_positions", "place", "from_one"),
    *each("rope_positions", "q_place", "counted", "from_one", "from_first", "counted_down"),
    *each("rope_positions", "k_place", "counted", "from_one", "from_first", "counted_down"),
    ("rope_positions", {"swapped_places": True}),
    *(m for base in (10000.0, 1000.0, 500000.0, 100.0, 1000000.0) for m in _turns("rope_base_fixed", base_used=base)),
    *_turns("rope_angle", base_used=10000.0),  # with another base the speeds are wrong
    *each("halves_order", "rows", *tuple(ROWS)[1:]),
    *each("scale_missing", "scale", "missing"),
    *each("scale_no_sqrt", "scale", "hd"),
    *each("scale_twice", "scale", "hd"),
    *each("scale_multiplied", "scale", "times_sqrt_hd"),
    *each("scale_precedence", "scale", *PRECEDENCE_OF_HD),
    *each("scale_sqrt_tokens", "scale", "sqrt_keys", "sqrt_queries"),
    *each("scale_wrong_axis", "scale", "sqrt_heads", "sqrt_axis_1"),
    *each("scale_sqrt_c", "scale", "sqrt_c"),
    *each("scale_wrong_axis", "scale", "sqrt_axis_0", "sqrt_pairs"),
    *each("scale_rounded", "scale", "rounded_down", "rounded", "rounded_up"),
    *each("scale_constant", "scale", *(n**-0.5 for n in CONSTANTS)),
    ("qkv_order", {"swapped": True}),
    ("scores_already_shared", {"softmax": True}),
    *each("argument_unchecked", "odd", "raises", "dropped", "kept", "padded"),
    *each("output_rounded", "decimals", *((name, n) for name in FUNCTIONS for n in (4, 3, 2))),
    ("axes_turned", {"product": "T"}),
    *each("hard_coded_shape", "product", "transpose_12", "transpose_23", "bmm", "unpack_3", "unpack_4"),
    *each("gradient_cut", "cut", *((name,) for name in ("x", "out", "q", "k", "scores"))),
    *each("input_mutated", "mutate", ("x",), ("q",), ("k",), ("weight",)),
    *each("hard_coded_dtype", "cast", *(("float32", (name,)) for name in FUNCTIONS), ("float32", FUNCTIONS)),
    *each("hard_coded_dtype", "promoted", *((name,) for name in FUNCTIONS), FUNCTIONS[:2], FUNCTIONS),
    *each("hard_coded_device", "fixed_device", *((name,) for name in FUNCTIONS), FUNCTIONS[:2]),
    *each("interface", "returns", *((kind, name) for kind in ANSWERS for name in FUNCTIONS)),
    *each("interface", "without", *FUNCTIONS),
    *each("interface", "renamed", *FUNCTIONS),
    KEYS_NOT_TRANSPOSED,
    *((id_, edit(old, new)) for id_, old, new in MORE),
)

# With a number that nobody can list.
FAMILIES = (("scale_constant", lambda c: {"scale": c}, SCALES_TRIED),)
