"""Wrong attempts at rotary positions: one implementation whose knobs turn one fault each."""

import torch

from manyheads.checks import edit

from ._mutants import KEYS_NOT_TRANSPOSED, SCALES_TRIED, at, complete_knobs, variants
from ._rotation import POSITIONS, SPEEDS, turned
from ._scaling import PRECEDENCE_OF_HD, scales
from ._scores import (
    CONSTANTS,
    OFFERED,
    PRODUCTS,
    multiplier,
    of_both,
    offered,
    paired_defaults,
    sides,
)

# The rows of pairs_to_halves before its last reshape.
ROWS = (
    "weight.reshape(n_head, 2, C // n_head // 2, C_in).transpose(1, 2)",
    "torch.cat([weight[0::2], weight[1::2]])",
    "weight.reshape(2, C // 2, C_in).transpose(0, 1)",
    "pairs.flip(2).transpose(1, 2)",
    "(weight + 0.0)",
    "weight.reshape(C // n_head // 2, 2, n_head, C_in).transpose(0, 1)",
    "weight.reshape(C // n_head // 2, 2, n_head, C_in).permute(2, 1, 0, 3)",
    "pairs.transpose(1, 2).flip(2)",
)

# the right rows, one half with another sign
SIGNED_ROWS = ("pairs[:, :, 0], -pairs[:, :, 1]", "-pairs[:, :, 1], pairs[:, :, 0]")

FUNCTIONS = ("rotate", "rotary_scores", "pairs_to_halves")

# How channels are turned, in both functions; with own_ before the name, in rotary_scores alone.
TURNS = {
    # how angles and turned channels are laid out, if otherwise
    "layout": "pairs",
    "spread": None,
    "written": None,
    "speed": "right",
    "place": "given",
    "sign": "right",
    "per_channel": None,  # or a factor: each channel has another speed
    "base_used": "given",  # or a number
}
RIGHT = {
    **paired_defaults(TURNS),
    **OFFERED,
    # the place of one side in rotary_scores
    "q_place": None,
    "k_place": None,
    "turns": "x",
    "own_turns": "qk",  # the tensors that are turned
    "swapped_places": False,
    "odd": "refused",  # "raises", "dropped", "kept", "padded"
    "scale": "sqrt_hd",
    "product": "any",
    "cut": (),
    "mutate": (),  # names of tensors
}


def make(**knobs):
    """Return the exercise's names, with these faults."""
    faults = complete_knobs(knobs, RIGHT)
    both, its_own = of_both(faults, TURNS)

    def lose(name, t):
        return t.detach() if name in faults.cut else t

    def rotate(x, positions, base=10000.0):
        original, hd = x, x.shape[-1]
        if hd % 2 and faults.odd == "refused":
            raise ValueError(f"{hd} channels")
        if hd % 2 and faults.odd == "raises":
            raise RuntimeError(
                f"The size of tensor a ({hd // 2 + 1}) must match the size of tensor b ({hd // 2})"
            )
        odd_channel, x = (x[..., -1:], x[..., :-1]) if hd % 2 else (x[..., :0], x)
        out = turned(lose("x", x), positions, base, **both) if faults.turns else x + 0.0
        if faults.odd == "kept":
            out = torch.cat([out, odd_channel], -1)
        elif faults.odd == "padded" and hd % 2:
            out = torch.nn.functional.pad(out, (0, 2))
        if "x" in faults.mutate:
            original.mul_(2.0)
        return out

    def rotary_scores(q, k, q_positions, k_positions, base=10000.0):
        originals = {"q": q, "k": k}
        if faults.swapped_places:
            q_positions, k_positions = k_positions, q_positions
        q, k = lose("q", q), lose("k", k)
        if "q" in faults.own_turns:
            q = turned(
                q, q_positions, base, **(its_own | {"place": faults.q_place or its_own["place"]})
            )
        if "k" in faults.own_turns:
            k = turned(
                k, k_positions, base, **(its_own | {"place": faults.k_place or its_own["place"]})
            )
        out = PRODUCTS[faults.product](q, k) * multiplier(faults.scale, q, k)
        for name, t in originals.items():
            if name in faults.mutate:
                t.mul_(2.0)
        return lose("scores", out)

    def pairs_to_halves(weight, n_head):
        out = weight.reshape(n_head, -1, 2, weight.shape[1]).transpose(1, 2).reshape(weight.shape)
        if "weight" in faults.mutate:
            weight.copy_(out)
        return out

    return offered(faults, rotate, rotary_scores, pairs_to_halves)


def _turns(id_, **faults):
    return sides(id_, {knob: value for knob, value in TURNS.items() if value is not None}, **faults)


SPEED = "base ** -(torch.arange(0, hd, 2, device=x.device, dtype=torch.float64) / hd)"
ANGLE = "positions.to(x.device)[:, None] * speed"
COS, SIN = "angle.cos().to(x.dtype)", "angle.sin().to(x.dtype)"
TURNED = "rotate(q, q_positions, base), rotate(k, k_positions, base)"
SCORES = "q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])"
HALVES = ("half", "bfloat16")

# Edits of the reference: (id, text, its replacement).
MORE = (
    ("state_kept", SPEED, f"rotate.__dict__.setdefault(hd, {SPEED}).to(x.device)"),
    *(("hard_coded_dtype", ANGLE, f"({ANGLE}).{half}()") for half in HALVES),
    *(
        (
            "hard_coded_dtype",
            f"{COS}, {SIN}",
            f"angle.cos().{half}().to(x.dtype), angle.sin().{half}().to(x.dtype)",
        )
        for half in HALVES
    ),
    ("hard_coded_shape", f"{COS}, {SIN}", f"{COS}[None, None], {SIN}[None, None]"),
    ("rope_angle", SPEED, SPEED.replace("/ hd)", "/ x.shape[1])")),
    ("rope_positions", ANGLE, "torch.arange(x.shape[1], device=x.device)[:, None] * speed"),
    ("rope_positions", TURNED, TURNED.replace("q, q_positions", "q, k_positions[: q.shape[-2]]")),
    (
        "rope_positions",
        TURNED,
        TURNED.replace(
            "k_positions", "(q_positions[:1] + torch.arange(k.shape[-2], device=k.device))"
        ),
    ),
    ("scale_rounded", "/ math.sqrt(q.shape[-1])", "// math.sqrt(q.shape[-1])"),
    (
        "halves_order",
        "weight.reshape(n_head, C // n_head // 2, 2, C_in)",
        "weight.reshape(C // n_head // 2, 2, n_head, C_in)",
    ),
)

MUTANTS = (
    *_turns("rope_halves", layout="halves"),
    *_turns("rope_mixed_layouts", spread="halves"),
    *_turns("rope_mixed_layouts", layout="halves", spread="pairs"),
    ("rope_mixed_layouts", {"written": "halves"}),
    *variants("rope_mixed_layouts", layout="halves", written="pairs", own_layout=(..., "pairs")),
    *_turns("rope_angle", speed=tuple(SPEEDS)[1:]),
    *_turns("rope_angle", per_channel=(1.0, 2.0)),
    *_turns("rope_sign", sign=("backwards", "plus", "minus")),
    ("rope_sign", edit("k_positions, base)", "-k_positions, base)")),
    *_turns("rope_sin_cos", sign="sin_cos"),
    *_turns("rope_overwritten", sign=("first_overwritten", "second_overwritten")),
    *variants("rope_missing", turns="", own_turns=("", ...)),
    *variants("rope_missing", own_turns=("q", "k", "")),
    *_turns("rope_positions", place=tuple(POSITIONS)[1:-1]),
    ("rope_positions", {"place": "from_one"}),
    *variants("rope_positions", q_place=("counted", "from_one", "from_first", "counted_down")),
    *variants("rope_positions", k_place=("counted", "from_one", "from_first", "counted_down")),
    ("rope_positions", {"swapped_places": True}),
    *_turns("rope_base_fixed", base_used=(10000.0, 1000.0, 500000.0, 100.0, 1000000.0)),
    *at("pairs.transpose(1, 2)", ("halves_order", *ROWS)),
    *at(
        "pairs.transpose(1, 2)",
        ("halves_columns", "torch.cat([weight[:, 0::2], weight[:, 1::2]], 1)"),
    ),
    *at(
        "pairs.transpose(1, 2)",
        ("halves_sign", *(f"torch.stack([{rows}], 1)" for rows in SIGNED_ROWS)),
    ),
    (
        "halves_order",
        edit(
            "weight.reshape(n_head, C // n_head // 2, 2, C_in)",
            "weight.reshape(C // n_head, n_head // 2, 2, -1)",
        ),
    ),
    *scales("missing", "hd"),
    ("scale_twice", {"scale": "hd"}),
    *scales("times_sqrt_hd", "times_hd", *PRECEDENCE_OF_HD, "sqrt_keys", "sqrt_tokens", "tokens"),
    ("scale_wrong_axis", {"scale": "sqrt_heads"}),
    *scales(
        "sqrt_axis_1", "sqrt_c", "sqrt_batch", "sqrt_pairs", "rounded_down", "rounded", "rounded_up"
    ),
    *variants("scale_constant", scale=[n**-0.5 for n in CONSTANTS]),
    ("qkv_order", edit("q @ k.transpose", "k @ q.transpose")),
    ("scores_already_shared", edit(f"return {SCORES}", f"return ({SCORES}).softmax(-1)")),
    *variants("argument_unchecked", odd=("raises", "dropped", "kept", "padded")),
    *variants("output_rounded", decimals=[(name, n) for name in FUNCTIONS for n in (4, 3, 2)]),
    ("axes_turned", {"product": "T"}),
    *variants(
        "hard_coded_shape", product=("transpose_12", "transpose_23", "bmm", "unpack_3", "unpack_4")
    ),
    *variants("gradient_cut", cut=[(name,) for name in ("x", "q", "k", "scores")]),
    *variants("input_mutated", mutate=(("x",), ("q",), ("k",), ("weight",))),
    *variants(
        "hard_coded_dtype",
        cast=(*(("float32", (name,)) for name in FUNCTIONS), ("float32", FUNCTIONS)),
    ),
    *variants("hard_coded_dtype", cast=[("float64", (name,)) for name in FUNCTIONS]),
    *variants("hard_coded_dtype", cast=(("float64", FUNCTIONS[:2]), ("float64", FUNCTIONS))),
    *variants("hard_coded_device", fixed_device=(*((name,) for name in FUNCTIONS), FUNCTIONS[:2])),
    *variants(
        "interface",
        returns=[
            (return_type, name)
            for return_type in ("tuple", "list", "numpy", "none")
            for name in FUNCTIONS
        ],
    ),
    *variants("interface", without=FUNCTIONS),
    *variants("interface", renamed=FUNCTIONS),
    KEYS_NOT_TRANSPOSED,
    *((id_, edit(old, new)) for id_, old, new in MORE),
)

# parametric mutants: the number can have any value
FAMILIES = (("scale_constant", lambda c: {"scale": c}, SCALES_TRIED),)
