"""Choose the calls that an exercise's recording holds, and put them to trusted code: to the
reference, to every mutant.

What chance or rounding decides is not recorded: every machine would record another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from pathlib import Path

import torch
from torch import Tensor

from ..box.worker import wire
from ..box.worker.answers import Reply
from ..box.worker.execute import execute
from ..box.worker.messages import Build, Call
from ..checks.cast import cast, map_call, rounded
from ..checks.draw import Drawn
from ..checks.local import LocalRecordingRunner, namespace_of
from ..checks.outcome import CheckOutcome
from ..checks.transcript import Exchange, target_of
from ..course import CourseError, Exercise
from ..diagnosis.family import Namespace
from ..diagnosis.fingerprint import (
    REPLY_FIELDS,
    ReplyField,
    ReplyFingerprint,
    fingerprint_beside,
    fingerprint_of,
    has_no_numbers,
)
from ..diagnosis.observe import Expected, is_of_copies, settled
from ..diagnosis.recording import RecordedCondition
from ..diagnosis.varying_answers import are_alike
from ..judge.run_checks import CONDITIONS, Catalogue
from .asked_aspects import Groups, groups_of
from .record_conditions import PUBLIC, recorded_conditions
from .time_limit import must_end

ELEMENTS_LIMIT = 20_000  # a call with more elements is not recorded
FEW = 2  # copies
VALUES: tuple[ReplyField, ...] = ("outputs", "gradients")
# Relative changes of the inputs, larger than a rounding error, in float64 and in float32, each with
# a seed: up or down, a number near the middle between two roundings is moved to the other side.
NUDGES = ((1e-9, 0),)
NARROW_NUDGES = ((2e-6, 0), (-2e-6, 0), (2e-6, 1), (-2e-6, 1))


class RecordedCall:
    """A call that is put to trusted code. Whatever depends on the call alone is made once."""

    def __init__(self, call: Call) -> None:
        self.call, self._cast, self._is_of_copies = (
            call,
            cast(call, call.dtype or "float64"),
            is_of_copies(call),
        )
        self._nudged, self._of = cache(self._nudge), cache(self._cut)
        self.in_single = cache(lambda: RecordedCall(replace(call, dtype="float32")))

    def full_reply(self, namespace: Namespace, only_values: bool = False) -> Reply:
        """Return the reply, about all copies.

        Code that raises for two copies is not asked for hundreds: it raises there, too, and a mask
        sized by the batch takes 2 GiB.
        """
        if self._is_of_copies and self.call.cotangent is None:
            few = self._of(FEW).full_reply(namespace, only_values)
            if few.raised is not None:
                return few
        return execute(namespace, self._cast, "", only_values=only_values)

    def answer(self, namespace: Namespace, only_values: bool = False) -> Reply:
        """Return what is recorded of the reply: of many copies, the extremes."""
        return settled(self.call, self.full_reply(namespace, only_values))

    @property
    def is_drawn(self) -> bool:
        """Whether chance may decide a reply."""
        return self.call.random or (
            isinstance(self.call.subject, Build) and self.call.subject.training
        )

    def is_deterministic(self, namespace: Namespace) -> bool:
        """Return whether the reply is the same for another random seed."""
        if not self.is_drawn:
            return True
        again = RecordedCall(replace(self.call, seed=self.call.seed + 1))
        return fingerprint_of(self.answer(namespace)).agrees(
            fingerprint_of(again.answer(namespace)), VALUES
        )

    def is_fixed(
        self,
        namespace: Namespace,
        actual: ReplyFingerprint,
        expected: ReplyFingerprint,
        keep_equal: bool = False,
    ) -> bool:
        """Return whether neither chance nor rounding decides this reply, as in a division by a sum
        that cancels.

        Another processor computes other numbers there.

        Args:
            namespace: the code that replied.
            actual: its reply.
            expected: the reference's reply.
            keep_equal: do not nudge equal numbers (`has_exact_sums`), which would be equal no more.
        """
        if (actual.raised or self.call.only_build) and not self.is_drawn:  # there are no numbers
            return True
        if actual.raised == "other":  # it agrees with nothing
            return False
        # Where sizes depend on how many copies there are, they are others.
        recorded_call = self._of(FEW + 1) if actual.raised and self._is_of_copies else self
        has_report = isinstance(self.call.subject, Build) and bool(self.call.subject.report)
        only_values = not has_report and not has_no_numbers(expected)
        facets = VALUES if only_values else None
        is_wide = self.call.autocast is None and {self.call.dtype, *actual.dtype} <= {
            "float64",
            None,
        }
        nudges = NUDGES if is_wide else NARROW_NUDGES
        replies = (
            recorded_call._nudged(seed, by, only_values, keep_equal).answer(namespace, only_values)
            for by, seed in nudges
        )
        return all(
            actual.is_same(fingerprint_beside(expected, self.call, reply), facets)
            for reply in replies
        )

    def _nudge(self, seed: int, by: float, only_values: bool, keep_equal: bool) -> RecordedCall:
        generator = torch.Generator().manual_seed(seed)

        def change(tensor: Tensor) -> Tensor:
            if not tensor.is_floating_point() or tensor.device.type == "meta":
                return tensor
            nudged = tensor * (
                1 + by * torch.randn(tensor.shape, generator=generator, dtype=tensor.dtype)
            )
            return torch.where(has_exact_sums(tensor), tensor, nudged) if keep_equal else nudged

        another, watch = self.call.seed + self.is_drawn, self.call.watch and not only_values
        return RecordedCall(map_call(replace(self.call, seed=another, watch=watch), change))

    def _cut(self, few: int) -> RecordedCall:
        """Return the same call about a few of the copies."""
        many = next(len(value) for value in self.call.args if isinstance(value, Tensor))

        def change(value: object) -> object:
            is_of_all = isinstance(value, Tensor) and value.dim() > 0 and len(value) == many
            return value[:few] if is_of_all else value  # type: ignore[index]

        return RecordedCall(self.call.map(change))


@dataclass(frozen=True)
class RecordedCalls:
    """The calls, in the order in which the checks ask them, and for each the check, and the reply's
    fingerprint.

    outcomes: of all hidden checks. expected: what the reference returned to each call. drawn: what
        the checks drew.
    groups: of each check, the calls to which each aspect can be put.
    conditions: what each function must do before its checks count.
    """

    outcomes: tuple[CheckOutcome, ...]
    asked_by: tuple[str, ...]
    entries: tuple[RecordedCall, ...]
    fingerprints: tuple[ReplyFingerprint, ...]
    expected: tuple[Expected, ...]
    groups: Mapping[str, Groups]
    drawn: tuple[Drawn, ...] = ()
    conditions: tuple[RecordedCondition, ...] = ()

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls themselves."""
        return tuple(entry.call for entry in self.entries)

    def call_indices(self, check: str) -> list[int]:
        """Return the indices of a check's calls."""
        return [i for i, asking in enumerate(self.asked_by) if asking == check]


def recorded_calls(catalogue: Catalogue, exercise: Exercise) -> RecordedCalls:
    """Return the calls of an exercise. Raises what `right_answers` raises."""
    reference, drawn = catalogue.reference(exercise).namespace, list[Drawn]()
    outcomes, transcript = right_answers(catalogue, exercise, drawn)
    small = [
        (e.check, RecordedCall(rounded(e.call)))
        for e in transcript
        if elements(e.call) <= ELEMENTS_LIMIT
    ]
    deterministic = [(check, entry) for check, entry in small if entry.is_deterministic(reference)]
    asked_by, entries = (
        tuple(check for check, _ in deterministic),
        tuple(entry for _, entry in deterministic),
    )
    calls = [entry.call for entry in entries]
    replies = tuple(entry.answer(reference) for entry in entries)
    outputs = [len(call.steps) * call.form.count for call in calls]  # of the first run
    expected = tuple(
        tuple(o.tensor for o in reply.outputs[:n])
        for reply, n in zip(replies, outputs, strict=True)
    )
    copies = {i for i, call in enumerate(calls) if is_of_copies(call)}
    groups = dict[str, Groups]()
    for outcome in outcomes:
        check_calls = [i for i, check in enumerate(asked_by) if check == outcome.id]
        edits = {(a, b) for a, b in combinations(check_calls, 2) if is_an_edit(calls[a], calls[b])}
        groups[outcome.id] = groups_of(
            check_calls, expected, copies.intersection(check_calls), edits
        )
    fingerprints = tuple(map(fingerprint_of, replies))
    conditions = recorded_conditions(catalogue, exercise, transcript)
    drawn_once = tuple(sorted(drawn))
    return RecordedCalls(
        tuple(outcomes), asked_by, entries, fingerprints, expected, groups, drawn_once, conditions
    )


def has_exact_sums(tensor: Tensor) -> Tensor:
    """Return for each number whether it stands in the tensor more than once, and is as short as
    4.0.

    Sums and products of such numbers are exact, so every processor computes the same.
    """
    values, places, counts = tensor.unique(return_inverse=True, return_counts=True)
    is_short = values == values.half().to(values.dtype)
    is_exact: Tensor = (counts > 1) & is_short
    return is_exact[places]


def is_an_edit(first: Call, second: Call) -> bool:
    """Return whether both ask the same once, but for some of the numbers in one tensor that is
    passed.

    A check of who hears whom asks such calls.
    """
    has_more = (
        first.then
        or second.then
        or first.kwargs
        or second.kwargs
        or len(first.args) != len(second.args)
    )
    # first, for only then their arguments can be compared
    if has_more or not are_alike(first.subject, second.subject):
        return False
    match [(a, b) for a, b in zip(first.args, second.args, strict=True) if not are_alike(a, b)]:
        case [(Tensor() as a, Tensor() as b)] if (a.shape, a.dtype) == (b.shape, b.dtype):
            return "meta" not in (a.device.type, b.device.type) and bool((a == b).any())
    return False


def right_answers(
    catalogue: Catalogue, exercise: Exercise, drawn: list[Drawn] | None = None
) -> tuple[list[CheckOutcome], list[Exchange]]:
    """Return the outcomes of the reference on public inputs, and its answers.

    drawn: a list to which everything that the checks draw is added. Raises CourseError if it fails
        its own checks.
    """
    reference = catalogue.reference(exercise)
    subject, again = LocalRecordingRunner(reference.namespace), f"then course release {exercise.id}"
    with must_end(f"the reference of {exercise.id}", exercise.solution, f"mend it, {again}"):
        outcomes = catalogue.run(exercise, subject, reference, PUBLIC, exercise.id, drawn=drawn)
    if failed := next((outcome for outcome in outcomes if outcome.outcome != "passed"), None):
        if failed.fault:
            problem = f"a check of {exercise.id} raises an error of its own, {failed.fault}"
            raise CourseError(f"{problem}. Next: mend it in {exercise.checks.name}, {again}")
        problem = (
            f"the reference of {exercise.id} fails {failed.id}: "
            f"{evidence_for_author(failed, subject.transcript, exercise.solution)}"
        )
        mend = f"mend it in {exercise.solution.name}, or that check in {exercise.checks.name}"
        raise CourseError(f"{problem}. Next: {mend}, {again}")
    targets = dict.fromkeys(target_of(exchange.call) for exchange in subject.transcript)
    if unknown := next(
        (name for name in catalogue.conditions(exercise) if name not in targets), None
    ):
        problem = (
            f"{CONDITIONS} in {exercise.checks.name} names {unknown}, and its checks ask "
            f"{', '.join(targets)}"
        )
        raise CourseError(f"{problem}. Next: mend that name, {again}")
    return outcomes, subject.transcript


def evidence_for_author(failed: CheckOutcome, transcript: Sequence[Exchange], path: Path) -> str:
    """Return why trusted code fails a check.

    Its author may read what students may not: Python's message, with the line.

    path: the file of the code.
    """
    namespace = namespace_of(path)
    calls = [exchange.call for exchange in transcript if exchange.check == failed.id]
    missing = next((name for call in calls if (name := target_of(call)) not in namespace), None)
    if missing is not None:
        return f"it asks for {missing}, which {path.name} does not define"
    if failed.raised is None:
        return failed.fault or failed.evidence
    replies = (execute(namespace, cast(call, call.dtype or "float64"), str(path)) for call in calls)
    raised = next((reply.raised for reply in replies if reply.raised is not None), failed.raised)
    line = f" ({path.name}, line {raised.line})" if raised.line else ""
    return f"raised {raised.type}: {raised.message}{line}"


def elements(call: Call) -> int:
    """Return how many numbers a call holds in its tensors."""
    wire.to_body(call, tensors := list[Tensor]())
    return sum(tensor.numel() for tensor in tensors)


class Replies:
    """Different replies to one call, in the order in which they were added."""

    def __init__(
        self, *fingerprints: ReplyFingerprint, facets: tuple[ReplyField, ...] = REPLY_FIELDS
    ) -> None:
        """facets: in which replies must agree to be the same."""
        self._facets, self.every = facets, [*fingerprints]

    def find(self, fingerprint: ReplyFingerprint) -> int | None:
        """Return the index of the first reply that is the same, numbers to rounding; None if there
        is none.
        """
        return next(
            (i for i, reply in enumerate(self.every) if reply.is_same(fingerprint, self._facets)),
            None,
        )

    def add(self, reply: ReplyFingerprint) -> int:
        """Add a reply. Returns its index."""
        self.every.append(reply)
        return len(self.every) - 1
