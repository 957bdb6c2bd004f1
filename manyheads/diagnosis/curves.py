"""Name a mistake with a number that nobody has listed: one number explains all recorded calls of
its family at once.

A family's answers to a few calls are a curve, along the logarithm of its number, through the space
of all projections of these answers. An attempt is a point there. It has the mistake if the point
lies on the curve.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import cache, lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from .diagnosis import Candidate
from .family import Sweep, form_of, numbers_of
from .fingerprint import SMALLEST, ReplyFingerprint
from .recording import FaultDictionary
from .row import Response

# recorded points through which a polynomial is laid, for the step between the two in the middle
AROUND = 6
PARTS = 32  # straight parts of the curve in such a step
# of an answer's norm: what rounding, sixteen bits and polynomials leave of the distance; 1e-4 was
# seen
CLOSE = 1.5e-4
SURE = 0.05  # a call tells the number if so much of its logarithm shows
APART = 0.05  # between the logarithms of the numbers that are right in two calls


def on_a_curve(row: Response, *, listed: bool = False) -> list[Candidate]:
    """Return the first family of which one number, which several calls tell, explains all wrong
    calls; or none.

    Where a number is right in each call, such as 1/√head_dim, it must not be the same in all
    of these: else the attempt's number may depend on what they have in common.

    listed: also a number of a mutant. That one's answers to all other calls are known, too, and are
    no explanation. Then the number that is right must be seen to vary: where every call has one
    head_dim, any large number answers alike.
    """
    for curve in (
        curve for curve in row.recording.sweeps if _explains(curve, row, must_vary=listed)
    ):
        calls = [i for i in curve.calls if i in row.calls and i in row.written]
        if listed or not any(
            all(row.matches(m, i) for i in calls) for m in range(len(row.recording.mutants))
        ):
            return [Candidate(curve.id)]
    return []


@lru_cache(maxsize=16)
def of_one_number(recording: FaultDictionary) -> Set[str]:
    """Return the misconceptions that are one number in place of the one that is right in each call:
    no other way proves them.
    """
    expected_reply = recording.expected_reply
    return {
        c.id
        for c in recording.sweeps
        if _vary([_number(c, k, expected_reply(i)) for k, i in enumerate(c.calls)]) is True
    }


def _explains(curve: Sweep, row: Response, *, must_vary: bool) -> bool:
    syndrome, calls = row.syndrome.keys(), row.calls & row.written.keys()
    observations = {
        position: row.written[i] for position, i in enumerate(curve.calls) if i in calls
    }
    structures = (
        (row.structure(curve.calls[k], e.actual), row.structure(curve.calls[k], e.expected))
        for k, e in observations.items()
    )
    if (
        not syndrome <= curve.detected_in
        or syndrome.isdisjoint(curve.calls)
        or any(actual != expected for actual, expected in structures)
    ):
        return False
    other_mutants = (m for m in range(len(row.recording.mutants)) if row.id(m) != curve.id)
    if any(
        all(row.matches(m, curve.calls[position]) for position in observations)
        for m in other_mutants
    ):
        return False  # a mistake with a name of its own
    paths = {
        position: _path(curve, position, observation.actual)
        for position, observation in observations.items()
    }
    distance, segment, _ = _nearest([*paths.values()])
    telling = [position for position, path in paths.items() if path.tells(curve, segment)]
    rights = [_number(curve, position, observations[position].expected) for position in telling]
    varies = _vary(rights)
    return (
        distance <= CLOSE
        and len(telling) > 1
        and (varies is True or (varies is None and not must_vary))
    )


def _vary(numbers: Sequence[float | None]) -> bool | None:
    """Return whether the numbers that are right in some calls are not all the same; None where
    there are no two.
    """
    known_numbers = [number for number in numbers if number is not None]
    return max(known_numbers) - min(known_numbers) > APART if len(known_numbers) > 1 else None


def _number(curve: Sweep, position: int, reply: ReplyFingerprint) -> float | None:
    path = _path(curve, position, reply)
    distance, segment, along = _nearest([path])
    return (
        (segment + along) / PARTS * curve.step
        if distance <= CLOSE and path.tells(curve, segment)
        else None
    )


class _Path(NamedTuple):
    """A family's answers to one call, (parts, N), how they move in each part, and another answer,
    (N,), which has norm 1.
    """

    start: Tensor
    move: Tensor
    point: Tensor

    def tells(self, curve: Sweep, segment: int) -> bool:
        """Return whether the answer moves enough there to tell the number."""
        return float(self.move[segment].abs().max()) * PARTS * SURE >= CLOSE * curve.step


def _path(curve: Sweep, position: int, reply: ReplyFingerprint) -> _Path:
    """Return the family's answers beside a reply.

    Where they change their form, they stand still where the reply is.

    So they do where they have another form, if the reply has one, too.
    """
    around = curve.answers[position].unfold(0, AROUND, 1)  # (steps, N, AROUND)
    is_other = around.isnan().any(1)
    if form_of(reply) == curve.forms[position]:
        norms = torch.tensor(
            [max(o.norm, SMALLEST) for o in reply.outputs for _ in o.projections]
        ).double()
        point = torch.tensor(numbers_of(reply), dtype=torch.float64) / norms
        changes = (is_other.any(1) & ~is_other.all(1))[:, None, None]
        points = torch.where(
            changes, point, torch.einsum("snk,pk->spn", around, _weights()) / norms
        )
    else:
        point = torch.zeros_like(around[0, :, 0])
        points = torch.where(is_other.any(1), 0.0, torch.inf)[:, None, None].expand(
            -1, PARTS + 1, len(point)
        )
    return _Path(points[:, :-1].flatten(0, 1), points.diff(dim=1).flatten(0, 1), point)


def _nearest(paths: Sequence[_Path]) -> tuple[float, int, float]:
    """Return how near to the others all calls are at once, at worst, in which part, and how far
    along that.

    Not where only one of several calls moves: there the others have no answer of this form.
    """
    start, move = (torch.cat([path[k] for path in paths], 1) for k in (0, 1))
    gap = torch.cat([path.point for path in paths]) - start
    along = (
        ((gap * move).sum(1) / (move * move).sum(1).clamp_min(1e-300))
        .nan_to_num(0.0)
        .clamp(0.0, 1.0)
    )
    distances = (gap - along[:, None] * move).abs().amax(1).nan_to_num(torch.inf)
    moving = torch.stack([path.move.abs().amax(1) > 0 for path in paths]).sum(0)
    distances = distances.masked_fill(moving < min(2, len(paths)), torch.inf)
    # Where the answers do not move any more, the first of these parts may be where they came to
    # rest.
    least = (
        move.abs()
        .amax(1)
        .masked_fill(distances > distances.min() + CLOSE / 100, torch.inf)
        .nan_to_num(torch.inf)
    )
    segment = int(least.argmin())
    return float(distances[segment]), segment, float(along[segment])


@cache
def _weights() -> Tensor:
    """Return (PARTS + 1, AROUND): the weights of so many points, from the left one of those in the
    middle to the right one.
    """
    t = torch.linspace(0.0, 1.0, PARTS + 1, dtype=torch.float64)
    nodes = [node + 1.0 - AROUND // 2 for node in range(AROUND)]
    basis = [
        torch.stack(
            [(t - other_node) / (node - other_node) for other_node in nodes if other_node != node]
        ).prod(0)
        for node in nodes
    ]
    return torch.stack(basis, 1)
