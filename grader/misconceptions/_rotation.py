"""How turning pairs of channels goes wrong: in speeds, positions, layouts and signs."""

import math

import torch

# The speeds of the pairs, from (pair: 0 … hd/2 − 1, hd, base).
SPEEDS = {
    "right": lambda pair, hd, base: base ** (-2 * pair / hd),
    "no_two": lambda pair, hd, base: base ** (-pair / hd),
    "twice": lambda pair, hd, base: base ** (-4 * pair / hd),
    "positive": lambda pair, hd, base: base ** (2 * pair / hd),
    "width_outside": lambda pair, hd, base: base ** (-2 * pair) / hd,  # brackets forgotten
    "no_width": lambda pair, hd, base: base ** (-2 * pair),
    "from_one": lambda pair, hd, base: base ** (-2 * (pair + 1) / hd),
    "odd": lambda pair, hd, base: base ** (-(2 * pair + 1) / hd),
    "to_the_end": lambda pair, hd, base: base ** (-pair / max(hd // 2 - 1, 1)),
    "one_speed": lambda pair, hd, base: base ** (0 * pair),
    "slow_first": lambda pair, hd, base: base ** (-2 * pair.flip(0) / hd),
    "linear": lambda pair, hd, base: 1 / (1 + 2 * pair / hd * base),
    "natural": lambda pair, hd, base: torch.exp(-2 * pair / hd),
    "over_base": lambda pair, hd, base: 1 / base * (2 * pair / hd),
    "degrees": lambda pair, hd, base: base ** (-2 * pair / hd) * math.pi / 180,
    "turns": lambda pair, hd, base: base ** (-2 * pair / hd) * 2 * math.pi,
    "half_turns": lambda pair, hd, base: base ** (-2 * pair / hd) * math.pi,
    "turned_twice": lambda pair, hd, base: base ** (-2 * pair / hd) * 2,
    "half_as_far": lambda pair, hd, base: base ** (-2 * pair / hd) / 2,
}

# The positions that are used, from those that are given.
POSITIONS = {
    "given": lambda positions: positions,
    "counted": lambda positions: torch.arange(len(positions), device=positions.device),
    "counted_from_first": lambda positions: (
        positions[:1] + torch.arange(len(positions), device=positions.device)
    ),
    "sorted": lambda positions: positions.sort().values,
    "counted_down": lambda positions: torch.arange(len(positions), device=positions.device).flip(0),
    "from_first": lambda positions: positions - positions[:1],
    # not in rotary_scores alone, where it changes nothing
    "from_one": lambda positions: positions + 1,
}

# each channel's partner, with its sign
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
    "first_overwritten": lambda x, y, cos, sin: overwritten(x, y, cos, sin, 0),
    "second_overwritten": lambda x, y, cos, sin: overwritten(x, y, cos, sin, 1),
}


def flipped(partner, member):
    """Return the partners of neighbouring pairs, with the sign of one member turned over.

    The member is the first (0) or second (1) of each pair.
    """
    sign = torch.ones(partner.shape[-1], dtype=partner.dtype, device=partner.device)
    sign[member::2] = -1
    return partner * sign


def overwritten(x, partner, cos, sin, member):
    """Return the result if one channel of each pair is overwritten too early.

    The first (0) or second (1) channel is written before the other one is made from it.
    """
    written, sign = (x * cos + partner * sin)[..., member::2], 1 - 2 * member
    opposite = x[..., 1 - member :: 2] * cos[..., ::2] + sign * written * sin[..., ::2]
    return torch.stack([opposite, written] if member else [written, opposite], -1).flatten(-2)


def regrouped(x, how):
    """Return pairs laid out as halves, or halves as pairs."""
    if how == "halves":
        return torch.cat([x[..., 0::2], x[..., 1::2]], -1)
    if how == "pairs":
        return torch.stack(x.chunk(2, -1), -1).flatten(-2)
    return x


def turned(
    x, positions, base, *, layout, spread, written, speed, place, sign, per_channel, base_used
):
    """Return x turned, with these faults."""
    hd, base = x.shape[-1], base if base_used == "given" else base_used
    pair = torch.arange(hd // 2, device=x.device, dtype=torch.float64)
    angle = POSITIONS[place](positions)[:, None] * SPEEDS[speed](pair, hd, base)
    spread_out = SPREAD[spread or layout](angle)
    if per_channel is not None:
        channel = torch.arange(hd, device=x.device, dtype=torch.float64)
        spread_out = POSITIONS[place](positions)[:, None] * base ** (-per_channel * channel / hd)
    cos, sin = spread_out.cos().to(x.dtype), spread_out.sin().to(x.dtype)
    return regrouped(SIGNS[sign](x, PARTNERS[layout](x), cos, sin), written)
