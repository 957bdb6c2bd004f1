"""Parametric mutants: mutants with a number that can have any value, and their recorded sweeps.

An example is a constant in place of a scale.
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
# For each output of a reply, its fingerprint without the numbers.
Form = tuple[tuple[Any, ...], ...]

POINTS = 97  # numbers of a parametric mutant that are recorded, evenly spaced in their logarithms
_NONE = -32768  # in a file, in place of the numbers of an answer with another form


@dataclass(frozen=True, eq=False)
class ParametricMutant:
    """A misconception with one positive number as its parameter.

    Attributes:
        knobs: returns the arguments of `make` for a number.
        low, high: the limits of the number.
        make: makes the mutant; the bank's `make`, or a function that applies an edit.
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
        """The difference of two neighbouring logarithms in the grid."""
        return math.log(self.high / self.low) / (POINTS - 1)

    def mutant(self, logarithm: float) -> Namespace:
        """Return the namespace of the mutant whose number has this logarithm."""
        return self.make(**self.knobs(math.exp(logarithm)))


@dataclass(frozen=True)
class Sweep:
    """The replies of a parametric mutant to a few calls, for each of its recorded numbers.

    Attributes:
        step: the difference of the logarithms of two neighbouring numbers.
        calls: the recorded calls, by their index.
        forms: for each call the form of the answers.
        answers: for each call (points, N) projections, one row for each number. NaN if the answer
            has another form.
        detected_in: all recorded calls that detect the mutant with at least one of the numbers.
    """

    id: str
    step: float
    calls: tuple[int, ...]
    forms: tuple[Form, ...]
    answers: tuple[Tensor, ...]
    detected_in: frozenset[int]


def form_of(reply: ReplyFingerprint) -> Form:
    """Return the fingerprints of the outputs without their numbers."""
    return tuple((output.kind, output.shape, output.extremes) for output in reply.outputs)


def numbers_of(reply: ReplyFingerprint) -> list[float]:
    """Return the projections of all outputs."""
    return [number for output in reply.outputs for number in output.projections]


def curves_to_columns(curves: Sequence[Sweep]) -> tuple[list[object], dict[str, Tensor]]:
    """Return the sweeps as entries of a file's body and as its columns."""
    if not curves:
        return [], {}
    rows = torch.cat(
        [answer.reshape(-1, PROJECTIONS) for curve in curves for answer in curve.answers]
    )
    integers, sizes = to_rows(rows.nan_to_num(0.0))
    projections = integers.masked_fill(rows.isnan(), _NONE).T  # one direction after the other
    body: list[object] = []
    for curve in curves:
        shapes = [list(answer.shape) for answer in curve.answers]
        entry = [curve.id, curve.step, curve.calls, curve.forms, shapes, sorted(curve.detected_in)]
        body.append(entry)
    return body, {"curves.projections": projections, "curves.sizes": sizes}


def curves_from_columns(body: Sequence[Any], columns: Mapping[str, Tensor]) -> tuple[Sweep, ...]:
    """Return the sweeps of a file.

    Raises LookupError, RuntimeError or ValueError if the file is damaged.
    """
    if not body:
        return ()
    integers = columns["curves.projections"].T
    flat = (
        from_rows(integers, columns["curves.sizes"])
        .masked_fill(integers == _NONE, torch.nan)
        .flatten()
    )
    chunks = iter(flat.split([math.prod(shape) for *_, shapes, _ in body for shape in shapes]))
    curves = []
    for id_, step, calls, forms, shapes, detected_in in body:
        answers = tuple([next(chunks).view(shape) for shape in shapes])
        form_tuples = tuple(map(_read_form, forms))
        curves.append(Sweep(id_, step, tuple(calls), form_tuples, answers, frozenset(detected_in)))
    return tuple(curves)


def _read_form(form: Sequence[Any]) -> Form:
    return tuple((kind, shape and tuple(shape), extremes) for kind, shape, extremes in form)
