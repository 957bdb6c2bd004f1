"""Measure what course.yaml says of an exercise (`bench`), with an attempt's code in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from statistics import median

import torch

from ..box.connection import AttemptEnded, Connection
from ..box.level import Box
from ..box.loading import load
from ..box.worker.form import Form
from ..box.worker.limits import Limits
from ..box.worker.messages import Build, Call, FollowUp, Measure, Returned
from ..checks.sanitize import sanitize
from ..checks.transcript import target_of
from ..course import Exercise
from ..course.plot_and_bench import MeasuredLine, Measurement, product, signature_for
from ..course.shapes import Axis, Parameter, Signature
from ..submission import AttemptSource
from .train_model import exception_sentence

SECONDS = 30.0  # for all runs of one point; whoever is slower is left out
ATTEMPT_SECONDS = 3600.0


@dataclass(frozen=True)
class OwnEffort:
    """rounds: how often all lines of a point are measured in turn, so that other load meets all of them alike.

    values: how many values of the size that grows; None: all of them. enough: ms for each line in a round.
    """

    rounds: int
    enough: float
    values: int | None = None


FULL, QUICK = OwnEffort(3, 300.0), OwnEffort(1, 20.0, 3)


@dataclass(frozen=True)
class Point:
    """amount: the median in ms, or bytes; None where `instead` says why there is none. runs: how many were timed."""

    value: int
    amount: float | None = None
    runs: int = 0
    instead: str = ""


@dataclass(frozen=True)
class MeasuredExercise:
    """lines: the points of each line, by its name. is_reference: whether the solution stood in for what is not written."""

    exercise: Exercise
    measurement: Measurement
    lines: dict[str, tuple[Point, ...]]
    is_reference: bool = False


def measure_exercise(
    box: Box,
    limits: Limits,
    exercise: Exercise,
    source: AttemptSource,
    effort: OwnEffort,
    on_start: Callable[[Measurement, int], None],
    *,
    is_reference: bool = False,
) -> Iterator[MeasuredExercise]:
    """Make each of the exercise's measurements. on_start: called with each of its values before that is measured."""
    attempt = _Attempt(box, replace(limits, seconds_per_attempt=ATTEMPT_SECONDS), source)
    try:
        for measurement in exercise.bench:
            points: dict[str, list[Point]] = {line.name: [] for line in measurement.lines}
            for value in measurement.values[: effort.values]:
                on_start(measurement, value)
                for name, point in _points(attempt, exercise, measurement, value, effort, points).items():
                    points[name].append(point)
            found = {name: tuple(each) for name, each in points.items()}
            yield MeasuredExercise(exercise, measurement, found, is_reference)
    finally:
        attempt.close()


def _points(
    attempt: _Attempt,
    exercise: Exercise,
    measurement: Measurement,
    value: int,
    effort: OwnEffort,
    before: dict[str, list[Point]],
) -> dict[str, Point]:
    """Return a point for each line. A line that failed once is not tried again: what follows is larger."""
    amounts: dict[str, list[float]] = {line.name: [] for line in measurement.lines}
    failed = {name: points[-1].instead for name, points in before.items() if points and points[-1].instead}
    for _ in range(effort.rounds if measurement.measures == "time" else 1):
        for line in measurement.lines:
            if line.name not in failed:
                try:
                    call = call_of(exercise, measurement, line, value, attempt.device)
                    amounts[line.name] += attempt.measured(call, measurement, effort.enough)
                except Unmeasured as reason:
                    failed[line.name] = str(reason)
    return {
        name: Point(value, instead=failed[name]) if name in failed else Point(value, median(each), len(each))
        for name, each in amounts.items()
    }


class Unmeasured(Exception):
    """Why there is no number. The text is one sentence for the student."""


class _Attempt:
    """A process with the attempt's code; a new one where the last has ended."""

    def __init__(self, box: Box, limits: Limits, source: AttemptSource) -> None:
        self._box, self._limits, self._source = box, limits, source
        self._connection: Connection | None = None
        self.device = None if limits.device == "cpu" else limits.device

    def measured(self, call: Call, measurement: Measurement, enough: float) -> list[float]:
        """Return the time of each run in ms, or the number of bytes. Raises Unmeasured."""
        message = call if measurement.measures == "value" else Measure(call, measurement.measures == "memory", enough)
        try:
            reply = self._loaded().ask(message, SECONDS)
        except AttemptEnded as ended:
            self.close()
            raise Unmeasured(str(ended)) from None
        if reply.raised is not None:
            raise Unmeasured(exception_sentence(reply.raised, f"in {target_of(call)}"))
        tensor = reply.outputs[0].tensor if reply.outputs else None
        if tensor is None or tensor.is_complex() or not tensor.isfinite().all() or not tensor.numel():
            raise Unmeasured(f"{target_of(call)} gave no number.")
        return [float(number) for number in tensor.flatten().tolist()]

    def close(self) -> None:
        """End the process."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _loaded(self) -> Connection:
        if self._connection is None:
            loaded = load(self._box, self._limits, self._source.load())
            self._connection, self._source = loaded.connection, replace(self._source, skipped=loaded.skipped)
            if loaded.raised is not None:
                self.close()
                where = f"while {sanitize(self._source.name)} was imported"
                raise Unmeasured(exception_sentence(loaded.raised, where))
        return self._connection


def call_of(
    exercise: Exercise, measurement: Measurement, line: MeasuredLine, value: int, device: str | None = None
) -> Call:
    """Return the call of a line, with tensors of random numbers that are the same every time."""
    generator = torch.Generator().manual_seed(0)
    signatures = exercise.signatures(line.call)
    sizes = measurement.known(line, value)
    signature = signature_for(signatures, sizes)
    assert signature is not None, "course.yaml is read with this asked"
    handed_on = None if line.after is None else Returned(0, _opaque(signature))
    step = FollowUp(_arguments(signature.call, sizes, generator, handed_on))
    steps: tuple[FollowUp, ...] = (step,)
    if line.after is not None:
        first = _arguments(signature.call, measurement.known(line, value, before=True), generator, None)
        steps = (FollowUp(first), step)
    subject: str | Build = line.call
    if signature.build is not None:
        subject = Build(line.call, _arguments(signature.build, sizes, generator, None), device=device)
    form: Form | None = exercise.forms.get(line.call)
    return Call(subject, dtype="float32", device=device, returns=form).with_steps(steps)


def _arguments(
    parameters: tuple[Parameter, ...], sizes: dict[str, int], generator: torch.Generator, handed_on: Returned | None
) -> tuple[object, ...]:
    """Return an argument for each parameter; those that may lack get what is handed on, or are left to their default."""
    made: list[object] = []
    for parameter in parameters:
        if parameter.may_lack:
            if handed_on is None:
                break
            made.append(handed_on)
        elif parameter.shape is not None:
            made.append(torch.randn([product(axis, sizes) for axis in parameter.shape], generator=generator))
        else:
            made.append(product(parameter.axis or Axis((parameter.name,)), sizes))
    return tuple(made)


def _opaque(signature: Signature) -> tuple[int, ...]:
    """Return where in the result that stands which can be handed on."""
    form = signature.form or Form()
    return next((path for path, leaf in form.leaves() if leaf.kind == "opaque"), ())
