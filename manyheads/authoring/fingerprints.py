"""Record what the reference and every mutant answer on public inputs."""

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
from ..public.aspects import Compared
from ..public.file import Content, Fingerprints, PublicCheck, RecordedMutant, Words, save
from ..public.fingerprint import Facet, ReplyFingerprint, fingerprint_beside, fingerprint_of
from ..submission import code_digest
from .aspects import Groups, Subject, broken_aspects, choose, groups_of, within
from .kill_matrix import kill_matrix

PUBLIC = b"public inputs: drawn without the course's secret"
NUDGE = 1e-9  # relative: what cannot be told from rounding
ELEMENTS_LIMIT = 20_000  # a call with more numbers than this is not recorded
ALWAYS = {"load_error", *(kind.misconception for kind in KINDS if kind.misconception)}  # an exception may say them
_FACETS: tuple[Facet, ...] = ("dtype", "gradients", "mutated", "parameters", "attributes", "fused")


def record(catalogue: Catalogue, exercise: Exercise, stub: str) -> bytes:
    """The fingerprint file of an exercise. Raises CourseError where the reference fails its own checks."""
    reference = catalogue.reference(exercise)
    subject = LocalRecordingRunner(reference.namespace)
    outcomes = catalogue.run(exercise, subject, reference, PUBLIC, exercise.id)
    for outcome in outcomes:
        if outcome.outcome != "passed":
            raise CourseError(
                f"the reference of {exercise.id} fails {outcome.id}: {outcome.fault or outcome.evidence}. "
                f"Next: course verify {exercise.id}"
            )
    exchanges = [e for e in subject.transcript if _is_recordable(reference, e.call)]
    calls = [_rounded(e.call) for e in exchanges]
    replies = [reference.execute(call) for call in calls]
    bank = load_bank(exercise)
    book = _TraceBook([fingerprint_of(reply) for reply in replies])
    expected = tuple(_first_output(reply) for reply in replies)
    groups = {o.id: groups_of([i for i, e in enumerate(exchanges) if e.check == o.id], expected) for o in outcomes}
    bench = _Bench(calls, book, expected, tuple(groups.values()))
    right = [bench.right(path) for path in exercise.right_attempts()]
    free = {facet for found in right for facet in found.free}
    kills = kill_matrix(catalogue, exercise)
    mutants, subjects = [], [found.subject for found in right]
    for place, mutant in enumerate(bank.mutants):
        traces = _traces(LocalRunner(mutant.namespace), calls, book)
        mutants.append(book.enter(mutant.id, traces))
        subjects.append(bench.mutant(mutant.namespace, kills.of(place), traces))
    content = Content(
        exercise=exercise.id,
        stub=code_digest(stub),
        checks=tuple(_checks(outcomes, exchanges, book, free, groups, subjects)),
        traces=tuple(tuple(each) for each in book.traces),
        mutants=tuple(dict.fromkeys(mutants)),
        words={
            id_: Words(title=t.title, explanation=t.explanation, hints=t.hints)
            for id_, t in sorted(bank.texts.items())
            if id_ in ALWAYS or any(m.id == id_ for m in mutants)
        },
    )
    return save(Fingerprints(content, tuple(calls), expected))


class _TraceBook:
    """Every different trace of every call, once: mutants differ from the reference on a few calls only."""

    def __init__(self, right: Sequence[ReplyFingerprint]) -> None:
        self.traces = [[trace] for trace in right]

    def enter(self, id_: str, traces: Sequence[ReplyFingerprint | None]) -> RecordedMutant:
        """A mutant whose answers refer to the book."""
        return RecordedMutant(id=id_, answers=tuple(self._place(call, trace) for call, trace in enumerate(traces)))

    def _place(self, call: int, trace: ReplyFingerprint | None) -> int | None:
        """Numbers are compared to rounding, or another processor would keep two where this one keeps one."""
        if trace is None:
            return None
        known = self.traces[call]
        place = next((i for i, other in enumerate(known) if other.is_same(trace)), len(known))
        if place == len(known):
            known.append(trace)
        return place


@dataclass(frozen=True)
class _Right:
    """free: the facets, with their calls, in which a right attempt is not as the reference: nobody may be held to them."""

    subject: Subject
    free: frozenset[tuple[int, Facet]]


@dataclass(frozen=True)
class _Bench:
    """Puts every recorded call to trusted code."""

    calls: Sequence[Call]
    book: _TraceBook
    expected: Sequence[Tensor | None]
    groups: Sequence[Groups]

    def right(self, path: Path) -> _Right:
        """A right attempt: it fails no check."""
        facets: tuple[Facet, ...] = ("outputs", *_FACETS)
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):  # prints and warnings cost nothing
            compared = self._compared(namespace_of(path))
        free = {(i, f) for i, c in enumerate(compared) for f in facets if not c.found.agrees(c.right, (f,))}
        return _Right(Subject(frozenset(), True, broken_aspects(compared, self.groups)), frozenset(free))

    def mutant(
        self, namespace: Mapping[str, object], fails: Sequence[str], traces: Sequence[ReplyFingerprint | None]
    ) -> Subject:
        """A mutant, which fails these checks. traces: None where chance or rounding decides a reply."""
        compared = [c if t is not None else None for c, t in zip(self._compared(namespace), traces, strict=True)]
        return Subject(frozenset(fails), False, broken_aspects(compared, self.groups))

    def _compared(self, namespace: Mapping[str, object]) -> list[Compared]:
        runner = LocalRecordingRunner(namespace)
        found = []
        for i, call in enumerate(self.calls):
            right, reply = self.book.traces[i][0], runner.execute(call)
            found.append(Compared(call, right, self.expected[i], reply, fingerprint_beside(right, call, reply)))
        return found


def _checks(
    outcomes: Sequence[CheckOutcome],
    exchanges: Sequence[Exchange],
    book: _TraceBook,
    free: set[tuple[int, Facet]],
    groups: Mapping[str, Groups],
    subjects: Sequence[Subject],
) -> list[PublicCheck]:
    """A public check for every hidden one that has recorded calls."""
    checks = []
    for outcome in outcomes:
        calls = tuple(i for i, e in enumerate(exchanges) if e.check == outcome.id and (i, "outputs") not in free)
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
                facets=_facets(calls, book, free),
                asks=choose(outcome.id, within(groups[outcome.id], calls), subjects),
            )
        )
    return checks


def _facets(calls: Sequence[int], book: _TraceBook, free: set[tuple[int, Facet]]) -> tuple[Facet, ...]:
    """Outputs, and whatever else tells a mutant from the reference in these calls where outputs do not."""
    facets: list[Facet] = ["outputs"]
    for facet in _FACETS:
        if any((i, facet) in free for i in calls):
            continue
        others = ((other, book.traces[i][0]) for i in calls for other in book.traces[i][1:])
        if any(t.agrees(right, tuple(facets)) and not t.agrees(right, (facet,)) for t, right in others):
            facets.append(facet)
    return tuple(facets)


def _traces(runner: Runner, calls: Sequence[Call], book: _TraceBook) -> tuple[ReplyFingerprint | None, ...]:
    """What a mutant answers to each call; None where chance or rounding decides."""
    return tuple(
        _trace(runner, call, known) if _is_steady(runner, call) else None
        for call, known in zip(calls, book.traces, strict=True)
    )


def _trace(runner: Runner, call: Call, known: Sequence[ReplyFingerprint]) -> ReplyFingerprint | None:
    """The trace, unless rounding decides what it says: a sum that cancels, say, by which something is divided.

    Another processor gives other numbers there. Answers that are known already, the reference's first, are not such.
    """
    found = fingerprint_of(runner.execute(call))
    if any(found.is_same(each) for each in known):
        return found
    generator = torch.Generator().manual_seed(0)

    def nudged(tensor: Tensor) -> Tensor:
        if not tensor.is_floating_point() or tensor.device.type == "meta":
            return tensor
        return tensor * (1 + NUDGE * torch.randn(tensor.shape, generator=generator, dtype=tensor.dtype))

    return found if found.is_same(fingerprint_of(runner.execute(map_call(call, nudged)))) else None


def _is_recordable(reference: Runner, call: Call) -> bool:
    return _elements(call) <= ELEMENTS_LIMIT and _is_steady(reference, _rounded(call))


def _is_steady(runner: Runner, call: Call) -> bool:
    """Whether the answer does not depend on random numbers."""
    if not call.random and not (isinstance(call.subject, Build) and call.subject.training):
        return True
    first, second = (fingerprint_of(runner.execute(dataclasses.replace(call, seed=seed))) for seed in (1, 2))
    return first.agrees(second, ("outputs", "gradients"))


def _rounded(call: Call) -> Call:
    """The call with every number as float32 can hold it, for that is how it is stored."""
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
