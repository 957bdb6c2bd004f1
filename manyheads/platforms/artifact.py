"""The artifact that a grading job passes to the reporting job. It is read as untrusted data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ..box.names import Device, Level
from ..course import Assignment, Course
from ..errors import CourseFault
from ..result import MOST_LINES, ExerciseResult, Result, result_path, total_of, write_result
from ..submission import ENDINGS, Unreadable, read_bytes
from ..submission.read import LINE_LIMIT
from .grade_pull_request import Started
from .pull_request_files import Collected

ABOUT = "about.json"
LIMIT_KIB = 1024  # of one file
CHECKS = 200  # of one exercise

M = TypeVar("M", bound=BaseModel)


class ArtifactError(CourseFault):
    """This is not an artifact of this pull request's grading. The text ends with what to do next."""


class About(BaseModel):
    """What was graded. started: assignment, exercise, and the name of the file that counted.

    The reporting job cannot compute `started`: in the class repository an attempt may have replaced a stub.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    student: str
    head: str
    device: Device
    assignments: tuple[str, ...]
    started: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Artifact:
    """The content of an artifact."""

    results: Sequence[Result]
    started: Started


def write_artifact(
    folder: Path, collected: Collected, device: Device, results: Sequence[Result], started: Started
) -> None:
    """Write FOLDER/<student>/<assignment>.json for every result, and what was graded."""
    folder.mkdir(parents=True, exist_ok=True)
    for result in results:
        write_result(without_edits(result), folder)
    graded = tuple(result.assignment for result in results)
    names = tuple((*ids, name) for ids, name in started.items())
    about = About(student=collected.student, head=collected.head, device=device, assignments=graded, started=names)
    (folder / ABOUT).write_text(about.model_dump_json(indent=1) + "\n", encoding="utf-8")


def without_edits(result: Result) -> Result:
    """Return the result as a student may read it: with the lines that are wrong, without the edits that prove it."""
    exercises = []
    for exercise in result.exercises:
        lines = tuple(line.model_copy(update={"edit": ""}) for line in exercise.lines)
        exercises.append(exercise.model_copy(update={"lines": lines}))
    return result.model_copy(update={"exercises": tuple(exercises)})


def read_artifact(folder: Path, course: Course, collected: Collected) -> Artifact:
    """Read an artifact, which must be of this commit and possible in this course. Raises ArtifactError."""
    about = _read(folder / ABOUT, About)
    _demand((about.student, about.head) == (collected.student, collected.head), ABOUT, "it is of another commit")
    known = {assignment.id: assignment for assignment in course.assignments}
    _demand(list(about.assignments) == [id_ for id_ in known if id_ in about.assignments], ABOUT, "its assignments")
    possible = {(e.assignment.id, e.id, f"{e.stem}{end}") for e in course.exercises for end in ENDINGS}
    _demand(possible.issuperset(about.started), ABOUT, "what is started")
    results = []
    for id_ in about.assignments:
        result = _read(result_path(folder, collected.student, id_), Result)
        _must_be_possible(result, known[id_], about)
        results.append(result)
    return Artifact(results, {(assignment, exercise): name for assignment, exercise, name in about.started})


def _read(path: Path, model: type[M]) -> M:
    try:
        return model.model_validate_json(read_bytes(path, LIMIT_KIB))
    except Unreadable:
        raise _not_ours(path.name, "it is missing, no regular file, or too large") from None
    except ValidationError:
        raise _not_ours(path.name, "it does not follow the schema") from None


def _must_be_possible(result: Result, assignment: Assignment, about: About) -> None:
    name = f"{assignment.id}.json"
    whose = (result.student, result.assignment, result.device)
    _demand(whose == (about.student, assignment.id, about.device), name, "it is of another submission")
    _demand(result.isolation == Level.NAMESPACES, name, "it was not graded in the box")
    _demand([e.id for e in result.exercises] == [e.id for e in assignment.exercises], name, "its exercises")
    for exercise, known in zip(result.exercises, assignment.exercises, strict=True):
        _demand(_adds_up(exercise), name, f"its points in {known.id}")
        _demand(_is_a_place(exercise), name, f"its lines in {known.id}")
        if about.device is Device.CPU:  # a GPU has additional checks
            _demand(_close((exercise.max_score,), (known.points,)), name, f"its points in {known.id}")
    whole = (total_of(e.score for e in result.exercises), sum(e.max_score for e in result.exercises))
    _demand(_close(whole, (result.score, result.max_score)), name, "its points")


def _adds_up(exercise: ExerciseResult) -> bool:
    checks = exercise.checks
    if len(checks) > CHECKS or any(c.score not in (0, c.max_score) for c in checks):
        return False
    if any((c.outcome == "passed") != (c.score > 0) for c in checks if c.max_score):
        return False
    could_not_run = any(c.outcome == "skipped" and c.max_score for c in checks)
    score = None if could_not_run else sum(c.score for c in checks)
    return _close((score, sum(c.max_score for c in checks)), (exercise.score, exercise.max_score))


def _is_a_place(exercise: ExerciseResult) -> bool:
    """Return whether at most two lines of a file are told, of an attempt that is wrong, and no edit."""
    lines = exercise.lines
    allowed = len(lines) <= MOST_LINES and not (lines and exercise.is_done)
    return allowed and all(line.line <= LINE_LIMIT and not line.edit for line in lines)


def _close(a: tuple[float | None, ...], b: tuple[float | None, ...]) -> bool:
    """Return whether these are the same points, or there are none in the same places."""
    return all(
        x is y if x is None or y is None else math.isclose(x, y, abs_tol=1e-6) for x, y in zip(a, b, strict=True)
    )


def _demand(holds: bool, name: str, problem: str) -> None:
    if not holds:
        raise _not_ours(name, problem)


def _not_ours(name: str, problem: str) -> ArtifactError:
    return ArtifactError(f"{name} is not what grading writes ({problem}). Next: run the workflow again")
