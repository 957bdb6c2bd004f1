"""Record how the reference and every mutant answer on public inputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import torch
from torch import Tensor

from ..box.worker.answers import Reply
from ..box.worker.messages import Build, Call, Entries, StandIn
from ..checks.cast import map_call
from ..checks.explain import KINDS
from ..checks.implementation import LocalRunner, Runner
from ..checks.local import LocalRecordingRunner
from ..checks.outcome import CheckOutcome
from ..checks.recording import Exchange
from ..checks.trusted import namespace_of
from ..course import CourseError, Exercise
from ..diagnosis import load_bank
from ..judge.catalogue import Catalogue
from ..public.aspects import Compared, compared
from ..public.file import Content, Fingerprints, PublicCheck, RecordedMutant, Words, save
from ..public.fingerprint import Facet, ReplyFingerprint, fingerprint_of
from ..submission import code_digest
from .aspects import Groups, Subject, broken_aspects, choose, groups_of, within
from .kill_matrix import kill_matrix

PUBLIC = b"public inputs: drawn without the course's secret"
NUDGE, NARROW_NUDGE = 1e-9, 1e-6  # relative changes of the inputs as small as a rounding error: in float64, in float32
ELEMENTS_LIMIT = 20_000  # a call with more elements is not recorded
ALWAYS = {
    "load_error",
    *(kind.misconception for kind in KINDS if kind.misconception),
}  # an exception or an unreadable file may prove them
_FACETS: tuple[Facet, ...] = ("dtype", "gradients", "mutated", "parameters", "attributes", "fused")


def record(catalogue: Catalogue, exercise: Exercise, stub: str) -> bytes:
    """Make the fingerprint file of an exercise. Raises what `right_answers` raises."""
    reference = catalogue.reference(exercise)
    outcomes, transcript = right_answers(catalogue, exercise)
    exchanges = [e for e in transcript if _is_recordable(reference, e.call)]
    calls = [_rounded(e.call) for e in exchanges]
    replies = [reference.execute(call) for call in calls]
    bank = load_bank(exercise)
    known = _KnownReplies([fingerprint_of(reply) for reply in replies])
    expected = tuple(_first_output(reply) for reply in replies)
    groups = {o.id: groups_of([i for i, e in enumerate(exchanges) if e.check == o.id], expected) for o in outcomes}
    bench = _Bench(calls, known, expected, tuple(groups.values()))
    right = [bench.right(path) for path in exercise.right_attempts()]
    disputed = {facet for found in right for facet in found.disputed}
    kills = kill_matrix(catalogue, exercise)
    mutants, subjects = [], [found.subject for found in right]
    for place, mutant in enumerate(bank.mutants):
        found = _replies(LocalRunner(mutant.namespace), calls, known)
        mutants.append(known.add(mutant.id, found))
        subjects.append(bench.mutant(mutant.namespace, kills.of(place), found))
    content = Content(
        exercise=exercise.id,
        stub=code_digest(stub),
        checks=tuple(_checks(outcomes, exchanges, known, disputed, groups, subjects)),
        replies=tuple(tuple(each) for each in known.replies),
        mutants=tuple(dict.fromkeys(mutants)),
        words={
            id_: Words(title=t.title, explanation=t.explanation, hints=t.hints)
            for id_, t in sorted(bank.texts.items())
            if id_ in ALWAYS or any(m.id == id_ for m in mutants)
        },
    )
    return save(Fingerprints(content, tuple(calls), expected))


def right_answers(catalogue: Catalogue, exercise: Exercise) -> tuple[list[CheckOutcome], list[Exchange]]:
    """What the reference answers on public inputs, and that it passes. Raises CourseError if it fails its own checks."""
    reference = catalogue.reference(exercise)
    subject = LocalRecordingRunner(reference.namespace)
    outcomes = catalogue.run(exercise, subject, reference, PUBLIC, exercise.id)
    for outcome in outcomes:
        if outcome.outcome != "passed":
            raise CourseError(
                f"the reference of {exercise.id} fails {outcome.id}: {outcome.fault or outcome.evidence}. "
                f"Next: course verify {exercise.id}"
            )
    return outcomes, subject.transcript


class _KnownReplies:
    """The different replies to every call, each stored once: a mutant differs from the reference on a few calls only."""

    def __init__(self, right: Sequence[ReplyFingerprint]) -> None:
        self.replies = [[each] for each in right]

    def add(self, id_: str, found: Sequence[ReplyFingerprint | None]) -> RecordedMutant:
        """Store a mutant's replies. The result refers to them by index."""
        return RecordedMutant(id=id_, answers=tuple(self._place(call, each) for call, each in enumerate(found)))

    def _place(self, call: int, found: ReplyFingerprint | None) -> int | None:
        """The index of the reply. Numbers are compared to rounding, so that every processor stores the same replies."""
        if found is None:
            return None
        known = self.replies[call]
        place = next((i for i, other in enumerate(known) if other.is_same(found)), len(known))
        if place == len(known):
            known.append(found)
        return place


@dataclass(frozen=True)
class _Right:
    """disputed: the facets, with their calls, in which a right attempt differs from the reference: no check compares them."""

    subject: Subject
    disputed: frozenset[tuple[int, Facet]]


@dataclass(frozen=True)
class _Bench:
    """Puts every recorded call to trusted code."""

    calls: Sequence[Call]
    known: _KnownReplies
    expected: Sequence[Tensor | None]
    groups: Sequence[Groups]

    def right(self, path: Path) -> _Right:
        """A right attempt: it fails no check."""
        facets: tuple[Facet, ...] = ("outputs", *_FACETS)
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):  # prints and warnings cost nothing
            answers = self._compared(namespace_of(path))
        disputed = {(i, f) for i, c in enumerate(answers) for f in facets if not c.found.agrees(c.right, (f,))}
        return _Right(Subject(frozenset(), True, broken_aspects(answers, self.groups)), frozenset(disputed))

    def mutant(
        self, namespace: Mapping[str, object], fails: Sequence[str], replies: Sequence[ReplyFingerprint | None]
    ) -> Subject:
        """A mutant, which fails these checks. replies: None where chance or rounding decides a reply.

        What rounding decides differs from processor to processor and is left out; chance is drawn from the call's seed.
        """
        runner = LocalRunner(namespace)
        answers = [
            each if reply is not None or not _is_deterministic(runner, each.call) else None
            for each, reply in zip(self._compared(namespace), replies, strict=True)
        ]
        return Subject(frozenset(fails), False, broken_aspects(answers, self.groups))

    def _compared(self, namespace: Mapping[str, object]) -> list[Compared]:
        runner = LocalRecordingRunner(namespace)
        recorded = zip(self.calls, self.known.replies, self.expected, strict=True)
        return [compared(call, replies[0], expected, runner.execute(call)) for call, replies, expected in recorded]


def _checks(
    outcomes: Sequence[CheckOutcome],
    exchanges: Sequence[Exchange],
    known: _KnownReplies,
    disputed: set[tuple[int, Facet]],
    groups: Mapping[str, Groups],
    subjects: Sequence[Subject],
) -> list[PublicCheck]:
    """A public check for every hidden one that has recorded calls."""
    checks = []
    for outcome in outcomes:
        calls = tuple(i for i, e in enumerate(exchanges) if e.check == outcome.id and (i, "outputs") not in disputed)
        if not calls:
            continue
        checks.append(
            PublicCheck(
                id=outcome.id,
                title=outcome.title,
                layer=outcome.layer,
                hint=outcome.hint,
                points=outcome.points,
                calls=calls,
                facets=_facets(calls, known, disputed),
                asks=choose(outcome.id, within(groups[outcome.id], calls), subjects),
            )
        )
    return checks


def _facets(calls: Sequence[int], known: _KnownReplies, disputed: set[tuple[int, Facet]]) -> tuple[Facet, ...]:
    """Outputs, and the other facets that distinguish a mutant from the reference in these calls if outputs do not."""
    facets: list[Facet] = ["outputs"]
    for facet in _FACETS:
        if any((i, facet) in disputed for i in calls):
            continue
        others = ((other, known.replies[i][0]) for i in calls for other in known.replies[i][1:])
        if any(each.agrees(right, tuple(facets)) and not each.agrees(right, (facet,)) for each, right in others):
            facets.append(facet)
    return tuple(facets)


def _replies(runner: Runner, calls: Sequence[Call], known: _KnownReplies) -> tuple[ReplyFingerprint | None, ...]:
    """The fingerprint of a mutant's reply to each call; None where random numbers or rounding decide the reply."""
    return tuple(
        _reply(runner, call, there) if _is_deterministic(runner, call) else None
        for call, there in zip(calls, known.replies, strict=True)
    )


def _reply(runner: Runner, call: Call, known: Sequence[ReplyFingerprint]) -> ReplyFingerprint | None:
    """The fingerprint of the reply; None if rounding decides the reply, for example in a division by a sum that cancels.

    Another processor computes other numbers there. A reply that is known already does not depend on rounding.
    """
    found = fingerprint_of(runner.execute(call))
    if any(found.is_same(each) for each in known):
        return found
    generator = torch.Generator().manual_seed(0)
    is_wide = call.dtype in (None, "float64") and call.autocast is None and {*found.dtype} <= {"float64"}
    nudge = NUDGE if is_wide else NARROW_NUDGE

    def nudged(tensor: Tensor) -> Tensor:
        if not tensor.is_floating_point() or tensor.device.type == "meta":
            return tensor
        return tensor * (1 + nudge * torch.randn(tensor.shape, generator=generator, dtype=tensor.dtype))

    return found if found.is_same(fingerprint_of(runner.execute(map_call(call, nudged)))) else None


def _is_recordable(reference: Runner, call: Call) -> bool:
    return _elements(call) <= ELEMENTS_LIMIT and _is_deterministic(reference, _rounded(call))


def _is_deterministic(runner: Runner, call: Call) -> bool:
    """Whether the reply is the same for different random seeds."""
    if not call.random and not (isinstance(call.subject, Build) and call.subject.training):
        return True
    first, second = (fingerprint_of(runner.execute(dataclasses.replace(call, seed=seed))) for seed in (1, 2))
    return first.agrees(second, ("outputs", "gradients"))


def _rounded(call: Call) -> Call:
    """The call with every number rounded to float32, in which the file stores it."""
    return map_call(call, lambda t: t.float().double() if t.is_floating_point() else t)


def _elements(call: Call) -> int:
    def count(value: object) -> int:
        if isinstance(value, Tensor):
            return value.numel()
        if isinstance(value, Build):
            return sum(count(t) for t in (value.state or {}).values())
        if isinstance(value, StandIn):
            return sum(count(t) for t in value.linears.values())
        return count(value.values) if isinstance(value, Entries) else 0

    return sum(count(v) for v in (call.subject, *call.args, *call.kwargs.values(), call.cotangent))


def _first_output(reply: Reply) -> Tensor | None:
    return reply.outputs[0].tensor if reply.outputs else None
