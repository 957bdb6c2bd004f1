"""Run one attempt's visible checks in a box, from its source to the result."""

from __future__ import annotations

from ..box.connection import AttemptEnded, End
from ..box.level import Box
from ..box.worker.limits import Limits
from ..course import Exercise
from ..diagnosis.recording import Fingerprints
from ..judge.attempt import AttemptRunner
from ..judge.stopped_parts import are_the_cause, as_note, stopped_parts
from ..lines.search import Bounds
from ..result import ExerciseResult, Outcome
from ..submission import AttemptSource
from ..submission.standing import told_of_file
from .check import check_attempt, told_of, unloadable
from .describe_exception import describe_exception
from .endless import with_endless_line
from .lines import WAITED_FOR, prove_own_lines
from .own_checks import with_own_checks


def check_source(
    fingerprints: Fingerprints,
    source: AttemptSource,
    box: Box,
    limits: Limits,
    bounds: Bounds = WAITED_FOR,
    exercise: Exercise | None = None,
) -> ExerciseResult:
    """The result of the visible checks. Nothing that the attempt does makes this raise.

    bounds: of the search for its line. exercise: its row of course.yaml.
    """
    result = _checked(fingerprints, source, box, limits, bounds)
    return told_of_file(told_of(fingerprints, result, exercise), source)


def _checked(
    fingerprints: Fingerprints, source: AttemptSource, box: Box, limits: Limits, bounds: Bounds
) -> ExerciseResult:
    if source.missing:
        return unloadable(fingerprints, "missing", f"{source.name} is not here.")
    if source.problem:
        return unloadable(fingerprints, "error", source.problem, "load_error")
    attempt = AttemptRunner(box, source, limits)
    try:
        raised = attempt.load()
        if raised is not None:
            sentence = f"The file cannot be imported: it {describe_exception(raised)}."
            return unloadable(fingerprints, "error", sentence, "load_error")
        source = attempt.source
        note = stopped_parts(source, attempt.stopped, describe_exception)
        result = check_attempt(fingerprints, attempt, source.source)
        if are_the_cause(source, attempt.stopped, attempt.transcript):
            return unloadable(fingerprints, "error", note, "load_error")
        attempt.close()
        result = with_endless_line(result, source, attempt.ended, box, limits, attempt.dtype)
        result = with_own_checks(result, source, box, limits)
        lines = prove_own_lines(fingerprints, source, attempt, result, box, limits, bounds)
        return result.model_copy(update={"lines": lines, "note": " ".join(filter(None, (as_note(note), result.note)))})
    except AttemptEnded as ended:
        outcome: Outcome = "timeout" if ended.end is End.TIMEOUT else "crashed"
        return unloadable(fingerprints, outcome, f"While the file was imported: {ended}")
    finally:
        attempt.close()
