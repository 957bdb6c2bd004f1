"""Choose the calls that an exercise's recording holds, and ask the reference to answer them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

from torch import Tensor

from ..box.worker.messages import Build, Call, Entries, StandIn
from ..checks.cast import rounded
from ..checks.draw import Drawn
from ..checks.local import LocalRecordingRunner
from ..checks.outcome import CheckOutcome
from ..checks.transcript import Exchange
from ..course import CourseError, Exercise
from ..diagnosis.agree import is_comparable
from ..diagnosis.comparison import first_of
from ..diagnosis.dropout_extremes import is_of_copies
from ..diagnosis.fingerprint import fingerprint_of
from ..diagnosis.varying_answers import are_alike
from ..judge.catalogue import Catalogue
from .asked_aspects import Groups, groups_of
from .nondeterminism import is_deterministic
from .public_calls import RecordedCalls, SettledRunner, calls_of, expected_of

# Two calls of which one is the other with an edit of an argument: a check of who hears whom asks such calls.


def is_an_edit(first: Call, second: Call) -> bool:
    """Return whether both ask the same once, but for some of the numbers in one tensor that is passed."""
    if first.then or second.then or first.kwargs or second.kwargs or len(first.args) != len(second.args):
        return False
    if not are_alike(first.subject, second.subject):
        return False
    others = [(a, b) for a, b in zip(first.args, second.args, strict=True) if not are_alike(a, b)]
    if len(others) != 1:
        return False
    a, b = others[0]
    if not isinstance(a, Tensor) or not isinstance(b, Tensor) or a.shape != b.shape or a.dtype != b.dtype:
        return False
    return "meta" not in (a.device.type, b.device.type) and bool((a == b).any())


# The calls that an exercise's fingerprint file records, and how the reference answers them.

ELEMENTS_LIMIT = 20_000  # a call with more elements is not recorded
PUBLIC = b"public inputs: drawn without the course's secret"  # in place of the secret


def recorded_calls(catalogue: Catalogue, exercise: Exercise) -> RecordedCalls:
    """Return the calls of an exercise. Raises what `right_answers` raises."""
    reference = SettledRunner(catalogue.reference(exercise).namespace)
    drawn: list[Drawn] = []
    outcomes, transcript = right_answers(catalogue, exercise, drawn)
    places = _places(transcript)
    small = [i for i, e in enumerate(transcript) if _elements(e.call) <= ELEMENTS_LIMIT]
    recordable = [i for i in small if is_deterministic(reference, rounded(transcript[i].call))]
    exchanges = [transcript[i] for i in recordable]
    asked_by = tuple(e.check for e in exchanges)
    calls = tuple(rounded(e.call) for e in exchanges)
    replies = tuple(reference.execute(call) for call in calls)
    expected = [first_of(expected_of(call, reply)) for call, reply in zip(calls, replies, strict=True)]
    copies = {i for i, call in enumerate(calls) if is_of_copies(call)}
    return RecordedCalls(
        outcomes=tuple(outcomes),
        asked_by=asked_by,
        nth=tuple(places[i] for i in recordable),
        calls=calls,
        replies=replies,
        right=tuple(fingerprint_of(reply) for reply in replies),
        groups={o.id: _groups(calls_of(o.id, asked_by), calls, expected, copies) for o in outcomes},
        drawn=tuple(sorted(drawn)),
    )


def _places(transcript: Sequence[Exchange]) -> list[int]:
    """Return for each exchange how many comparable calls the same check has made before it."""
    made = Counter[str]()
    places = []
    for exchange in transcript:
        places.append(made[exchange.check])
        made[exchange.check] += is_comparable(exchange.call)
    return places


def _groups(own: Sequence[int], calls: Sequence[Call], expected: Sequence[Tensor | None], copies: set[int]) -> Groups:
    edits = {(a, b) for a, b in combinations(own, 2) if is_an_edit(calls[a], calls[b])}
    return groups_of(own, expected, copies, edits)


def right_answers(
    catalogue: Catalogue, exercise: Exercise, drawn: list[Drawn] | None = None
) -> tuple[list[CheckOutcome], list[Exchange]]:
    """Return the outcomes of the reference on public inputs, and its answers.

    drawn: a list to which everything that the checks draw is added. Raises CourseError if it fails its own checks.
    """
    reference = catalogue.reference(exercise)
    subject = LocalRecordingRunner(reference.namespace)
    outcomes = catalogue.run(exercise, subject, reference, PUBLIC, exercise.id, drawn=drawn)
    for outcome in outcomes:
        if outcome.outcome != "passed":
            raise CourseError(
                f"the reference of {exercise.id} fails {outcome.id}: {outcome.fault or outcome.evidence}. "
                f"Next: mend it in {exercise.solution.name}, or that check in {exercise.checks.name}, "
                f"then course release {exercise.id}"
            )
    return outcomes, subject.transcript


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
