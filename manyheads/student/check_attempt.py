"""`course check`: an attempt's answers on public inputs, held against recorded ones."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ..box.connection import AttemptEnded, End
from ..checks.local import LocalRecordingRunner
from ..checks.sanitize import sanitize
from ..checks.transcript import target_of
from ..course import Exercise
from ..diagnosis.broken_aspect import first_broken, groups_of
from ..diagnosis.comparison import Comparison, compared
from ..diagnosis.diagnose_recorded import diagnose_from_recordings
from ..diagnosis.diagnosis import Diagnosis, named, naming
from ..diagnosis.dropout_extremes import settled
from ..diagnosis.recording import Content, Fingerprints, PublicCheck
from ..judge.advice import in_another_order
from ..judge.attempt_runner import AttemptRunner
from ..judge.locate import with_start
from ..result import CheckResult, ExerciseResult, Outcome
from ..submission.standing import INTERFACE
from ..submission.unwritten import UNTOUCHED, is_unwritten
from .axes import Signatures
from .function_results import arguments_due, evidence_of, functions_of

Attempt = AttemptRunner | LocalRecordingRunner


def check_attempt(
    fingerprints: Fingerprints, attempt: Attempt, source: str | None = None, exercise: Exercise | None = None
) -> ExerciseResult:
    """Return the result of an attempt's visible checks, with the misconceptions that its answers show, or that its text is empty.

    source: its text; None where that is not at hand.
    exercise: its row of course.yaml; None where only the recorded checks are known.
    """
    return check_and_diagnose(fingerprints, attempt, source, exercise)[0]


def check_and_diagnose(
    fingerprints: Fingerprints, attempt: Attempt, source: str | None = None, exercise: Exercise | None = None
) -> tuple[ExerciseResult, Diagnosis]:
    """Return the result, as `check_attempt` does, and what it names."""
    is_empty = source is not None and is_unwritten(source)
    source = source or ""
    signatures = {name: exercise.signatures(name) for name in exercise.shapes} if exercise else {}
    content = fingerprints.content
    seen: dict[int, Comparison] = {}
    checks = list(_checks(fingerprints, attempt, seen))
    passed = all(result.outcome == "passed" for result in checks)
    if is_empty and not any(result.outcome == "passed" for result in checks):
        diagnosis = naming(content.words, UNTOUCHED)
    elif passed:
        diagnosis = Diagnosis()
    else:
        _ask_the_rest(fingerprints, attempt, seen)
        by_name = _right_by_name(fingerprints, attempt, seen, source, signatures)
        diagnosis = diagnose_from_recordings(fingerprints, {**seen, **by_name}, source)
        if by_name:
            diagnosis = replace(diagnosis, named=(named(content.words, INTERFACE), *diagnosis.named))
    results = tuple(sorted(checks, key=lambda c: c.outcome == "passed"))
    asked_in_single = attempt.in_single if isinstance(attempt, AttemptRunner) else frozenset[int]()
    in_single = {i for i in seen if id(fingerprints.calls[i]) in asked_in_single}
    functions = functions_of(fingerprints, seen, results, diagnosis, source, in_single, signatures)
    result = ExerciseResult(
        id=content.exercise,
        score=0,
        max_score=0,
        checks=functions.checks,
        diagnosis=functions.diagnosis.named,
        also=functions.diagnosis.also,
        functions=functions.functions,
    )
    return told_of(fingerprints, result, exercise), functions.diagnosis


def told_of(fingerprints: Fingerprints, result: ExerciseResult, exercise: Exercise | None = None) -> ExerciseResult:
    """Return the result out of all the points of the exercise, with what only grading sees, and the exercise's hint for a start.

    A visible check that was not asked, because one before it failed, waits with its points.
    """
    checks = fingerprints.content.checks
    asked = {check.id for check in result.checks}
    waiting = (_result(check, "skipped", "") for check in fingerprints.content.visible if check.id not in asked)
    every = (*result.checks, *waiting)
    shown = {check.id for check in every}
    visible = sum(check.max_score for check in every)
    whole = max(visible, sum(check.points for check in checks) if exercise is None else exercise.points)
    hint = exercise.hint if exercise else ""
    return result.model_copy(
        update={
            "checks": every,
            "score": sum(check.score for check in result.checks),
            "max_score": whole,
            "unseen": round(whole - visible, 9),
            "unseen_checks": tuple(
                check.title
                for check in checks
                if check.id not in shown and not _is_seen_otherwise(fingerprints.content, check.id, result)
            ),
            "diagnosis": with_start(result.diagnosis, hint),
        }
    )


def _is_seen_otherwise(content: Content, check: str, result: ExerciseResult) -> bool:
    """Return whether a named misconception fails this check, whichever mutant of it is meant: then it is no news to a student."""
    if check not in content.hidden:
        return False
    place = content.hidden.index(check)
    rows = list(zip(content.mutants, content.kills, strict=True))
    fails = ({row[place] for mutant, row in rows if mutant.id == diagnosed.id} for diagnosed in result.diagnosis)
    return {"1"} in list(fails)


def _checks(fingerprints: Fingerprints, attempt: Attempt, seen: dict[int, Comparison]) -> Iterator[CheckResult]:
    """Yield the results of the visible checks; of those that are asked last only where all before them pass."""
    visible, passed = fingerprints.content.visible, True
    first, last = ([c for c in visible if c.is_last is is_last] for is_last in (False, True))
    for check in (*sorted(first, key=lambda c: c.layer), *last):
        if passed or not check.is_last:
            result = _check(fingerprints, check, attempt, seen)
            passed = passed and result.outcome == "passed"
            yield result


def visible_results(fingerprints: Fingerprints, attempt: AttemptRunner, ids: Sequence[str]) -> Iterator[CheckResult]:
    """Yield the results of the visible checks with these ids, one after the other; of all where there are none."""
    seen: dict[int, Comparison] = {}
    for check in sorted(fingerprints.content.visible, key=lambda c: c.layer):
        if not ids or check.id in ids:
            yield _check(fingerprints, check, attempt, seen)


def unloadable(fingerprints: Fingerprints, outcome: Outcome, sentence: str, misconception: str = "") -> ExerciseResult:
    """Return the result of an attempt that cannot be imported."""
    checks = tuple(_result(check, outcome, sentence) for check in fingerprints.content.visible)
    diagnosis = (named(fingerprints.content.words, misconception),) if misconception else ()
    result = ExerciseResult(id=fingerprints.content.exercise, score=0, max_score=0, checks=checks, diagnosis=diagnosis)
    return told_of(fingerprints, result)


def _check(
    fingerprints: Fingerprints, check: PublicCheck, attempt: Attempt, seen: dict[int, Comparison]
) -> CheckResult:
    """Return one visible check, aspect by aspect."""
    attempt.check = check.id
    targets = list(dict.fromkeys(target_of(fingerprints.calls[index]) for index in check.calls))
    asked = {}
    try:
        for index in check.asked:
            asked[index] = seen[index] = _see(fingerprints, index, attempt)
    except AttemptEnded as ended:
        call = attempt.ended.get(check.id) if isinstance(attempt, AttemptRunner) else None
        place = target_of(call) if call else ""
        return _result(check, "timeout" if ended.end is End.TIMEOUT else "crashed", str(ended), place)
    if broken := first_broken(groups_of(check, asked), asked):
        evidence, raised = evidence_of(broken.error)
        place = target_of(fingerprints.calls[broken.calls[-1]])  # of which the others are only what it is held against
        return _result(check, "failed" if raised is None else "error", evidence, place)
    return _result(check, "passed", "", targets[0] if len(targets) == 1 else "")


def _ask_the_rest(fingerprints: Fingerprints, attempt: Attempt, seen: dict[int, Comparison]) -> None:
    """Put the calls that decide no visible check: a diagnosis has more to go by."""
    with contextlib.suppress(AttemptEnded):
        for check in fingerprints.content.checks:
            for index in check.calls:
                if index not in seen:
                    seen[index] = _see(fingerprints, index, attempt)


def _right_by_name(
    fingerprints: Fingerprints, attempt: Attempt, seen: Mapping[int, Comparison], source: str, signatures: Signatures
) -> dict[int, Comparison]:
    """Return the calls of functions that take their arguments in another order, and are right where they are passed by name."""
    found: dict[int, Comparison] = {}
    due = {name: arguments_due(listed) for name, listed in signatures.items()}
    for name in (name for name, names in due.items() if in_another_order(source, name, names)):
        calls = {i: each for i, each in seen.items() if target_of(each.call) == name and each.right.raised is None}
        again: dict[int, Comparison] = {}
        with contextlib.suppress(AttemptEnded):
            again = {i: _by_name(attempt, each, due[name]) for i, each in calls.items()}
        if all(each.found.agrees(each.right, ("outputs",)) for each in again.values()):
            found |= {i: replace(each, call=calls[i].call, found=each.right) for i, each in again.items()}
    return found


def _by_name(attempt: Attempt, seen: Comparison, names: Sequence[str]) -> Comparison:
    """Return the call with its arguments passed by name, without gradients, which are reported by position."""
    kwargs = {**dict(zip(names, seen.call.args, strict=False)), **seen.call.kwargs}
    call = replace(seen.call, args=(), kwargs=kwargs, cotangent=None, second=False)
    return compared(call, seen.right, seen.expected, settled(call, attempt.execute(call)))


def _see(fingerprints: Fingerprints, index: int, attempt: Attempt) -> Comparison:
    call, right = fingerprints.calls[index], fingerprints.content.right(index)
    return compared(call, right, fingerprints.expected[index], settled(call, attempt.execute(call)))


def _result(check: PublicCheck, outcome: Outcome, evidence: str, function: str = "") -> CheckResult:
    passed = outcome == "passed"
    return CheckResult(
        id=check.id,
        title=check.title,
        outcome=outcome,
        score=check.points if passed else 0.0,
        max_score=check.points,
        evidence=sanitize(evidence),
        hint="" if passed else check.hint,
        function=function,
    )
