"""Check an attempt against the recorded replies to public calls, and find its wrong line.

`check_source` runs the attempt in a box and searches for the wrong line. `check_attempt` takes an
attempt that is already loaded, for example the functions of a notebook kernel, and does not search.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

from ..box.connection import AttemptEnded, Box, End
from ..box.worker.limits import Limits
from ..box.worker.messages import Call
from ..checks.explain_exceptions import describe_exception
from ..checks.hidden_check import CheckOutcome
from ..checks.runner import cast
from ..course import Exercise
from ..diagnosis.fault_dictionary import FaultDictionary, differs
from ..diagnosis.fingerprint import comparable_fingerprint
from ..diagnosis.observed_reply import summarise_copies
from ..judge.attempt_runner import AttemptRunner
from ..judge.attribution import assemble, assemble_uncalled
from ..judge.edit_search import Bounds, OutOfTime
from ..judge.exception_advice import suggest
from ..judge.explain_file_parts_not_run import are_the_cause, as_note, stopped_parts
from ..judge.prove_line import EditedAttempts, IsRight
from ..judge.public_calls import (
    Attempt,
    PublicCalls,
    ask_public_calls,
    name_misconceptions,
    public_outcome,
)
from ..result import ExerciseResult, Outcome, ProvedLine
from ..submission import Source, proved_line
from ..submission.source import LOAD_ERROR, NO_TEXT

WAITED_FOR = Bounds(seconds=5.0)  # for the search for the wrong line: a student waits
ALARM = 1.0  # seconds until a call is interrupted: a right call needs a few milliseconds
WAITED = 2.0  # more seconds, until a call that the alarm does not interrupt is given up
_NAME = "NoAnswerInTime"
_ALARM = f"""
import signal
class {_NAME}(BaseException): pass
def ring(*_): raise {_NAME}
if hasattr(signal, "setitimer"):
    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, {ALARM})
"""  # some systems have no such alarm
# The alarm's code is compiled under another file name: an exception is reported with the innermost
# line of the student's file, which is then the interrupted line.
_PRELUDE = f'exec(compile({_ALARM!r}, "<alarm>", "exec"), {{}})\n'


def check_attempt(
    dictionary: FaultDictionary,
    attempt: Attempt,
    source: Source = NO_TEXT,
    exercise: Exercise | None = None,
) -> ExerciseResult:
    """Return the result of an attempt's visible checks, with its misconceptions.

    No line is proved. If the attempt runs in a box, its process may end during a call; the checks
    then say so.

    Args:
        dictionary: The fault dictionary of the exercise.
        attempt: The attempt to call.
        source: Its text, or NO_TEXT if the text is not available.
        exercise: Its row of course.yaml, or None if only the fault dictionary is known.
    """
    replies = ask_public_calls(PublicCalls(dictionary, attempt), source, exercise)
    return assemble(exercise, source, dictionary, replies, name_misconceptions(replies))


def prove_own_lines(
    dictionary: FaultDictionary,
    attempt: AttemptRunner,
    outcomes: Sequence[CheckOutcome],
    bounds: Bounds,
) -> tuple[ProvedLine, ...]:
    """Return each line in which one small edit makes every check pass.

    The edits themselves are not returned: a student learns the location of the mistake, not the
    text that would repair it. With the edit, all visible checks must pass, and the public calls
    that decide no visible check must be right, too. Return () if there is no failed check, or if
    the search ends without a result, as `EditedAttempts.proved_edits` describes.

    Args:
        dictionary: The fault dictionary of the exercise.
        attempt: The attempt, which has made its calls.
        outcomes: The outcomes of its visible checks.
        bounds: The bounds of the search.
    """
    index_of_call = {id(call): index for index, call in enumerate(dictionary.calls)}

    def is_right(call: Call) -> IsRight | None:
        """Return a function that tells whether a reply to a recorded call is the reference's.

        Return None for a call that is not recorded, such as one of a precondition.
        """
        if id(call) not in index_of_call:
            return None
        index, expected = (
            index_of_call[id(call)],
            dictionary.expected_reply(index_of_call[id(call)]),
        )
        return lambda reply: (
            not differs(
                dictionary,
                index,
                comparable_fingerprint(expected, call, summarise_copies(call, reply)),
            )
        )

    def checks_pass(edited: AttemptRunner, ids: Sequence[str]) -> bool:
        """Return whether an edited attempt passes the visible checks with these ids; [] means all.

        With [], the other public calls must be right, too. Raises OutOfTime if a call of a check
        takes too long, and AttemptEnded if another call ends the process.
        """
        calls = PublicCalls(dictionary, edited)
        for visible in calls.run_visible_checks(ids):
            if visible.ended is End.TIMEOUT:
                raise OutOfTime
            if not visible.passes:
                return False
        # Without ids, an edit is proved: then the calls that decide no visible check count, too.
        return bool(ids) or not any(
            differs(dictionary, index, observation.actual)
            for index, observation in calls.observe_other_calls()
        )

    edits = EditedAttempts(attempt, outcomes, is_right, checks_pass).proved_edits(bounds)
    return tuple(proved_line(attempt.source, edit.line) for edit in edits)


class EndlessLoops:
    """Says in which loop a call of an attempt was when its time was up.

    The first call is made once more, with an alarm in the attempt's own process. This happens only
    on a student's own machine, where nothing is hidden from the attempt and no points depend on it.
    """

    def __init__(self, attempt: AttemptRunner) -> None:
        """Prepare to explain the timeouts of this attempt's calls."""
        self._attempt = attempt
        self._sentence: str | None = None

    def explain(self, call: Call) -> str:
        """Return a sentence with the line at which the call was interrupted, or "" without a line.

        The first time, the attempt's process is closed and the call is made again in a new one. All
        later calls get the sentence about the first one.
        """
        if self._sentence is None:
            self._attempt.close()  # a box runs one process at a time
            line = _line(self._attempt, call)
            self._sentence = _sentence(self._attempt.source, line) if line else ""
        return self._sentence


def _line(attempt: AttemptRunner, call: Call) -> int:
    """Return the line of the student's text at which the alarm interrupted the call, or 0.

    0 means that the call came back in time, raised something else, or was not interrupted.
    """
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
    """Return a sentence about the innermost loop around this line, or about the line itself."""
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
    dictionary: FaultDictionary,
    source: Source,
    box: Box,
    limits: Limits,
    bounds: Bounds = WAITED_FOR,
    exercise: Exercise | None = None,
) -> ExerciseResult:
    """Return the result of the visible checks. Nothing that the attempt does makes this raise.

    No call is made if the text is missing or has a problem, or if the import ends the process,
    takes too long or raises an exception. All checks then have the same outcome. They also have the
    same outcome, "error", if failed statements of the file are the cause of every failure.
    Otherwise the result has the misconceptions and the proved lines.

    Args:
        dictionary: The fault dictionary of the exercise.
        source: The attempt.
        box: The box that runs it.
        limits: The limits of a call and of the attempt.
        bounds: The bounds of the search for the wrong line.
        exercise: Its row of course.yaml, or None if only the fault dictionary is known.
    """

    def result_without_calls(outcome: Outcome, sentence: str) -> ExerciseResult:
        outcomes = [public_outcome(check, outcome, sentence) for check in dictionary.visible]
        misconception = LOAD_ERROR if outcome == "error" else ""
        return assemble_uncalled(exercise, source, outcomes, misconception, dictionary=dictionary)

    if source.missing:
        reason = source.problem.partition("\n")[0]
        return result_without_calls("missing", reason or f"{source.name} is not here.")
    if source.problem:
        return result_without_calls("error", source.problem)
    attempt = AttemptRunner(box, source, limits)
    with closing(attempt):
        try:
            raised = attempt.load()
        except AttemptEnded as ended:
            outcome: Outcome = "timeout" if ended.end is End.TIMEOUT else "crashed"
            return result_without_calls(outcome, f"While the file was imported: {ended}")
        if raised is not None:
            advice = suggest(source, raised) or " "
            return result_without_calls(
                "error", f"It {describe_exception(raised, advice)}".rstrip()
            )
        loaded = attempt.source  # with the parts that are not run again
        stopped = stopped_parts(loaded, attempt.stopped, describe_exception)
        calls = PublicCalls(dictionary, attempt, EndlessLoops(attempt).explain)
        replies = ask_public_calls(calls, loaded, exercise)
        if are_the_cause(loaded, attempt.stopped, attempt.transcript):
            return result_without_calls("error", stopped)
        attempt.close()
        diagnosis = name_misconceptions(replies)
        lines = prove_own_lines(dictionary, attempt, replies.outcomes(), bounds)
        return assemble(
            exercise, loaded, dictionary, replies, diagnosis, lines, note=as_note(stopped)
        )
