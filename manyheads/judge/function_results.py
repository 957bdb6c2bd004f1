"""What recorded calls show of each function that an exercise asks for, and in which of them each misconception was found."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from types import MappingProxyType

from ..box.worker.answers import Raised
from ..checks.explain import explain, is_shape_fault, kind_of, says_unwritten
from ..checks.outcome import AttemptRaised, CheckFailed
from ..checks.sanitize import sanitize
from ..checks.transcript import target_of
from ..course.shapes import Signature
from ..diagnosis.broken_aspect import first_broken, groups_of
from ..diagnosis.diagnosis import NOTHING, Diagnosis
from ..diagnosis.observe import Observed
from ..diagnosis.proofs import proven_by_answer
from ..diagnosis.recording import PublicCheck, Recording, differs
from ..diagnosis.row import Row
from ..result import CheckResult, Diagnosed, FunctionResult
from ..submission.standing import INTERFACE
from ..submission.unwritten import UNTOUCHED, unwritten_names
from .axes import Signatures, axes_of
from .cures import cure, joined
from .function_states import Seen, function_results, seen_in, uses

Describe = Callable[[Raised, str], str]


def describe_exception(raised: Raised, due: str = "", *, is_shown: bool = True) -> str:
    """Return one sentence, with the exception's message where it is shown: to its student alone, where nothing is hidden.

    due: a sentence about what is due in its place.
    """
    says_nothing = says_unwritten(raised) or raised.type == "SystemExit"  # whose message is a number, or None
    own = sanitize(raised.message) if is_shown and not says_nothing else ""
    return joined(explain(raised), own and f"Python says: {own}".removesuffix("."), due)


def evidence_of(error: CheckFailed, describe: Describe = describe_exception) -> tuple[str, Raised | None]:
    """Return what a student reads of a check that failed, and the exception, if there was one."""
    if isinstance(error, AttemptRaised):
        return describe(error.raised, error.due), error.raised
    return str(error), None


def arguments_due(signatures: Sequence[Signature]) -> tuple[str, ...]:
    """Return the names of a function's arguments; of a class none."""
    return tuple(each.name for s in signatures[:1] if s.build is None for each in s.call)


@dataclass(frozen=True)
class Functions:
    """What is known of each function; the checks and the misconceptions, each with the function that it belongs to."""

    functions: tuple[FunctionResult, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    diagnosis: Diagnosis = NOTHING


@dataclass(frozen=True)
class _Failure:
    """Why a function fails a check: what was seen, in which calls, the exception, if there was one, and what it means."""

    check: PublicCheck
    seen: str
    raised: Raised | None = None
    calls: tuple[int, ...] = ()
    means: str = ""
    besides: bool = False  # the check is about an edit, which does move what it should
    mends: str = ""  # what usually cures the exception


def functions_of(
    recording: Recording,
    seen: Mapping[int, Observed],
    checks: Sequence[CheckResult],
    diagnosis: Diagnosis,
    source: str,
    in_single: Set[int] = frozenset(),
    signatures: Signatures = MappingProxyType({}),
    describe: Describe = describe_exception,
) -> Functions:
    """Return what is known of each function. A check stops at the first that fails it, but all of its calls were made.

    in_single: the calls that were asked in float32 because the attempt cannot do float64 somewhere: their dtype says nothing.
    signatures: of each function, where they are known. describe: says what an exception is.
    """
    names = dict.fromkeys(map(target_of, recording.calls))  # in the order of their definitions
    failures = {
        name: [replace(each, mends=cure(source, each.raised)) if each.raised else each for each in found]
        for name, found in ((name, _failures(recording, seen, checks, name, describe)) for name in names)
    }
    shown = _Shown(recording, seen, in_single)
    # A misconception may show itself in a function that passes what is visible, and break those that use it.
    first = {next((name for name in names if shown.is_seen(each.id, name)), "") for each in diagnosis.named}
    bad = [name for name in names if failures[name] or name in first]
    found = [replace(seen_in(n, seen.values()), arguments=arguments_due(signatures.get(n, ()))) for n in names]
    # Checks ask more of some functions, which is put only where all before it passes.
    told, stopped = {check.id for check in checks}, next(iter(bad), "")
    asks = (ask for check in recording.visible if check.id not in told for ask in check.asks)
    later = {target_of(recording.calls[group[-1]]) for ask in asks for group in ask.calls}
    found = [replace(e, is_wrong=e.name in bad, stopped_at=stopped if e.name in later else "") for e in found]
    placed = _placed(diagnosis, found, source, shown)
    found = [_told(each, failures[each.name], placed, shown, signatures) for each in found]
    functions = function_results(found, source, {part.function for part in placed.every})
    wrong = [function.name for function in functions if function.state == "wrong"]
    return Functions(functions, tuple(_with_cause(check, wrong, failures) for check in checks), placed)


class _Shown:
    """How misconceptions show themselves in functions: by the answers of their mutants, and by what proves itself."""

    def __init__(self, recording: Recording, seen: Mapping[int, Observed], in_single: Set[int]) -> None:
        self.seen = seen
        due = {i: replace(e, found=replace(e.found, dtype=e.right.dtype)) for i, e in seen.items() if i in in_single}
        compared = {i: e for i, e in {**seen, **due}.items() if i in recording.facets}  # else mutants are not compared
        self._row = Row(recording, compared, compared, {*compared})
        self._wrong: dict[str, list[int]] = {}
        self._right: dict[str, list[int]] = {}
        for i, each in compared.items():
            calls = self._wrong if differs(recording, i, each.found) else self._right
            calls.setdefault(target_of(each.call), []).append(i)
        self.proven: dict[str, set[str]] = {}  # by the misconception, the functions that were called
        for i in seen:
            for id_ in self.proven_by(i):
                self.proven.setdefault(id_, set()).add(target_of(seen[i].call))

    def proven_by(self, call: int) -> Iterator[str]:
        """Yield the misconceptions that an exception or an answer proves by itself."""
        seen = self.seen[call]
        kind = kind_of(seen.reply.raised) if seen.reply.raised and seen.right.raised is None else None
        answer = proven_by_answer(self._row.recording, call, seen)
        yield from filter(None, (kind.misconception if kind else "", answer))

    def is_seen(self, id_: str, function: str) -> bool:
        """Return whether a mutant answers one of the function's wrong calls as the attempt did."""
        return any(self._is_alike(m, i) for m in self._mutants(id_) for i in self._wrong.get(function, ()))

    def is_also_in(self, id_: str, function: str) -> bool:
        """Return whether it is proved there, or one mutant answers every call of the function as the attempt did."""
        wrong, right = self._wrong.get(function, ()), self._right.get(function, ())
        return function in self.proven.get(id_, ()) or any(
            bool(wrong) and all(self._is_alike(m, i) for i in wrong) and all(self._row.silent(m, i) for i in right)
            for m in self._mutants(id_)
        )

    def can_show(self, id_: str, function: str) -> bool:
        """Return whether a mutant answers one of them wrongly: of two faults in one function neither answers as both do."""
        return any(not self._row.silent(m, i) for m in self._mutants(id_) for i in self._wrong.get(function, ()))

    def answer_alike(self, id_: str, other: str, functions: Container[str]) -> bool:
        """Return whether mutants of both that answer a wrong call as the attempt did answer each call of these functions alike."""
        known, wrong = self._row.recording, self._row.wrong
        calls = [i for i, call in enumerate(known.calls) if target_of(call) in functions]
        alike = ([m for m in self._mutants(of) if any(self._is_alike(m, i) for i in wrong)] for of in (id_, other))
        first, second = ({tuple(known.mutants[m].answers[i] for i in calls) for m in own} for own in alike)
        return not calls or not first.isdisjoint(second)

    def is_shown(self, id_: str, failure: _Failure) -> bool:
        """Return whether a misconception alone would be seen so, as far as is known."""
        is_proven = id_ == failure.means or any(id_ in self.proven_by(i) for i in failure.calls)
        calls = [i for i in failure.calls if i in self._row.asked]
        return is_proven or any(self._is_alike(m, i) for m in self._mutants(id_) for i in calls)

    def _mutants(self, id_: str) -> list[int]:
        return [m for m, mutant in enumerate(self._row.recording.mutants) if mutant.id == id_]

    def _is_alike(self, mutant: int, call: int) -> bool:
        return not self._row.silent(mutant, call) and self._row.explains(mutant, call)


def _placed(diagnosis: Diagnosis, functions: Sequence[Seen], source: str, shown: _Shown) -> Diagnosis:
    """Return the diagnosis, each misconception with its functions and the titles of its alternatives; none that may follow."""
    empty = unwritten_names(source)
    wrong = [each.name for each in functions if each.is_wrong and not each.is_undefined and each.name not in empty]
    own = [name for name in wrong if len(wrong) == 1 or not {*wrong} & uses(source, name)]  # it follows from no other
    words = shown._row.recording.words

    def located(found: tuple[Diagnosed, ...]) -> tuple[Diagnosed, ...]:
        places = [_place(each.id, wrong, shown) for each in found]
        unnamed = [name for name in wrong if name not in places]
        return tuple(
            each.model_copy(
                update={
                    "function": place,
                    "also_in": tuple(
                        n
                        for n in unnamed
                        if each.id != UNTOUCHED and (n in own or each.id == INTERFACE) and shown.is_also_in(each.id, n)
                    ),
                    "alternative_titles": tuple(
                        words[a].title
                        for a in each.alternatives
                        if a in words and shown.answer_alike(each.id, a, empty)
                    ),
                }
            )
            for each, place in zip(found, places, strict=True)
        )

    placed = diagnosis.changed(located)
    left = {*wrong}.difference(*((each.function, *each.also_in) for each in placed.every))

    def may_follow(each: Diagnosed) -> bool:  # from another function that is wrong and has no name
        return each.id not in shown.proven and bool(each.function) and not left.isdisjoint(uses(source, each.function))

    return placed.changed(lambda found: tuple(each for each in found if not may_follow(each)))


def _place(id_: str, wrong: Sequence[str], shown: _Shown) -> str:
    places = shown.proven.get(id_, set())
    if id_ == UNTOUCHED:
        return ""
    seen = [name for name in wrong if name in places or shown.is_seen(id_, name)]
    # Of those that are proved some may be a name that the file does not have.
    can = () if seen or places else (name for name in wrong if shown.can_show(id_, name))
    return next(iter([*seen, *sorted(places), *can, *wrong]), "")


def _told(
    function: Seen, failures: Sequence[_Failure], diagnosis: Diagnosis, shown: _Shown, signatures: Signatures
) -> Seen:
    """Return the same with what is told of it, which is read between its first misconception's name and its hint.

    That is what ended the process; else what shows its first misconception; else what shows none of the others; else the first.
    It says which word the call was given, and where shapes do not fit, which sizes of it the exception's numbers are.
    """
    if not failures:
        return function
    named = [each.id for each in diagnosis.named if function.name in (each.function, *each.also_in)]

    def place(failure: _Failure) -> tuple[int, int, bool]:
        ids = [id_ for id_ in named if shown.is_shown(id_, failure)]
        return 1 if not ids else 2 * (named[0] not in ids), failure.check.layer, failure.besides

    failure = min(failures, key=place) if failures[0].calls else failures[0]
    raised, said = failure.raised, ""
    at = (
        next((shown.seen[i] for i in failure.calls if shown.seen[i].reply.raised is not None), None) if raised else None
    )
    if raised and at and (is_shape_fault(raised) or "is invalid for input of size" in raised.message):
        returned = next((tensor.shape for tensor in at.expected if tensor is not None), ())
        every = (axes_of(each, at.call, returned, signatures) for each in signatures.get(function.name, ()))
        said = next((axes.said(raised.message) for axes in every if axes is not None), "")
    given = () if at is None else (*getattr(at.call.subject, "args", ()), *at.call.args)
    which = next((f'That was for "{word}".' for word in given if isinstance(word, str)), "")  # of several that it makes
    evidence = joined(failure.seen, which, said and f"{said}.", failure.mends)
    return replace(function, check=failure.check.title, evidence=evidence, raised=raised)


def _failures(
    recording: Recording, seen: Mapping[int, Observed], checks: Sequence[CheckResult], name: str, describe: Describe
) -> Iterator[_Failure]:
    told = {check.id: check for check in checks}
    for check in sorted((c for c in recording.visible if c.id in told), key=lambda c: c.layer):
        result = told[check.id]
        own = [each for each in groups_of(check, seen) if target_of(seen[each[1][-1]].call) == name]
        # That a method is not written yet is no news: what is wrong beside it goes before it.
        own.sort(key=lambda each: any(says_unwritten(seen[i].reply.raised) for i in each[1]))
        if result.function == name and result.outcome in ("timeout", "crashed"):
            yield _Failure(check, result.evidence)
        elif broken := first_broken(own, seen):
            besides = broken.ask.aspect == "values" and any(ask.aspect == "moves" for ask in check.asks)
            yield _Failure(check, *evidence_of(broken.error, describe), broken.calls, broken.ask.means, besides)


def _with_cause(check: CheckResult, wrong: Sequence[str], failures: Mapping[str, Sequence[_Failure]]) -> CheckResult:
    """Return the check with the first function that is wrong and fails it, in place of one that only waits for it."""
    if check.outcome not in ("failed", "error"):
        return check
    found = ((name, each) for name in wrong for each in failures[name] if each.check.id == check.id)
    for name, failure in found:
        if check.function not in wrong or (name == check.function and failure.raised):
            return check.model_copy(update={"function": name, "evidence": joined(failure.seen, failure.mends)})
    return check


def with_start(diagnosis: Sequence[Diagnosed], hint: str) -> tuple[Diagnosed, ...]:
    """Return the same; where nothing is written, the hint is the exercise's own, which is about getting started."""
    return tuple(d.model_copy(update={"hint": hint}) if hint and d.id == UNTOUCHED else d for d in diagnosis)
