"""The calls that an exercise's fingerprint file records, and how the reference answers them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from torch import Tensor

from ..box.worker.messages import Build, Call, Entries, StandIn
from ..checks.cast import rounded
from ..checks.implementation import Runner
from ..checks.local import LocalRecordingRunner
from ..checks.outcome import CheckOutcome
from ..checks.recording import Exchange
from ..course import CourseError, Exercise
from ..diagnosis.table_file import PUBLIC
from ..judge.catalogue import Catalogue
from ..public.compared import first_of
from ..public.copies import is_of_copies
from ..public.fingerprint import fingerprint_of
from .aspects import Groups, groups_of
from .chance import is_deterministic
from .edits import is_an_edit
from .recorded import RecordedCalls, SettledRunner, calls_of, expected_of

ELEMENTS_LIMIT = 20_000  # a call with more elements is not recorded


def recorded_calls(catalogue: Catalogue, exercise: Exercise) -> RecordedCalls:
    """The calls of an exercise. Raises what `right_answers` raises."""
    reference = SettledRunner(catalogue.reference(exercise).namespace)
    outcomes, transcript = right_answers(catalogue, exercise)
    exchanges = [e for e in transcript if _is_recordable(reference, e.call)]
    asked_by = tuple(e.check for e in exchanges)
    calls = tuple(rounded(e.call) for e in exchanges)
    replies = tuple(reference.execute(call) for call in calls)
    expected = [first_of(expected_of(call, reply)) for call, reply in zip(calls, replies, strict=True)]
    copies = {i for i, call in enumerate(calls) if is_of_copies(call)}
    return RecordedCalls(
        outcomes=tuple(outcomes),
        asked_by=asked_by,
        calls=calls,
        replies=replies,
        right=tuple(fingerprint_of(reply) for reply in replies),
        groups={o.id: _groups(calls_of(o.id, asked_by), calls, expected, copies) for o in outcomes},
    )


def _groups(own: Sequence[int], calls: Sequence[Call], expected: Sequence[Tensor | None], copies: set[int]) -> Groups:
    edits = {(a, b) for a, b in combinations(own, 2) if is_an_edit(calls[a], calls[b])}
    return groups_of(own, expected, copies, edits)


def right_answers(catalogue: Catalogue, exercise: Exercise) -> tuple[list[CheckOutcome], list[Exchange]]:
    """What the reference answers on public inputs, and that it passes. Raises CourseError if it fails its own checks."""
    reference = catalogue.reference(exercise)
    subject = LocalRecordingRunner(reference.namespace)
    outcomes = catalogue.run(exercise, subject, reference, PUBLIC, exercise.id)
    for outcome in outcomes:
        if outcome.outcome != "passed":
            raise CourseError(
                f"the reference of {exercise.id} fails {outcome.id}: {outcome.fault or outcome.evidence}. "
                f"Next: mend it in {exercise.solution.name}, or that check in {exercise.checks.name}, "
                f"then course release {exercise.id}"
            )
    return outcomes, subject.transcript


def _is_recordable(reference: Runner, call: Call) -> bool:
    return _elements(call) <= ELEMENTS_LIMIT and is_deterministic(reference, rounded(call))


def _elements(call: Call) -> int:
    def count(value: object) -> int:
        if isinstance(value, Tensor):
            return value.numel()
        if isinstance(value, Build):
            return sum(count(t) for t in (value.state or {}).values())
        if isinstance(value, StandIn):
            return sum(count(t) for t in value.linears.values())
        return count(value.values) if isinstance(value, Entries) else 0

    return sum(count(v) for v in (*call.given, *call.cotangents))
