"""What recorded calls show of each function that an exercise asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

from ..box.worker.answers import Raised
from ..checks.explain import explain, is_shape_fault, kind_of, says_unwritten
from ..checks.outcome import AttemptRaised, CheckFailed
from ..checks.sanitize import sanitize
from ..checks.transcript import target_of
from ..course.shapes import Signature
from ..diagnosis.broken_aspect import first_broken, groups_of
from ..diagnosis.comparison import Comparison
from ..diagnosis.diagnosis import NOTHING, Diagnosis
from ..diagnosis.proofs import proven_by_answer
from ..diagnosis.recording import Fingerprints, PublicCheck, differs
from ..diagnosis.row import Row
from ..result import CheckResult, FunctionResult
from .axes import Signatures, axes_of
from .function_states import Seen, function_results, place_to_tell, seen_in, written_and_wrong
from .locate import Ways, with_functions

# Describe an exception of a student's code to the student, on the student's own machine.


def describe_exception(raised: Raised, due: str = "") -> str:
    """Return one sentence with the exception's message. On a student's own machine the message reveals nothing hidden.

    due: a sentence about what is due in its place.
    """
    says_nothing = says_unwritten(raised) or raised.type == "SystemExit"  # whose message is a number, or None
    own = "" if says_nothing else sanitize(raised.message)
    return ". ".join(filter(None, (explain(raised), own and f"Python says: {own}".removesuffix("."), due)))


def evidence_of(error: CheckFailed) -> tuple[str, Raised | None]:
    """Return what a student reads of a check that failed, and the exception, if there was one."""
    if isinstance(error, AttemptRaised):
        return describe_exception(error.raised, error.due), error.raised
    return str(error), None


@dataclass(frozen=True)
class FunctionFailure:
    """Why a function fails a check: what was seen, in which calls, and the exception, if there was one.

    means: the misconception that what was seen means.
    """

    check: str
    title: str
    evidence: str
    raised: Raised | None = None
    calls: tuple[int, ...] = ()
    means: str = ""


@dataclass(frozen=True)
class Functions:
    """What is known of each function; the checks and the misconceptions, each with the function that it belongs to."""

    functions: tuple[FunctionResult, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    diagnosis: Diagnosis = NOTHING


def functions_of(
    fingerprints: Fingerprints,
    seen: Mapping[int, Comparison],
    checks: Sequence[CheckResult],
    diagnosis: Diagnosis,
    source: str,
    in_single: Set[int] = frozenset(),
    signatures: Signatures = MappingProxyType({}),
) -> Functions:
    """Return what is known of each function. A check stops at the first that fails it, but all of its calls were made.

    in_single: the calls that were asked in float32 because the attempt cannot do float64 somewhere: their dtype says nothing.
    signatures: of each function, where they are known.
    """
    names = dict.fromkeys(map(target_of, fingerprints.calls))  # in the order of their definitions
    failures = {name: _failures(fingerprints, seen, checks, name) for name in names}
    due = {i: replace(e, found=replace(e.found, dtype=e.right.dtype)) for i, e in seen.items() if i in in_single}
    ways = _ways(fingerprints, {**seen, **due})
    # A misconception may show itself in a function that passes what is visible, and break those that use it.
    shown = {next((name for name in names if ways.is_seen(each.id, name)), "") for each in diagnosis.named}
    due_names = {name: arguments_due(signatures.get(name, ())) for name in names}
    found = [replace(seen_in(name, seen.values()), arguments=due_names[name]) for name in names]
    found = [replace(each, is_wrong=bool(failures[each.name]) or each.name in shown) for each in found]
    later, first = _asked_later(fingerprints, checks), next((other.name for other in found if other.is_wrong), "")
    found = [replace(other, stopped_at=first if other.name in later else "") for other in found]
    wrong, proven = written_and_wrong(found, source), _proven(fingerprints, seen)
    placed = with_functions(diagnosis, wrong, source, proven, ways, fingerprints.content.words)
    shows = partial(_shows, fingerprints, seen, ways)
    to_tell = {name: _to_tell(failures[name], _of(name, placed), shows) for name in names}
    found = [other.told(f.title, f.evidence, f.raised) if (f := to_tell[other.name]) else other for other in found]
    found = [_with_sizes(each, failures[each.name], seen, signatures) for each in found]
    functions = function_results(found, source, {part.function for part in placed.every})
    wrong = [function.name for function in functions if function.state == "wrong"]
    return Functions(functions, tuple(_with_cause(check, wrong, failures) for check in checks), placed)


def _asked_later(fingerprints: Fingerprints, checks: Sequence[CheckResult]) -> set[str]:
    """Return the functions of which checks ask more that are put only where all before them pass."""
    told = {check.id for check in checks}
    groups = (g for c in fingerprints.content.visible if c.id not in told for ask in c.asks for g in ask.calls)
    return {target_of(fingerprints.calls[group[-1]]) for group in groups}


def _of(name: str, diagnosis: Diagnosis) -> list[str]:
    """Return the ids of the misconceptions that are named in a function, in their order."""
    return [each.id for each in diagnosis.named if name in (each.function, *each.also_in)]


def _to_tell(
    failures: Sequence[FunctionFailure], named: Sequence[str], shows: Callable[[FunctionFailure, str], bool]
) -> FunctionFailure | None:
    """Return what is told of a function: what shows its first misconception; else what shows none of the others; else the first."""
    if not failures or not failures[0].calls:  # what ended the process comes first
        return next(iter(failures), None)
    return min(failures, key=lambda failure: place_to_tell(named, partial(shows, failure)))


def _shows(
    fingerprints: Fingerprints,
    seen: Mapping[int, Comparison],
    ways: Ways[int, int],
    failure: FunctionFailure,
    name: str,
) -> bool:
    """Return whether a misconception alone would be seen so, as far as is known."""
    return (
        name == failure.means
        or any(name in _proven_by(fingerprints, i, seen[i]) for i in failure.calls)
        or any(ways.alike(m, i) for m in ways.mutants(name) for i in failure.calls)
    )


def _with_sizes(
    function: Seen, failures: Sequence[FunctionFailure], seen: Mapping[int, Comparison], signatures: Signatures
) -> Seen:
    """Return the same; where shapes do not fit, its evidence says which sizes of the call the exception's numbers are."""
    failure = next((each for each in failures if each.evidence == function.evidence and each.calls), None)
    if failure is None or function.raised is None or not _tells_sizes(function.raised):
        return function
    at = next(i for i in failure.calls if seen[i].reply.raised is not None)
    returned = next((tensor.shape for tensor in seen[at].expected if tensor is not None), ())
    every = (axes_of(each, seen[at].call, returned, signatures) for each in signatures.get(function.name, ()))
    said = next((axes.said(function.raised.message) for axes in every if axes is not None), "")
    return replace(function, evidence=f"{function.evidence.removesuffix('.')}. {said}") if said else function


def _tells_sizes(raised: Raised) -> bool:
    """Return whether the message holds sizes that do not fit each other."""
    return is_shape_fault(raised) or "is invalid for input of size" in raised.message


def arguments_due(signatures: Sequence[Signature]) -> tuple[str, ...]:
    """Return the names of a function's arguments; of a class none."""
    return tuple(each.name for s in signatures[:1] if s.build is None for each in s.call)


def _failures(
    fingerprints: Fingerprints, seen: Mapping[int, Comparison], checks: Sequence[CheckResult], name: str
) -> list[FunctionFailure]:
    """Return the checks that the function fails, in the order of their layers."""
    told = {check.id: check for check in checks}
    visible = sorted((c for c in fingerprints.content.visible if c.id in told), key=lambda c: c.layer)
    return [each for check in visible if (each := _failure(check, told[check.id], seen, name))]


def _failure(
    check: PublicCheck, result: CheckResult, seen: Mapping[int, Comparison], name: str
) -> FunctionFailure | None:
    if result.function == name and result.outcome in ("timeout", "crashed"):
        return FunctionFailure(check.id, check.title, result.evidence)
    own = [each for each in groups_of(check, seen) if target_of(seen[each[1][-1]].call) == name]
    # That a method is not written yet is no news: what is wrong beside it goes before it.
    own = sorted(own, key=lambda each: any(says_unwritten(seen[i].reply.raised) for i in each[1]))
    broken = first_broken(own, seen)
    if broken is None:
        return None
    evidence, raised = evidence_of(broken.error)
    return FunctionFailure(check.id, check.title, evidence, raised, broken.calls, broken.ask.means)


def _with_cause(
    check: CheckResult, wrong: Sequence[str], failures: Mapping[str, Sequence[FunctionFailure]]
) -> CheckResult:
    """Return the check with the first function that is wrong and fails it, in place of one that only waits for it."""
    if check.outcome not in ("failed", "error") or check.function in wrong:
        return check
    for name in wrong:
        for failure in failures[name]:
            if failure.check == check.id:
                return check.model_copy(update={"function": name, "evidence": failure.evidence})
    return check


def _proven(fingerprints: Fingerprints, seen: Mapping[int, Comparison]) -> dict[str, set[str]]:
    """By the id of each misconception that exceptions or answers prove by themselves, the functions that were called."""
    found: dict[str, set[str]] = {}
    for index, each in seen.items():
        for name in _proven_by(fingerprints, index, each):
            found.setdefault(name, set()).add(target_of(each.call))
    return found


def _proven_by(fingerprints: Fingerprints, index: int, comparison: Comparison) -> Iterator[str]:
    kind = kind_of(comparison.reply.raised) if comparison.reply.raised and comparison.right.raised is None else None
    yield from filter(None, (kind.misconception if kind else "", proven_by_answer(fingerprints, index, comparison)))


def _ways(fingerprints: Fingerprints, seen: Mapping[int, Comparison]) -> Ways[int, int]:
    """Return how the recorded mutants show themselves in functions. Mutants and calls are told by their numbers."""
    calls: dict[tuple[str, bool], list[int]] = {}
    for i, each in seen.items():
        if i in fingerprints.facets:
            calls.setdefault((target_of(each.call), not differs(fingerprints, i, each.found)), []).append(i)
    row = Row(fingerprints, seen, seen, {*seen})

    def is_wrong(mutant: int, call: int) -> bool:  # else mutants are not compared
        return call in fingerprints.facets and not row.silent(mutant, call)

    return Ways(
        mutants=lambda id_: [m for m, mutant in enumerate(fingerprints.content.mutants) if mutant.id == id_],
        calls=calls,
        alike=lambda mutant, call: is_wrong(mutant, call) and row.explains(mutant, call),
        differs=is_wrong,
    )
