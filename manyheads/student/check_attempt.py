"""Check an attempt against the recorded replies to public calls, and find its wrong line.

The attempt runs in this process, or in a box.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from ..box.connection import AttemptEnded, Box, End
from ..box.worker.limits import Limits
from ..box.worker.messages import Call
from ..checks.explain import describe_exception
from ..checks.runner import cast
from ..course import Exercise
from ..diagnosis.bank import Diagnosis, named
from ..diagnosis.fault_dictionary import FaultDictionary, differs
from ..diagnosis.fingerprint import fingerprint_beside
from ..diagnosis.observed_reply import ObservedReply, settled
from ..judge.attempt_runner import AttemptRunner
from ..judge.exception_advice import are_the_cause, as_note, stopped_parts, suggest
from ..judge.prove_line import EditedAttempts, IsRight
from ..judge.public_checks import (
    Attempt,
    answer_public_calls,
    check_result,
    see,
    visible_results,
    with_start,
)
from ..lines.search import Bounds, OutOfTime
from ..result import CheckResult, ExerciseResult, Outcome, ProvedLine
from ..submission import Source, proved_line
from ..submission.source import NO_TEXT, with_locations

WAITED_FOR = Bounds(seconds=5.0)  # a student waits
ALARM = 1.0  # seconds: a call needs a few milliseconds
WAITED = 2.0  # more seconds, for an attempt that the alarm does not interrupt
_NAME = "NoAnswerInTime"
_ALARM = f"""
import signal
class {_NAME}(BaseException): pass
def ring(*_): raise {_NAME}
if hasattr(signal, "setitimer"):
    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, {ALARM})
"""  # some systems have no such alarm
# In no file of the student's, so that its own line is not the innermost.
_PRELUDE = f'exec(compile({_ALARM!r}, "<alarm>", "exec"), {{}})\n'


def check_attempt(
    recording: FaultDictionary,
    attempt: Attempt,
    source: Source = NO_TEXT,
    exercise: Exercise | None = None,
) -> ExerciseResult:
    """Return the result of an attempt's visible checks, with its misconceptions.

    Args:
        recording: The fault dictionary of the exercise.
        attempt: The attempt to call.
        source: Its text; it is missing if it is not available.
        exercise: Its row of course.yaml, or None if only the fault dictionary is known.
    """
    result, _ = check_and_diagnose(recording, attempt, source, exercise)
    return told_of(recording, result, exercise)


def check_and_diagnose(
    recording: FaultDictionary,
    attempt: Attempt,
    source: Source = NO_TEXT,
    exercise: Exercise | None = None,
) -> tuple[ExerciseResult, Diagnosis]:
    """Return the result, before `told_of` completes it, and the diagnosis."""
    findings = answer_public_calls(recording, attempt, source, exercise)
    result = ExerciseResult(
        id=recording.exercise,
        score=0,
        max_score=0,
        checks=findings.checks,
        diagnosis=findings.diagnosis.named,
        also=findings.diagnosis.also,
        functions=findings.functions,
    )
    return result, findings.diagnosis


def told_of(
    recording: FaultDictionary, result: ExerciseResult, exercise: Exercise | None = None
) -> ExerciseResult:
    """Complete a result: all points of the exercise, checks that only grading runs, the first hint.

    A visible check that did not run because an earlier one failed is "skipped" and keeps its
    points.
    """
    checks = recording.checks
    checked_ids = {check.id for check in result.checks}
    waiting = (
        check_result(check, "skipped", "")
        for check in recording.visible
        if check.id not in checked_ids
    )
    all_checks = (*result.checks, *waiting)
    visible_ids = {check.id for check in all_checks}
    visible = sum(check.max_score for check in all_checks)
    max_score = max(
        visible, sum(check.points for check in checks) if exercise is None else exercise.points
    )
    unseen = (
        c
        for c in checks
        if c.id not in visible_ids and not _is_seen_otherwise(recording, c.id, result)
    )
    return result.model_copy(
        update={
            "checks": all_checks,
            "score": sum(check.score for check in result.checks),
            "max_score": max_score,
            "unseen": round(max_score - visible, 9),
            "unseen_checks": tuple(check.title for check in unseen),
            "diagnosis": with_start(result.diagnosis, exercise.hint if exercise else ""),
        }
    )


def _is_seen_otherwise(recording: FaultDictionary, check: str, result: ExerciseResult) -> bool:
    """Return whether a diagnosed misconception certainly fails this hidden check.

    That is so if every mutant of the misconception fails it. The check's result is then no news to
    a student.
    """
    if check not in recording.hidden:
        return False
    column = recording.hidden.index(check)
    rows = list(zip(recording.mutants, recording.kills, strict=True))
    for diagnosed in result.diagnosis:
        kills = {row[column] for mutant, row in rows if mutant.id == diagnosed.id}
        if kills and "0" not in kills:
            return True
    return False


def unloadable(
    recording: FaultDictionary, outcome: Outcome, sentence: str, misconception: str = ""
) -> ExerciseResult:
    """Return the result of an attempt that cannot be imported, before `told_of` completes it."""
    checks = tuple(check_result(check, outcome, sentence) for check in recording.visible)
    diagnosis = (named(recording.words, misconception),) if misconception else ()
    return ExerciseResult(
        id=recording.exercise, score=0, max_score=0, checks=checks, diagnosis=diagnosis
    )


def prove_own_lines(
    recording: FaultDictionary,
    attempt: AttemptRunner,
    checks: Sequence[CheckResult],
    bounds: Bounds,
) -> tuple[ProvedLine, ...]:
    """Return the proved lines, without their edits.

    A student learns the location of the mistake, not the text that would repair it.
    """
    index_of_call = {id(call): index for index, call in enumerate(recording.calls)}

    def is_right(call: Call) -> IsRight | None:
        if id(call) not in index_of_call:
            return None
        index, expected = index_of_call[id(call)], recording.expected_reply(index_of_call[id(call)])
        return lambda reply: (
            not differs(recording, index, fingerprint_beside(expected, call, settled(call, reply)))
        )

    def do_pass(edited: AttemptRunner, ids: Sequence[str]) -> bool:
        observed: dict[int, ObservedReply] = {}
        for check in visible_results(recording, edited, observed, ids):
            if check.outcome == "timeout":
                raise OutOfTime
            if check.outcome != "passed":
                return False
        # One edit is enough only if the replies that decide no visible check are right, too.
        remaining_calls = (
            ()
            if ids
            else (i for check in recording.checks for i in check.calls if i not in observed)
        )
        return not any(
            differs(recording, i, see(recording, i, edited).actual) for i in remaining_calls
        )

    edits = EditedAttempts(attempt, checks, is_right, do_pass).mended(bounds)
    return tuple(proved_line(attempt.source, edit.line) for edit in edits)


def with_endless_line(result: ExerciseResult, attempt: AttemptRunner) -> ExerciseResult:
    """Return the result, with the line of the loop in the evidence of a call that timed out.

    If the line cannot be found, the evidence stays. The call is made once more, with an alarm in
    the attempt's own process. This happens only on a student's own machine, where nothing is hidden
    from the attempt and no points depend on it.
    """
    late = [
        check for check in result.checks if check.outcome == "timeout" and check.id in attempt.ended
    ]
    if not late or not (line := _line(attempt, attempt.ended[late[0].id])):
        return result
    new_evidence = dict.fromkeys(
        (check.evidence for check in late), _sentence(attempt.source, line)
    )
    checks = tuple(
        c.model_copy(update={"evidence": new_evidence[c.evidence]}) if c in late else c
        for c in result.checks
    )
    functions = tuple(
        f.model_copy(update={"evidence": new_evidence.get(f.evidence, f.evidence)})
        for f in result.functions
    )
    return result.model_copy(update={"checks": checks, "functions": functions})


def _line(attempt: AttemptRunner, call: Call) -> int:
    """Return the line of the student at which the alarm interrupted the call, or 0."""
    source = attempt.source
    alarm_line = source.text.count("\n") + 2  # the alarm is the last line
    cells = (*source.cells, alarm_line) if source.cells else ()
    armed = replace(source, text=f"{source.text}\n{_PRELUDE}", cells=cells)
    connection = attempt.box.attempt(attempt.limits)
    try:
        connection.ask(armed.load(), attempt.limits.seconds_per_call)
        raised = connection.ask(cast(call, call.dtype or attempt.dtype), ALARM + WAITED).raised
    except AttemptEnded:
        return 0
    finally:
        connection.close()
    return raised.line or 0 if raised is not None and raised.type == _NAME else 0


def _sentence(source: Source, line: int) -> str:
    nodes = (node for statement in source.tree for node in ast.walk(statement))
    loops = [
        n
        for n in nodes
        if isinstance(n, ast.While | ast.For) and n.lineno <= line <= (n.end_lineno or 0)
    ]
    if not loops:
        return f"It did not come back from line {line}."
    # A slow loop may have an end.
    return (
        f"It was still in the loop on line {max(loop.lineno for loop in loops)} when its time "
        "was up: does it end?"
    )


def check_source(
    recording: FaultDictionary,
    source: Source,
    box: Box,
    limits: Limits,
    bounds: Bounds = WAITED_FOR,
    exercise: Exercise | None = None,
) -> ExerciseResult:
    """Return the result of the visible checks. Nothing that the attempt does makes this raise.

    Args:
        recording: The fault dictionary of the exercise.
        source: The attempt.
        box: The box that runs it.
        limits: The limits of a call and of the attempt.
        bounds: The bounds of the search for the wrong line.
        exercise: Its row of course.yaml, or None if only the fault dictionary is known.
    """

    def checked() -> ExerciseResult:
        if source.missing:
            return unloadable(
                recording,
                "missing",
                source.problem.partition("\n")[0] or f"{source.name} is not here.",
            )
        if source.problem:
            return unloadable(recording, "error", source.problem, "load_error")
        attempt = AttemptRunner(box, source, limits)
        try:
            if (raised := attempt.load()) is not None:
                suggestion = suggest(source, raised) or " "
                sentence = f"It {describe_exception(raised, suggestion)}".rstrip()
                return unloadable(recording, "error", sentence, "load_error")
            note = stopped_parts(loaded := attempt.source, attempt.stopped, describe_exception)
            result, diagnosis = check_and_diagnose(recording, attempt, loaded, exercise)
            if are_the_cause(loaded, attempt.stopped, attempt.transcript):
                return unloadable(recording, "error", note, "load_error")
            attempt.close()
            result = with_endless_line(result, attempt)
            lines = prove_own_lines(recording, attempt, result.checks, bounds)
            final_diagnosis = diagnosis.of_one_mistake() if lines else diagnosis
            note = " ".join(filter(None, (as_note(note), result.note)))
            return result.model_copy(
                update={
                    "lines": lines,
                    "diagnosis": final_diagnosis.named,
                    "also": final_diagnosis.also,
                    "note": note,
                }
            )
        except AttemptEnded as ended:
            outcome: Outcome = "timeout" if ended.end is End.TIMEOUT else "crashed"
            return unloadable(recording, outcome, f"While the file was imported: {ended}")
        finally:
            attempt.close()

    return with_locations(told_of(recording, checked(), exercise), source)
