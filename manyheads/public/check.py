"""`course check`: an attempt's answers on public inputs, held against recorded ones."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from ..box.connection import AttemptEnded, End
from ..checks.implementation import AttemptRaised, CheckFailed
from ..checks.local import LocalRecordingRunner
from ..checks.sanitize import sanitize
from ..judge.attempt import AttemptRunner
from ..result import CheckResult, ExerciseResult, Outcome
from ..submission.unwritten import UNTOUCHED, is_unwritten
from .aspects import Compared, compare, compared
from .describe_exception import describe_exception
from .diagnosis import diagnose_from_recordings, named
from .file import Fingerprints, PublicCheck


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
        diagnosis = [named(fingerprints, UNTOUCHED)]
    elif passed:
        diagnosis = []
    else:
        _ask_the_rest(fingerprints, attempt, seen)
        diagnosis = diagnose_from_recordings(fingerprints, seen, source)
    results = tuple(sorted(checks, key=lambda c: c.outcome == "passed"))
    return ExerciseResult(
        id=content.exercise,
        score=sum(r.score for r in results),
        max_score=sum(r.max_score for r in results),
        checks=results,
        diagnosis=tuple(diagnosis),
        note=more if passed else "",
    )


def visible_results(fingerprints: Fingerprints, attempt: AttemptRunner, ids: Sequence[str]) -> Iterator[CheckResult]:
    """The results of the visible checks with these ids, one after the other; of all where there are none."""
    seen: dict[int, Compared] = {}
    for check in sorted(fingerprints.content.visible, key=lambda c: c.layer):
        if not ids or check.id in ids:
            yield _check(fingerprints, check, attempt, seen)


def unloadable(fingerprints: Fingerprints, outcome: Outcome, sentence: str, misconception: str = "") -> ExerciseResult:
    """The result of an attempt that cannot be imported."""
    checks = tuple(_result(check, outcome, sentence) for check in fingerprints.content.visible)
    diagnosis = (named(fingerprints, misconception),) if misconception else ()
    return ExerciseResult(
        id=fingerprints.content.exercise,
        score=0,
        max_score=sum(c.max_score for c in checks),
        checks=checks,
        diagnosis=diagnosis,
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
