"""Wrong attempts at rotary positions: one implementation whose knobs turn one fault each."""

import math

import torch

from ._masking import SCALES_TRIED, each

# The speeds of the pairs, from (pair: 0 … hd/2 − 1, hd, base).
SPEEDS = {
    "right": lambda pair, hd, base: base ** (-2 * pair / hd),
    "no_two": lambda pair, hd, base: base ** (-pair / hd),
    "twice": lambda pair, hd, base: base ** (-4 * pair / hd),
    "positive": lambda pair, hd, base: base ** (2 * pair / hd),
    "no_width": lambda pair, hd, base: base ** (-2 * pair),
    "from_one": lambda pair, hd, base: base ** (-2 * (pair + 1) / hd),
    "to_the_end": lambda pair, hd, base: base ** (-pair / max(hd // 2 - 1, 1)),
    "one_speed": lambda pair, hd, base: base ** (0 * pair),
    "slow_first": lambda pair, hd, base: base ** (-2 * pair.flip(0) / hd),
    "linear": lambda pair, hd, base: 1 / (1 + 2 * pair / hd * base),
    "natural": lambda pair, hd, base: torch.exp(-2 * pair / hd),
    "over_base": lambda pair, hd, base: 1 / base * (2 * pair / hd),
    "degrees": lambda pair, hd, base: base ** (-2 * pair / hd) * math.pi / 180,
    "turns": lambda pair, hd, base: base ** (-2 * pair / hd) * 2 * math.pi,
    "half_turns": lambda pair, hd, base: base ** (-2 * pair / hd) * math.pi,
}

# The positions that are used, from those that are given.
POSITIONS = {
    "given": lambda positions: positions,
    "counted": lambda positions: torch.arange(len(positions), device=positions.device),
    "counted_from_first": lambda positions: positions[:1] + torch.arange(len(positions), device=positions.device),
    "from_first": lambda positions: positions - positions[:1],
    "from_one": lambda positions: positions + 1,
    "sorted": lambda positions: positions.sort().values,
    "counted_down": lambda positions: torch.arange(len(positions), device=positions.device).flip(0),
}

# What each channel's partner is, with its sign.
PARTNERS = {
    "pairs": lambda x: torch.stack([-x[..., 1::2], x[..., 0::2]], -1).flatten(-2),
    "halves": lambda x: torch.cat([-x[..., x.shape[-1] // 2 :], x[..., : x.shape[-1] // 2]], -1),
}
SPREAD = {
    "pairs": lambda angle: angle.repeat_interleave(2, -1),
    "halves": lambda angle: torch.cat([angle, angle], -1),
}

# How channel and partner are added up, (x, partner, cos, sin).
SIGNS = {
    "right": lambda x, y, cos, sin: x * cos + y * sin,
    "backwards": lambda x, y, cos, sin: x * cos - y * sin,
    "plus": lambda x, y, cos, sin: x * cos + flipped(y, 0) * sin,
    "minus": lambda x, y, cos, sin: x * cos + flipped(y, 1) * sin,
    "sin_cos": lambda x, y, cos, sin: x * sin + y * cos,
}

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

# What q kᵀ is multiplied by. A number stands for itself.
SCALES = {
    "sqrt_hd": lambda q, k: q.shape[-1] ** -0.5,
    "missing": lambda q, k: 1.0,
    "hd": lambda q, k: 1 / q.shape[-1],
    "times_sqrt_hd": lambda q, k: q.shape[-1] ** 0.5,
    "sqrt_c": lambda q, k: (q.shape[-1] * (q.shape[-3] if q.dim() > 3 else 1)) ** -0.5,
    "sqrt_heads": lambda q, k: (q.shape[-3] if q.dim() > 3 else 1) ** -0.5,
    "sqrt_axis_1": lambda q, k: q.shape[1] ** -0.5,
    "sqrt_axis_0": lambda q, k: q.shape[0] ** -0.5,
    "sqrt_pairs": lambda q, k: (q.shape[-1] // 2) ** -0.5,
    "sqrt_queries": lambda q, k: q.shape[-2] ** -0.5,
    "sqrt_keys": lambda q, k: k.shape[-2] ** -0.5,
    "rounded_down": lambda q, k: 1 / math.floor(q.shape[-1] ** 0.5),
    "rounded": lambda q, k: 1 / round(q.shape[-1] ** 0.5),
    "rounded_up": lambda q, k: 1 / math.ceil(q.shape[-1] ** 0.5),
}
PRODUCTS = {
    "any": lambda q, k: q @ k.mT,
    "T": lambda q, k: q @ k.permute(*reversed(range(k.dim()))),
    "transpose_12": lambda q, k: q @ k.transpose(1, 2),
    "transpose_23": lambda q, k: q @ k.transpose(2, 3),
    "bmm": lambda q, k: torch.bmm(q, k.mT),
    "unpack_3": lambda q, k: unpacked(q, 3) @ k.mT,
    "unpack_4": lambda q, k: unpacked(q, 4) @ k.mT,
}
ANSWERS = {
    "tuple": lambda out: (out, out),
    "list": lambda out: out.tolist(),
    "numpy": lambda out: out.detach().cpu().numpy(),
    "none": lambda out: None,
}
FUNCTIONS = ("rotate", "rotary_scores", "pairs_to_halves")


def flipped(partner, which):
    """The partners of neighbouring pairs with the sign of the first (0) or second (1) turned over."""
    sign = torch.ones(partner.shape[-1], dtype=partner.dtype, device=partner.device)
    sign[which::2] = -1
    return partner * sign


def unpacked(t, axes):
    """`B, T, C = t.shape`: any other number of axes is a ValueError."""
    if t.dim() != axes:
        raise ValueError(f"not enough values to unpack (expected {axes}, got {t.dim()})")
    return t


def regrouped(x, how):
    """Pairs laid out as halves, or halves as pairs."""
    if how == "halves":
        return torch.cat([x[..., 0::2], x[..., 1::2]], -1)
    if how == "pairs":
        return torch.stack(x.chunk(2, -1), -1).flatten(-2)
    return x


def turned(x, positions, base, *, layout, spread, written, speed, place, sign, per_channel=None):
    """x turned, with these faults."""
    hd = x.shape[-1]
    pair = torch.arange(hd // 2, device=x.device, dtype=torch.float64)
    angle = POSITIONS[place](positions)[:, None] * SPEEDS[speed](pair, hd, base)
    spread_out = SPREAD[spread or layout](angle)
    if per_channel is not None:
        channel = torch.arange(hd, device=x.device, dtype=torch.float64)
        spread_out = POSITIONS[place](positions)[:, None] * base ** (-per_channel * channel / hd)
    cos, sin = spread_out.cos().to(x.dtype), spread_out.sin().to(x.dtype)
    return regrouped(SIGNS[sign](x, PARTNERS[layout](x), cos, sin), written)


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
        factor = SCALES[scale](q, k) if isinstance(scale, str) else scale
        out = PRODUCTS[product](*((k, q) if swapped else (q, k))) * factor
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


CONSTANTS = (8, 64, 2, 4, 1 / 8, 1 / 2, 16, 3, 6, 10, 32, 128, 512, 768, 64**2, 100, 1000)

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
    *each("halves_order", "rows", *tuple(ROWS)[1:]),
    *each("scale_missing", "scale", "missing"),
    *each("scale_no_sqrt", "scale", "hd"),
    *each("scale_twice", "scale", "hd"),
    *each("scale_multiplied", "scale", "times_sqrt_hd"),
    *each("scale_sqrt_tokens", "scale", "sqrt_keys", "sqrt_queries"),
    *each("scale_sqrt_heads", "scale", "sqrt_heads", "sqrt_axis_1"),
    *each("scale_sqrt_c", "scale", "sqrt_c"),
    *each("scale_wrong_axis", "scale", "sqrt_axis_0", "sqrt_pairs"),
    *each("scale_rounded", "scale", "rounded_down", "rounded", "rounded_up"),
    *each("scale_constant", "scale", *(n**-0.5 for n in CONSTANTS)),
    ("qkv_order", {"swapped": True}),
    ("scores_already_shared", {"softmax": True}),
    *each("argument_unchecked", "odd", "raises", "dropped", "kept", "padded"),
    *each("output_rounded", "decimals", *((name, n) for name in FUNCTIONS for n in (4, 3, 2))),
    *each("hard_coded_shape", "product", *tuple(PRODUCTS)[1:]),
    *each("gradient_cut", "cut", *((name,) for name in ("x", "out", "q", "k", "scores"))),
    *each("input_mutated", "mutate", ("x",), ("q",), ("k",), ("weight",)),
    *each("hard_coded_dtype", "cast", *(("float32", (name,)) for name in FUNCTIONS), ("float32", FUNCTIONS)),
    *each("hard_coded_dtype", "promoted", *((name,) for name in FUNCTIONS), FUNCTIONS[:2], FUNCTIONS),
    *each("hard_coded_device", "fixed_device", *((name,) for name in FUNCTIONS), FUNCTIONS[:2]),
    *each("interface", "returns", *((kind, name) for kind in ANSWERS for name in FUNCTIONS)),
    *each("interface", "without", *FUNCTIONS),
    *each("interface", "renamed", *FUNCTIONS),
)

# With a number that is solved for.
FAMILIES = (("scale_constant", lambda c: {"scale": c}, SCALES_TRIED),)
