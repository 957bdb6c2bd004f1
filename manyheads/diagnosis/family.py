"""Mutants with a number that nobody can list, such as a constant in place of a scale, and what is
recorded of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ..checks.projection import PROJECTIONS
from .columns import from_rows, to_rows
from .fingerprint import ReplyFingerprint

Namespace = Mapping[str, object]
# of each output of a reply: all that its fingerprint has beside numbers
Form = tuple[tuple[Any, ...], ...]

POINTS = 97  # numbers of a family that are recorded, evenly in their logarithms
_NONE = -32768  # in a file, in place of a number of an answer that has another form


@dataclass(frozen=True, eq=False)
class ParametricMutant:
    """A misconception, its knobs as a function of one positive number, the limits of that number,
    and the bank's `make`.
    """

    id: str
    knobs: Callable[[float], Mapping[str, object]]
    low: float
    high: float
    make: Callable[..., Namespace] = field(repr=False)

    @property
    def grid(self) -> tuple[float, ...]:
        """The logarithms of the numbers that are recorded."""
        return tuple(math.log(self.low) + self.step * position for position in range(POINTS))

    @property
    def step(self) -> float:
        """The difference of two logarithms that are neighbours in the grid."""
        return math.log(self.high / self.low) / (POINTS - 1)

    def mutant(self, logarithm: float) -> Namespace:
        """Return the names of the mutant whose number has this logarithm."""
        return self.make(**self.knobs(math.exp(logarithm)))


@dataclass(frozen=True)
class Sweep:
    """How the mutants of a family answer a few calls.

    step: between the logarithms of two numbers.
    calls, forms: the calls, by their numbers, and for each the form of the answers.
    answers: for each call (points, N) projections, a row for each number; NaN where the answer has
        another form.
    detected_in: every recorded call that some of the mutants answer otherwise than the reference.
    """

    id: str
    step: float
    calls: tuple[int, ...]
    forms: tuple[Form, ...]
    answers: tuple[Tensor, ...]
    detected_in: frozenset[int]


def form_of(reply: ReplyFingerprint) -> Form:
    """Return all that the outputs' recording have beside numbers."""
    return tuple((output.kind, output.shape, output.extremes) for output in reply.outputs)


def numbers_of(reply: ReplyFingerprint) -> list[float]:
    """Return the projections of all outputs."""
    return [number for output in reply.outputs for number in output.projections]


def curves_to_columns(curves: Sequence[Sweep]) -> tuple[list[object], dict[str, Tensor]]:
    """Return what stands in the body of a file, and the columns."""
    if not curves:
        return [], {}
    rows = torch.cat(
        [answer.reshape(-1, PROJECTIONS) for curve in curves for answer in curve.answers]
    )
    integers, sizes = to_rows(rows.nan_to_num(0.0))
    projections = integers.masked_fill(rows.isnan(), _NONE).T  # one direction after the other
    body: list[object] = [
        [
            c.id,
            c.step,
            c.calls,
            c.forms,
            [list(answer.shape) for answer in c.answers],
            sorted(c.detected_in),
        ]
        for c in curves
    ]
    return body, {"curves.projections": projections, "curves.sizes": sizes}


def curves_from_columns(body: Sequence[Any], named: Mapping[str, Tensor]) -> tuple[Sweep, ...]:
    """Return the curves of a file. Raises LookupError, RuntimeError, ValueError."""
    if not body:
        return ()
    integers = named["curves.projections"].T
    flat = (
        from_rows(integers, named["curves.sizes"])
        .masked_fill(integers == _NONE, torch.nan)
        .flatten()
    )
    chunks = iter(flat.split([math.prod(shape) for *_, shapes, _ in body for shape in shapes]))
    return tuple(
        Sweep(
            id_,
            step,
            tuple(calls),
            tuple(
                tuple((kind, shape and tuple(shape), extremes) for kind, shape, extremes in form)
                for form in forms
            ),
            tuple(next(chunks).view(shape) for shape in shapes),
            frozenset(speaks),
        )
        for id_, step, calls, forms, shapes, speaks in body
    )
