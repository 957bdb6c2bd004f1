"""Put an exercise's recorded, public calls to an attempt: what its visible checks, its functions and its mistakes are.

`course check` and `course grade` ask the same calls in the same order, and say the same of the answers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ..box.connection import AttemptEnded, End
from ..checks.local import LocalRecordingRunner
from ..checks.outcome import CheckOutcome
from ..checks.sanitize import sanitize
from ..checks.transcript import target_of
from ..course import Exercise
from ..diagnosis.bank import Bank
from ..diagnosis.broken_aspect import first_broken, groups_of
from ..diagnosis.diagnose import diagnose
from ..diagnosis.diagnosis import Diagnosis, named, naming
from ..diagnosis.observe import Observed, observed, settled
from ..diagnosis.recording import PublicCheck, Recording
from ..result import CheckResult, Outcome
from ..submission.standing import INTERFACE
from ..submission.unwritten import UNTOUCHED, is_unwritten
from .attempt_runner import AttemptRunner
from .axes import Signatures
from .function_results import Findings, arguments_due, evidence_of, functions_of
from .function_states import in_another_order
from .public_answers import Answers

Attempt = AttemptRunner | LocalRecordingRunner


def answer_public_calls(
    recording: Recording,
    attempt: Attempt,
    source: str | None,
    exercise: Exercise | None = None,
    bank: Bank | None = None,
) -> Findings:
    """Return the results of the visible checks, the state of each function, and what is named.

    Where a visible check fails, all public calls are put. source, exercise: None where they are not at hand.
    bank: the mutants, in grading, where a hidden check has failed: then a mistake is looked for, though every visible check
    passes, and no exception's message is told.
    """
    text, is_graded = source or "", bank is not None
    if isinstance(attempt, AttemptRunner):
        early = [i for c in sorted(recording.visible, key=lambda c: c.layer) if not c.is_last for i in c.asked]
        rest = [i for check in recording.checks for i in check.calls] if is_graded else []
        attempt.ask_ahead([recording.calls[i] for i in dict.fromkeys([*early, *rest])])
    signatures = {name: exercise.signatures(name) for name in exercise.shapes} if exercise else {}
    seen: dict[int, Observed] = {}
    checks = list(visible_results(recording, attempt, seen))
    outcomes = {check.outcome for check in checks}
    diagnosis = Diagnosis()
    if source is not None and "passed" not in outcomes and is_unwritten(source):
        diagnosis = naming(recording.words, UNTOUCHED)
    elif is_graded or outcomes - {"passed"}:
        with contextlib.suppress(AttemptEnded):  # the calls that decide no visible check: a diagnosis has more to go by
            for index in (i for check in recording.checks for i in check.calls if i not in seen):
                seen[index] = see(recording, index, attempt)
        by_name = _right_by_name(attempt, seen, text, signatures)
        diagnosis = diagnose(recording, {**seen, **by_name}, text, bank)
        if by_name:
            diagnosis = replace(diagnosis, named=(named(recording.words, INTERFACE), *diagnosis.named))
    in_single = {i for i in seen if id(recording.calls[i]) in attempt.in_single}
    results = sorted(checks, key=lambda check: check.outcome == "passed")
    return functions_of(Answers(recording, seen, in_single, text, signatures, is_graded), results, diagnosis)


def visible_results(
    recording: Recording, attempt: Attempt, seen: dict[int, Observed], ids: Sequence[str] = ()
) -> Iterator[CheckResult]:
    """Yield the results of the visible checks; of those that are asked last only where all before them pass.

    seen: gets what is seen. ids: of the checks; empty: all.
    """
    visible, passed = [c for c in recording.visible if not ids or c.id in ids], True
    first, last = ([c for c in visible if c.is_last is is_last] for is_last in (False, True))
    for check in (*sorted(first, key=lambda c: c.layer), *last):
        if passed or not check.is_last:
            result = _check(recording, check, attempt, seen)
            passed = passed and result.outcome == "passed"
            yield result


def _check(recording: Recording, check: PublicCheck, attempt: Attempt, seen: dict[int, Observed]) -> CheckResult:
    attempt.check = check.id
    targets = list(dict.fromkeys(target_of(recording.calls[index]) for index in check.calls))
    asked = {}
    try:
        for index in check.asked:
            asked[index] = seen[index] = see(recording, index, attempt)
    except AttemptEnded as ended:
        call = attempt.ended.get(check.id)
        place = target_of(call) if call else ""
        return check_result(check, "timeout" if ended.end is End.TIMEOUT else "crashed", str(ended), place)
    if broken := first_broken(groups_of(check, asked), asked):
        evidence, raised = evidence_of(broken.error)
        place = target_of(recording.calls[broken.calls[-1]])  # of which the others are only what it is held against
        return check_result(check, "failed" if raised is None else "error", evidence, place)
    return check_result(check, "passed", "", targets[0] if len(targets) == 1 else "")


def _right_by_name(
    attempt: Attempt, seen: Mapping[int, Observed], source: str, signatures: Signatures
) -> dict[int, Observed]:
    """Return the calls of functions that take their arguments in another order, and are right where they are passed by name."""
    found: dict[int, Observed] = {}
    due = {name: arguments_due(listed) for name, listed in signatures.items()}
    for name in (name for name, names in due.items() if in_another_order(source, name, names)):
        calls = {i: each for i, each in seen.items() if target_of(each.call) == name and each.right.raised is None}
        again: dict[int, Observed] = {}
        with contextlib.suppress(AttemptEnded):
            again = {i: _by_name(attempt, each, due[name]) for i, each in calls.items()}
        if all(each.found.agrees(each.right, ("outputs",)) for each in again.values()):
            found |= {i: replace(each, call=calls[i].call, found=each.right) for i, each in again.items()}
    return found


def _by_name(attempt: Attempt, seen: Observed, names: Sequence[str]) -> Observed:
    kwargs = {**dict(zip(names, seen.call.args, strict=False)), **seen.call.kwargs}
    call = replace(seen.call, args=(), kwargs=kwargs, cotangent=None, second=False)  # gradients have positions
    return observed(call, seen.right, seen.expected, settled(call, attempt.execute(call)))


def see(recording: Recording, index: int, attempt: Attempt) -> Observed:
    """Put a recorded call, and return what is seen. Raises AttemptEnded."""
    call, right = recording.calls[index], recording.right(index)
    return observed(call, right, recording.expected[index], settled(call, attempt.execute(call)))


def check_result(check: PublicCheck | CheckOutcome, outcome: Outcome, evidence: str, function: str = "") -> CheckResult:
    """Return the result of a check."""
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
