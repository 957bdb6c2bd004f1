"""Choose the calls that an exercise's recording holds, and ask the reference to answer them.

What chance or rounding decides is not recorded: every machine would record another.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import torch
from torch import Tensor

from ..box.worker.answers import Reply
from ..box.worker.messages import Build, Call, Entries, StandIn
from ..checks.cast import rounded
from ..checks.draw import Drawn
from ..checks.local import LocalRecordingRunner
from ..checks.outcome import CheckOutcome
from ..checks.transcript import Exchange
from ..course import CourseError, Exercise
from ..diagnosis.family import Namespace
from ..diagnosis.fingerprint import PLAIN, ReplyFingerprint, fingerprint_of
from ..diagnosis.observe import Expected, first_of, is_of_copies
from ..diagnosis.varying_answers import are_alike
from ..judge.run_checks import Catalogue
from .asked_aspects import Groups, groups_of
from .recorded_call import VALUES, RecordedCall

ELEMENTS_LIMIT = 20_000  # a call with more elements is not recorded
PUBLIC = b"public inputs: drawn without the course's secret"  # in place of the secret


@dataclass(frozen=True)
class RecordedCalls:
    """The calls, in the order in which the checks ask them, and for each the check, the reply, and its fingerprint.

    outcomes: of all hidden checks. expected: what the reference returned to each call. drawn: what the checks drew.
    groups: of each check, the calls to which each aspect can be put.
    """

    outcomes: tuple[CheckOutcome, ...]
    asked_by: tuple[str, ...]
    every: tuple[RecordedCall, ...]
    replies: tuple[Reply, ...]
    right: tuple[ReplyFingerprint, ...]
    expected: tuple[Expected, ...]
    groups: Mapping[str, Groups]
    drawn: tuple[Drawn, ...] = ()

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls themselves."""
        return tuple(each.call for each in self.every)

    def of(self, check: str) -> list[int]:
        """Return the indices of a check's calls."""
        return [i for i, asking in enumerate(self.asked_by) if asking == check]


def recorded_calls(catalogue: Catalogue, exercise: Exercise) -> RecordedCalls:
    """Return the calls of an exercise. Raises what `right_answers` raises."""
    reference = catalogue.reference(exercise).namespace
    drawn: list[Drawn] = []
    outcomes, transcript = right_answers(catalogue, exercise, drawn)
    small = [(e.check, rounded(e.call)) for e in transcript if _elements(e.call) <= ELEMENTS_LIMIT]
    asked = [(check, call) for check, call in small if is_deterministic(reference, call)]
    asked_by, calls = tuple(check for check, _ in asked), tuple(call for _, call in asked)
    every = tuple(map(RecordedCall, calls))
    replies = tuple(each.answer(reference) for each in every)
    outputs = [len(call.steps) * call.form.count for call in calls]  # of the first run
    expected = tuple(tuple(o.tensor for o in reply.outputs[:n]) for reply, n in zip(replies, outputs, strict=True))
    first, copies = list(map(first_of, expected)), {i for i, call in enumerate(calls) if is_of_copies(call)}
    groups = dict[str, Groups]()
    for outcome in outcomes:
        own = [i for i, check in enumerate(asked_by) if check == outcome.id]
        edits = {(a, b) for a, b in combinations(own, 2) if is_an_edit(calls[a], calls[b])}
        groups[outcome.id] = groups_of(own, first, copies.intersection(own), edits)
    return RecordedCalls(
        outcomes=tuple(outcomes),
        asked_by=asked_by,
        every=every,
        replies=replies,
        right=tuple(map(fingerprint_of, replies)),
        expected=expected,
        groups=groups,
        drawn=tuple(sorted(drawn)),
    )


def is_an_edit(first: Call, second: Call) -> bool:
    """Return whether both ask the same once, but for some of the numbers in one tensor that is passed.

    A check of who hears whom asks such calls.
    """
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


def is_deterministic(namespace: Namespace, call: Call) -> bool:
    """Return whether the reply is the same for another random seed."""
    if not RecordedCall(call).is_drawn:
        return True
    asked = (RecordedCall(dataclasses.replace(call, seed=call.seed + n)) for n in range(2))
    first, second = (fingerprint_of(each.answer(namespace)) for each in asked)
    return first.agrees(second, VALUES)


def is_same_reply(a: Reply, b: Reply) -> bool:
    """Return whether both have the same fingerprint because they are the same to the last bit, which is seen sooner.

    False proves nothing: NaN equals nothing.
    """
    if a.raised is not None or b.raised is not None:
        return False
    (form, tensors), (other_form, others) = _parts_of(a), _parts_of(b)
    return form == other_form and all(map(_is_same_tensor, tensors, others))


def _parts_of(reply: Reply) -> tuple[object, list[Tensor | None]]:
    """Return what of a reply is no number, and its tensors."""
    names = sorted(reply.gradients)
    form = [(out.kind, out.dtype, out.shape) for out in reply.outputs], names, [of(reply) for of in PLAIN.values()]
    return form, [*(out.tensor for out in reply.outputs), *(reply.gradients[name] for name in names)]


def _is_same_tensor(a: Tensor | None, b: Tensor | None) -> bool:
    if a is None or b is None:
        return a is b
    if (a.dtype, a.device, a.shape) != (b.dtype, b.device, b.shape) or a.device.type == "meta":
        return False
    return torch.equal(a, b)
