"""Find the parametric mutant that explains a response with a number that is not listed.

The recorded replies of a parametric mutant to a few calls are a sweep: a curve in the space of all
projections of these replies, with the logarithm of the number as its parameter. An attempt is a
point in that space. It has the mistake if the point lies on the curve.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from functools import cache, lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from .diagnosis import Candidate
from .family import Sweep, form_of, numbers_of
from .fingerprint import SMALLEST, ReplyFingerprint
from .recording import FaultDictionary
from .row import Response

# A polynomial through so many recorded points interpolates the step between the middle two.
NODES = 6
SEGMENTS = 32  # straight segments of the curve in such a step
# Relative to an answer's norm. Rounding, sixteen bits and interpolation leave a distance; the
# largest one that was measured is 1e-4.
CLOSE = 1.5e-4
VISIBLE = 0.05  # a call determines the number if such a change of its logarithm can be seen
APART = 0.05  # the right numbers of two calls vary if their logarithms differ by more than this


def on_a_curve(row: Response, *, listed: bool = False) -> list[Candidate]:
    """Return the first parametric mutant that explains the whole syndrome, or none.

    One number must explain it, and several calls must determine that number. If each call has a
    right number, such as 1/√head_dim, it must not be the same in all of these calls. Otherwise the
    attempt's number may depend on a property that they share.

    Args:
        row: the response.
        listed: whether a number that a mutant of the bank has is accepted as well. By default it is
            not, because the replies of that mutant to all other calls are known. If it is accepted,
            the right number must be known to vary: if every call has the same head_dim, all large
            numbers give the same replies.
    """
    for curve in row.recording.sweeps:
        if not _explains(curve, row, must_vary=listed):
            continue
        calls = [i for i in curve.calls if i in row.calls and i in row.written]
        mutants = range(len(row.recording.mutants))
        if listed or not any(_matches_all(row, m, calls) for m in mutants):
            return [Candidate(curve.id)]
    return []


def _matches_all(row: Response, mutant: int, calls: Iterable[int]) -> bool:
    return all(row.matches(mutant, i) for i in calls)


@lru_cache(maxsize=16)
def of_one_number(recording: FaultDictionary) -> Set[str]:
    """Return the misconceptions of a fixed number, although the right one varies between calls.

    Only a sweep can prove them.
    """
    ids = set[str]()
    for curve in recording.sweeps:
        replies = map(recording.expected_reply, curve.calls)
        if _vary([_number(curve, position, reply) for position, reply in enumerate(replies)]):
            ids.add(curve.id)
    return ids


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
    observed_calls = [curve.calls[position] for position in observations]
    other_mutants = (m for m in range(len(row.recording.mutants)) if row.id(m) != curve.id)
    if any(_matches_all(row, m, observed_calls) for m in other_mutants):
        return False  # the attempt has another misconception
    paths = {
        position: _path(curve, position, observation.actual)
        for position, observation in observations.items()
    }
    distance, segment, _ = _nearest([*paths.values()])
    telling = [k for k, path in paths.items() if path.determines_number(curve, segment)]
    varies = _vary([_number(curve, k, observations[k].expected) for k in telling])
    return (
        distance <= CLOSE
        and len(telling) > 1
        and (varies is True or (varies is None and not must_vary))
    )


def _vary(numbers: Sequence[float | None]) -> bool | None:
    """Return whether the right numbers of some calls differ, or None if fewer than two are known.

    Args:
        numbers: for each call the logarithm of the right number, or None if it is not known.
    """
    known_numbers = [number for number in numbers if number is not None]
    return max(known_numbers) - min(known_numbers) > APART if len(known_numbers) > 1 else None


def _number(curve: Sweep, position: int, reply: ReplyFingerprint) -> float | None:
    path = _path(curve, position, reply)
    distance, segment, along = _nearest([path])
    return (
        (segment + along) / SEGMENTS * curve.step
        if distance <= CLOSE and path.determines_number(curve, segment)
        else None
    )


class _Path(NamedTuple):
    """The sweep of one call as a path of straight segments, and an attempt's reply as a point.

    Attributes:
        start: (segments, N), the projections at the start of each segment.
        move: (segments, N), how they change along it.
        point: (N,), the projections of the attempt's reply. All three are relative to its norm.
    """

    start: Tensor
    move: Tensor
    point: Tensor

    def determines_number(self, curve: Sweep, segment: int) -> bool:
        """Return whether the reply changes enough in this segment to determine the number."""
        return float(self.move[segment].abs().max()) * SEGMENTS * VISIBLE >= CLOSE * curve.step


def _path(curve: Sweep, position: int, reply: ReplyFingerprint) -> _Path:
    """Return the sweep of one call, and a reply as a point beside it.

    In steps in which the recorded replies change their form, the path stays at the reply, so that
    the call neither supports nor excludes a number there. If the reply has another form itself, the
    path stays at it in each step of which a recorded reply has another form, and is infinitely far
    away in all others.
    """
    around = curve.answers[position].unfold(0, NODES, 1)  # (steps, N, NODES)
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
            -1, SEGMENTS + 1, len(point)
        )
    return _Path(points[:, :-1].flatten(0, 1), points.diff(dim=1).flatten(0, 1), point)


def _nearest(paths: Sequence[_Path]) -> tuple[float, int, float]:
    """Return the distance from all points to the paths, its segment, and the position in that.

    The distance is the largest difference over all calls, which share one number. A segment in
    which only one of several calls moves is excluded: for the other calls the sweep has no reply of
    this form there.
    """
    start = torch.cat([path.start for path in paths], 1)
    move = torch.cat([path.move for path in paths], 1)
    gap = torch.cat([path.point for path in paths]) - start
    along = (
        ((gap * move).sum(1) / (move * move).sum(1).clamp_min(1e-300))
        .nan_to_num(0.0)
        .clamp(0.0, 1.0)
    )
    distances = (gap - along[:, None] * move).abs().amax(1).nan_to_num(torch.inf)
    moving = torch.stack([path.move.abs().amax(1) > 0 for path in paths]).sum(0)
    distances = distances.masked_fill(moving < min(2, len(paths)), torch.inf)
    # Take the segment with the least movement among those that are equally near. If the replies do
    # not change any more, an earlier segment in which they still change may be as near.
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
    """Return (SEGMENTS + 1, NODES): the Lagrange weights of points between the middle two nodes."""
    t = torch.linspace(0.0, 1.0, SEGMENTS + 1, dtype=torch.float64)
    nodes = [node + 1.0 - NODES // 2 for node in range(NODES)]
    basis = []
    for node in nodes:
        factors = [
            (t - other_node) / (node - other_node) for other_node in nodes if other_node != node
        ]
        basis.append(torch.stack(factors).prod(0))
    return torch.stack(basis, 1)
