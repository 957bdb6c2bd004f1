"""`course check`: an attempt's answers on public inputs, held against recorded ones."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from ..box.connection import AttemptEnded, End
from ..checks.explain import kind_of
from ..checks.implementation import AttemptRaised, CheckFailed
from ..checks.local import LocalRecordingRunner
from ..checks.sanitize import sanitize
from ..judge.attempt import AttemptRunner
from ..result import CheckResult, Diagnosed, ExerciseResult, Outcome
from ..submission.unwritten import UNTOUCHED, is_unwritten
from .aspects import Compared, compare, compared
from .describe_exception import describe_exception
from .file import Fingerprints, PublicCheck, Words
from .fingerprint import Facet


def check_attempt(
    fingerprints: Fingerprints, attempt: AttemptRunner | LocalRecordingRunner, source: str = ""
) -> ExerciseResult:
    """The result of an attempt's visible checks, with the misconceptions that its answers show, or that its text is empty."""
    content = fingerprints.content
    seen: dict[int, Compared] = {}
    checks = [_check(fingerprints, check, attempt, seen) for check in sorted(content.visible, key=lambda c: c.layer)]
    passed = all(result.outcome == "passed" for result in checks)
    others = len(content.checks) - len(content.visible)
    more = f"{others} more check{'s are' if others > 1 else ' is'} asked when it is graded." if others else ""
    if not any(result.outcome == "passed" for result in checks) and is_unwritten(source):
        diagnosis = [_named(fingerprints, UNTOUCHED)]
    elif passed:
        diagnosis = []
    else:
        _ask_the_rest(fingerprints, attempt, seen)
        diagnosis = _diagnosis(fingerprints, seen)
    results = tuple(sorted(checks, key=lambda c: c.outcome == "passed"))
    return ExerciseResult(
        id=content.exercise,
        score=sum(r.score for r in results),
        max_score=sum(r.max_score for r in results),
        checks=results,
        diagnosis=tuple(diagnosis),
        note=more if passed else "",
    )


def unloadable(fingerprints: Fingerprints, outcome: Outcome, sentence: str, misconception: str = "") -> ExerciseResult:
    """The result of an attempt that cannot be imported."""
    checks = tuple(_result(check, outcome, sentence) for check in fingerprints.content.visible)
    named = (_named(fingerprints, misconception),) if misconception else ()
    return ExerciseResult(
        id=fingerprints.content.exercise,
        score=0,
        max_score=sum(c.max_score for c in checks),
        checks=checks,
        diagnosis=named,
    )


def _check(
    fingerprints: Fingerprints,
    check: PublicCheck,
    attempt: AttemptRunner | LocalRecordingRunner,
    seen: dict[int, Compared],
) -> CheckResult:
    """One visible check, aspect by aspect."""
    attempt.check = check.id
    try:
        for index in check.calls:
            seen[index] = _see(fingerprints, index, attempt)
        for ask in check.asks:
            for group in ask.calls:
                compare(ask.aspect, [seen[index] for index in group])
    except AttemptEnded as ended:
        return _result(check, "timeout" if ended.end is End.TIMEOUT else "crashed", str(ended))
    except AttemptRaised as error:
        return _result(check, "error", describe_exception(error.raised))
    except CheckFailed as error:
        return _result(check, "failed", str(error))
    return _result(check, "passed", "")


def _ask_the_rest(
    fingerprints: Fingerprints, attempt: AttemptRunner | LocalRecordingRunner, seen: dict[int, Compared]
) -> None:
    """Put the calls that decide no visible check: a diagnosis has more to go by."""
    with contextlib.suppress(AttemptEnded):
        for check in fingerprints.content.checks:
            for index in check.calls:
                if index not in seen:
                    seen[index] = _see(fingerprints, index, attempt)


def _see(fingerprints: Fingerprints, index: int, attempt: AttemptRunner | LocalRecordingRunner) -> Compared:
    call, right = fingerprints.calls[index], fingerprints.content.right(index)
    return compared(call, right, fingerprints.expected[index], attempt.execute(call))


def _diagnosis(fingerprints: Fingerprints, seen: dict[int, Compared]) -> list[Diagnosed]:
    """Exceptions that speak for themselves, then the mutants that answer as the attempt does."""
    names = []
    for each in seen.values():
        kind = kind_of(each.reply.raised) if each.reply.raised else None
        if kind and kind.misconception and each.right.raised is None:
            names.append(kind.misconception)
    unexplained = {i: each for i, each in seen.items() if _differs(fingerprints, i, each)}
    found = []
    for id_, alternatives in _cover(fingerprints, unexplained):
        if id_ not in names:
            found.append(_named(fingerprints, id_, alternatives))
    return [*(_named(fingerprints, name) for name in dict.fromkeys(names)), *found]


def _cover(fingerprints: Fingerprints, unexplained: dict[int, Compared]) -> list[tuple[str, tuple[str, ...]]]:
    """Mutants that together explain every call on which the attempt differs, the one that explains most first."""
    explains = {
        m: frozenset(i for i in unexplained if _matches(fingerprints, m, i, unexplained[i]))
        for m in range(len(fingerprints.content.mutants))
        if _is_silent_elsewhere(fingerprints, m, unexplained)
    }
    left, found = set(unexplained), []
    while left:
        best = max(explains, key=lambda m: len(explains[m] & left), default=None)
        if best is None or not explains[best] & left:
            return []  # something remains that nothing explains: name nothing
        mutants = fingerprints.content.mutants
        same = [mutants[m].id for m in explains if explains[m] == explains[best] and mutants[m].id != mutants[best].id]
        found.append((mutants[best].id, tuple(dict.fromkeys(same))))
        left -= explains[best]
    return found


def _is_silent_elsewhere(fingerprints: Fingerprints, mutant: int, unexplained: dict[int, Compared]) -> bool:
    """Whether the mutant answers as the attempt or as the reference does, on every call that a check asks."""
    content = fingerprints.content
    for index in sorted({call for check in content.checks for call in check.calls}):
        known = content.answer(content.mutants[mutant], index)
        if known is None or known.agrees(content.right(index), _facets_of(fingerprints, index)):
            continue
        if index not in unexplained or not _matches(fingerprints, mutant, index, unexplained[index]):
            return False
    return True


def _matches(fingerprints: Fingerprints, mutant: int, index: int, seen: Compared) -> bool:
    content = fingerprints.content
    known = content.answer(content.mutants[mutant], index)
    return known is None or known.agrees(seen.found, _facets_of(fingerprints, index))


def _differs(fingerprints: Fingerprints, index: int, seen: Compared) -> bool:
    return not seen.found.agrees(seen.right, _facets_of(fingerprints, index))


def _facets_of(fingerprints: Fingerprints, index: int) -> tuple[Facet, ...]:
    return next(check.facets for check in fingerprints.content.checks if index in check.calls)


def _named(fingerprints: Fingerprints, id_: str, alternatives: Sequence[str] = ()) -> Diagnosed:
    words = fingerprints.content.words.get(id_, Words(title=id_.replace("_", " "), explanation="", hints=("", "", "")))
    return Diagnosed(id=id_, title=words.title, hint=words.hints[0], alternatives=tuple(alternatives))


def _result(check: PublicCheck, outcome: Outcome, evidence: str) -> CheckResult:
    passed = outcome == "passed"
    return CheckResult(
        id=check.id,
        title=check.title,
        outcome=outcome,
        score=check.points if passed else 0.0,
        max_score=check.points,
        evidence=sanitize(evidence),
        hint="" if passed else check.hint,
    )
