"""An attempt's answers on public inputs, held against recorded ones: in this process, or in a box,
with the line that is wrong.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from ..box.connection import AttemptEnded, End
from ..box.level import Box
from ..box.worker.limits import Limits
from ..box.worker.messages import Call
from ..checks.cast import cast
from ..checks.explain import describe_exception
from ..course import Exercise
from ..diagnosis.diagnosis import Diagnosis, named
from ..diagnosis.fingerprint import fingerprint_beside
from ..diagnosis.observe import Observed, settled
from ..diagnosis.recording import Recording, differs
from ..judge.attempt_runner import AttemptRunner
from ..judge.cures import are_the_cause, as_note, cure, stopped_parts
from ..judge.prove_line import EditedAttempts, IsRight
from ..judge.public_checks import (
    Attempt,
    answer_public_calls,
    check_result,
    see,
    visible_results,
    with_start,
)
from ..lines.find_lines import Bounds, OutOfTime
from ..result import CheckResult, ExerciseResult, Outcome, ProvedLine
from ..submission import AttemptSource, proved_line
from ..submission.source_text import tree_of
from ..submission.standing import told_of_file

WAITED_FOR = Bounds(seconds=5.0)  # a student waits
ALARM = 1.0  # seconds: a call needs a few milliseconds
WAITED = 2.0  # seconds more, for an attempt that does not hear the alarm
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
    recording: Recording,
    attempt: Attempt,
    source: str | None = None,
    exercise: Exercise | None = None,
) -> ExerciseResult:
    """Return the result of an attempt's visible checks, with the misconceptions that its answers
    show, or that its text is empty.

    source: its text; None where that is not at hand.
    exercise: its row of course.yaml; None where only the recorded checks are known.
    """
    result, _ = check_and_diagnose(recording, attempt, source, exercise)
    return told_of(recording, result, exercise)


def check_and_diagnose(
    recording: Recording,
    attempt: Attempt,
    source: str | None = None,
    exercise: Exercise | None = None,
) -> tuple[ExerciseResult, Diagnosis]:
    """Return the result, before `told_of` makes it whole, and what it names."""
    told = answer_public_calls(recording, attempt, source, exercise)
    result = ExerciseResult(
        id=recording.exercise,
        score=0,
        max_score=0,
        checks=told.checks,
        diagnosis=told.diagnosis.named,
        also=told.diagnosis.also,
        functions=told.functions,
    )
    return result, told.diagnosis


def told_of(
    recording: Recording, result: ExerciseResult, exercise: Exercise | None = None
) -> ExerciseResult:
    """Return the result out of all the points of the exercise, with what only grading sees, and the
    exercise's hint for a start.

    A visible check that was not asked, because one before it failed, waits with its points.
    """
    checks = recording.checks
    asked = {check.id for check in result.checks}
    waiting = (
        check_result(check, "skipped", "") for check in recording.visible if check.id not in asked
    )
    every = (*result.checks, *waiting)
    shown = {check.id for check in every}
    visible = sum(check.max_score for check in every)
    whole = max(
        visible, sum(check.points for check in checks) if exercise is None else exercise.points
    )
    unseen = (
        c for c in checks if c.id not in shown and not _is_seen_otherwise(recording, c.id, result)
    )
    return result.model_copy(
        update={
            "checks": every,
            "score": sum(check.score for check in result.checks),
            "max_score": whole,
            "unseen": round(whole - visible, 9),
            "unseen_checks": tuple(check.title for check in unseen),
            "diagnosis": with_start(result.diagnosis, exercise.hint if exercise else ""),
        }
    )


def _is_seen_otherwise(recording: Recording, check: str, result: ExerciseResult) -> bool:
    """Return whether a named misconception fails this check, whichever mutant of it is meant: then
    it is no news to a student.
    """
    if check not in recording.hidden:
        return False
    place = recording.hidden.index(check)
    rows = list(zip(recording.mutants, recording.kills, strict=True))
    fails = (
        {row[place] for mutant, row in rows if mutant.id == diagnosed.id}
        for diagnosed in result.diagnosis
    )
    return any(ends and "0" not in ends for ends in fails)


def unloadable(
    recording: Recording, outcome: Outcome, sentence: str, misconception: str = ""
) -> ExerciseResult:
    """Return the result of an attempt that cannot be imported, before `told_of` makes it whole."""
    checks = tuple(check_result(check, outcome, sentence) for check in recording.visible)
    diagnosis = (named(recording.words, misconception),) if misconception else ()
    return ExerciseResult(
        id=recording.exercise, score=0, max_score=0, checks=checks, diagnosis=diagnosis
    )


def prove_own_lines(
    recording: Recording, own: AttemptRunner, checks: Sequence[CheckResult], bounds: Bounds
) -> tuple[ProvedLine, ...]:
    """Return the lines, without the edits: a place is told, and not what to write there."""
    places = {id(call): index for index, call in enumerate(recording.calls)}

    def is_right(call: Call) -> IsRight | None:
        if id(call) not in places:
            return None
        index, right = places[id(call)], recording.right(places[id(call)])
        return lambda reply: (
            not differs(recording, index, fingerprint_beside(right, call, settled(call, reply)))
        )

    def do_pass(edited: AttemptRunner, ids: Sequence[str]) -> bool:
        seen: dict[int, Observed] = {}
        for check in visible_results(recording, edited, seen, ids):
            if check.outcome == "timeout":
                raise OutOfTime
            if check.outcome != "passed":
                return False
        # One edit is all that is needed only where what decides no visible check is right, too.
        others = (
            () if ids else (i for check in recording.checks for i in check.calls if i not in seen)
        )
        return not any(differs(recording, i, see(recording, i, edited).found) for i in others)

    edits = EditedAttempts(own, checks, is_right, do_pass).mended(bounds)
    return tuple(proved_line(own.source, edit.line) for edit in edits)


def with_endless_line(result: ExerciseResult, attempt: AttemptRunner) -> ExerciseResult:
    """Return the result; where a call did not come back, the evidence names the line of its loop,
    as far as it can be found.

    The call is made once more, with an alarm in the attempt's own process: on a student's own
    machine alone, where nothing is hidden from the attempt and no points depend on it.
    """
    late = [
        check for check in result.checks if check.outcome == "timeout" and check.id in attempt.ended
    ]
    if not late or not (line := _line(attempt, attempt.ended[late[0].id])):
        return result
    said = dict.fromkeys((check.evidence for check in late), _sentence(attempt.source.source, line))
    checks = tuple(
        c.model_copy(update={"evidence": said[c.evidence]}) if c in late else c
        for c in result.checks
    )
    functions = tuple(
        f.model_copy(update={"evidence": said.get(f.evidence, f.evidence)})
        for f in result.functions
    )
    return result.model_copy(update={"checks": checks, "functions": functions})


def _line(attempt: AttemptRunner, call: Call) -> int:
    """Return the student's line at which the alarm reached the call, 0 where it did not."""
    source = attempt.source
    below = source.source.count("\n") + 2  # the alarm is the last line
    cells = (*source.cells, below) if source.cells else ()
    armed = replace(source, source=f"{source.source}\n{_PRELUDE}", cells=cells)
    connection = attempt.box.attempt(attempt.limits)
    try:
        connection.ask(armed.load(), attempt.limits.seconds_per_call)
        raised = connection.ask(cast(call, call.dtype or attempt.dtype), ALARM + WAITED).raised
    except AttemptEnded:
        return 0
    finally:
        connection.close()
    return raised.line or 0 if raised is not None and raised.type == _NAME else 0


def _sentence(source: str, line: int) -> str:
    nodes = (node for part in tree_of(source) for node in ast.walk(part))
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
    recording: Recording,
    source: AttemptSource,
    box: Box,
    limits: Limits,
    bounds: Bounds = WAITED_FOR,
    exercise: Exercise | None = None,
) -> ExerciseResult:
    """Return the result of the visible checks. Nothing that the attempt does makes this raise.

    bounds: of the search for its line. exercise: its row of course.yaml.
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
                sentence = (
                    f"It {describe_exception(raised, cure(source.source, raised) or ' ')}".rstrip()
                )
                return unloadable(recording, "error", sentence, "load_error")
            note = stopped_parts(loaded := attempt.source, attempt.stopped, describe_exception)
            result, diagnosis = check_and_diagnose(recording, attempt, loaded.source, exercise)
            if are_the_cause(loaded, attempt.stopped, attempt.transcript):
                return unloadable(recording, "error", note, "load_error")
            attempt.close()
            result = with_endless_line(result, attempt)
            lines = prove_own_lines(recording, attempt, result.checks, bounds)
            told = diagnosis.of_one_mistake() if lines else diagnosis
            note = " ".join(filter(None, (as_note(note), result.note)))
            return result.model_copy(
                update={"lines": lines, "diagnosis": told.named, "also": told.also, "note": note}
            )
        except AttemptEnded as ended:
            outcome: Outcome = "timeout" if ended.end is End.TIMEOUT else "crashed"
            return unloadable(recording, outcome, f"While the file was imported: {ended}")
        finally:
            attempt.close()

    return told_of_file(told_of(recording, checked(), exercise), source)
