"""Run one attempt's visible checks in a box, from its source to the result."""

from __future__ import annotations

from ..box.connection import AttemptEnded, End
from ..box.level import Box
from ..box.worker.limits import Limits
from ..course import Exercise
from ..judge.attempt import AttemptRunner
from ..judge.stopped_cells import stopped_cells
from ..lines.search import Bounds
from ..result import ExerciseResult
from ..submission import AttemptSource
from ..submission.standing import told_of_file
from .check import check_attempt, told_of, unloadable
from .describe_exception import describe_exception
from .endless import where_import_stays, with_endless_line
from .file import Fingerprints
from .imports import unavailable_import
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
    if sentence := unavailable_import(source.source):
        return unloadable(fingerprints, "error", sentence, "load_error")
    attempt = AttemptRunner(box, source, limits)
    try:
        raised = attempt.load()
        if raised is not None:
            sentence = f"The file cannot be imported: it {describe_exception(raised)}."
            return unloadable(fingerprints, "error", sentence, "load_error")
        note = stopped_cells(source, attempt.stopped, describe_exception)
        result = check_attempt(fingerprints, attempt, source.source)
        if note and not any(check.outcome == "passed" for check in result.checks):
            return unloadable(fingerprints, "error", note, "load_error")
        attempt.close()
        result = with_endless_line(result, source, attempt.ended, box, limits, attempt.dtype)
        result = with_own_checks(result, source, box, limits)
        lines = prove_own_lines(fingerprints, source, attempt, result, box, limits, bounds)
        return result.model_copy(update={"lines": lines, "note": " ".join(filter(None, (note, result.note)))})
    except AttemptEnded as ended:
        if ended.end is not End.TIMEOUT:
            return unloadable(fingerprints, "crashed", f"While the file was imported: {ended}")
        said = where_import_stays(source, box, limits) or ended
        return unloadable(fingerprints, "timeout", f"While the file was imported: {said}")
    finally:
        attempt.close()
