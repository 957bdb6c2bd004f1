"""Grade the collected files of one pull request in the box, and hand the results to the next job and to the next push.

What is handed on is read as data that anybody could have written.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ..box.names import Device, Level
from ..course import Assignment, Course, Exercise
from ..course.load import course_secret
from ..errors import CourseFault
from ..judge.judge_process import GradePlan, SteadyJudge
from ..report.labels import IDS, Labels
from ..result import MOST_LINES, ExerciseResult, Result, result_path, total_of, with_total, write_result
from ..submission import ENDINGS, AttemptSource, Unreadable, code_digest, find_submissions, read_attempt, read_bytes
from ..submission.read import LINE_LIMIT
from .github import Collected

CLEAN = "clean"
EXCLUDED = {"crashed": "crashed", "timeout": "ran out of time"}
ABOUT = "about.json"
LIMIT_KIB = 1024  # of one file of an artifact
CHECKS = 200  # of one exercise

M = TypeVar("M", bound=BaseModel)
Started = Mapping[tuple[str, str], str]  # ids (assignment, exercise): the name of the file that counts


def why_not_on_a_gpu(results: Sequence[Result], refused: Sequence[str], labels: Labels = IDS) -> str:
    """Return one sentence that says why attempts may not run on the GPU, from their results on a CPU; "" if they may."""
    if not results:
        return "Nothing is started."
    if refused:
        return "A file could not be taken."
    checks = [(exercise.id, check) for result in results for exercise in result.exercises for check in exercise.checks]
    for id_, check in checks:
        if check.outcome in EXCLUDED:
            return f"An attempt ({labels.exercise(id_)}) {EXCLUDED[check.outcome]} on the CPU."
    return "" if any(check.score for _, check in checks) else "Nothing works on the CPU yet."


def _attempt(course: Course, exercise: Exercise, handed_in: Path) -> tuple[AttemptSource, bool]:
    """Return an attempt, and whether it differs from its stub."""
    stub = code_digest(exercise.script.read_text(encoding="utf-8"))
    attempt = read_attempt(handed_in / exercise.assignment.id, exercise.stem, stub, course.limits.source_kib)
    return attempt, not attempt.missing and bool(attempt.problem or code_digest(attempt.source) != stub)


def started_in(course: Course, handed_in: Path) -> Started:
    """Return the attempts in a student's folder that differ from their stubs."""
    attempts = {(e.assignment.id, e.id): _attempt(course, e, handed_in) for e in course.exercises}
    return {ids: attempt.name for ids, (attempt, is_started) in attempts.items() if is_started}


def not_started(course: Course, started: Started) -> frozenset[tuple[str, str]]:
    """Return the ids (assignment, exercise) of all other exercises."""
    return frozenset((e.assignment.id, e.id) for e in course.exercises) - started.keys()


class About(BaseModel):
    """What was graded. started: assignment, exercise, and the name of the file that counted. digests: of attempts.

    The reporting job cannot compute `started`: in the class repository an attempt may have replaced a stub.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    student: str
    head: str
    device: Device
    assignments: tuple[str, ...]
    started: tuple[tuple[str, str, str], ...]
    digests: dict[str, str] = {}


@dataclass(frozen=True)
class Artifact:
    """The content of an artifact. digests: of the attempts, by exercise."""

    results: Sequence[Result] = ()
    started: Started = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)


def grade_collected(
    course: Course, collected: Collected, submitted: Path, device: Device, before: Artifact | None = None
) -> Artifact:
    """Return a result for each assignment with an exercise that is started.

    before: that of an earlier push; what has not changed since is not graded again. Where a judge dies or a check fails by
    itself, that exercise is not graded. Raises BoxUnavailable if this machine cannot provide the box, GraderFault if
    nothing can be graded.
    """
    handed_in = submitted / collected.student
    started = started_in(course, handed_in)
    digests = {each.id: _attempt(course, each, handed_in)[0].digest for each in course.exercises}
    earlier = {result.assignment: result for result in (before or Artifact()).results}
    same = {id_ for id_, digest in digests.items() if before and before.digests.get(id_) == digest}
    kept = {e.id: e for result in earlier.values() for e in result.exercises if e.id in same and e.is_graded}
    submissions, _ = find_submissions(course, submitted)
    wanted = {assignment for assignment, _ in started}
    plan, results = GradePlan(course_secret(course.root), device=device, course=course.root, level=Level.NAMESPACES), []
    with ExitStack() as stack:
        judge: SteadyJudge | None = None
        for submission in (each for each in submissions if each.student == collected.student):
            assignment = submission.assignment
            todo = [exercise.id for exercise in assignment.exercises if exercise.id not in kept]
            if assignment.id not in wanted:
                continue
            if not todo:
                results.append(earlier[assignment.id])
                continue
            judge = judge or stack.enter_context(closing(SteadyJudge(plan)))
            graded = judge.grade(submission, todo)
            for fault in graded.faults:  # the instructor can read the job's log
                print(f"course: a fault of the grader's own: {fault}. Next: course verify", file=sys.stderr)
            of = {exercise.id: exercise for exercise in graded.result.exercises} | kept
            results.append(with_total(graded.result, [of[exercise.id] for exercise in assignment.exercises]))
    return Artifact(results, started, digests)


def write_artifact(folder: Path, collected: Collected, device: Device, artifact: Artifact) -> None:
    """Write FOLDER/<student>/<assignment>.json for every result, as a student may read it, and what was graded."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*/*.json"):  # of an earlier push
        path.unlink()
    for result in artifact.results:
        exercises = []
        for exercise in result.exercises:
            lines = tuple(line.model_copy(update={"edit": ""}) for line in exercise.lines)  # not what proves it
            exercises.append(exercise.model_copy(update={"lines": lines}))
        write_result(result.model_copy(update={"exercises": tuple(exercises)}), folder)
    about = About(
        student=collected.student,
        head=collected.head,
        device=device,
        assignments=tuple(result.assignment for result in artifact.results),
        started=tuple((*ids, name) for ids, name in artifact.started.items()),
        digests=dict(artifact.digests),
    )
    (folder / ABOUT).write_text(about.model_dump_json(indent=1) + "\n", encoding="utf-8")


class ArtifactError(CourseFault):
    """This is not an artifact of this pull request's grading. The text ends with what to do next."""


def earlier_artifact(folder: Path, course: Course, collected: Collected, device: Device) -> Artifact | None:
    """Return what an earlier push of the same student left; None where there is nothing that can be used."""
    try:
        about = _read(folder / ABOUT, About)
        same = collected.model_copy(update={"head": about.head})
        return read_artifact(folder, course, same) if about.device is device else None
    except ArtifactError:
        return None


def read_artifact(folder: Path, course: Course, collected: Collected) -> Artifact:
    """Read an artifact, which must be of this commit and possible in this course. Raises ArtifactError."""
    about = _read(folder / ABOUT, About)
    known = {assignment.id: assignment for assignment in course.assignments}
    possible = {(e.assignment.id, e.id, f"{e.stem}{end}") for e in course.exercises for end in ENDINGS}
    _demand(ABOUT, {
        "it is of another commit": (about.student, about.head) == (collected.student, collected.head),
        "its assignments": list(about.assignments) == [id_ for id_ in known if id_ in about.assignments],
        "what is started": possible.issuperset(about.started),
    })  # fmt: skip
    results = [_read(result_path(folder, collected.student, id_), Result) for id_ in about.assignments]
    for id_, result in zip(about.assignments, results, strict=True):
        _must_be_possible(result, known[id_], about)
    started = {(assignment, exercise): name for assignment, exercise, name in about.started}
    return Artifact(results, started, about.digests)


def _read(path: Path, model: type[M]) -> M:
    try:
        return model.model_validate_json(read_bytes(path, LIMIT_KIB))
    except Unreadable:
        _demand(path.name, {"it is missing, no regular file, or too large": False})
    except ValidationError:
        _demand(path.name, {"it does not follow the schema": False})
    raise AssertionError


def _must_be_possible(result: Result, assignment: Assignment, about: About) -> None:
    name, whose = f"{assignment.id}.json", (result.student, result.assignment, result.device)
    ids = [exercise.id for exercise in assignment.exercises]
    _demand(name, {
        "it is of another submission": whose == (about.student, assignment.id, about.device),
        "it was not graded in the box": result.isolation == Level.NAMESPACES,
        "its exercises": [e.id for e in result.exercises] == ids,
    })  # fmt: skip
    for exercise, known in zip(result.exercises, assignment.exercises, strict=True):
        adds_up = _adds_up(exercise)
        if about.device is Device.CPU:  # a GPU has additional checks
            adds_up = adds_up and _close((exercise.max_score,), (known.points,))
        allowed = len(exercise.lines) <= MOST_LINES and not (exercise.lines and exercise.is_done)
        places = all(line.line <= LINE_LIMIT and not line.edit for line in exercise.lines)
        _demand(name, {f"its points in {known.id}": adds_up, f"its lines in {known.id}": allowed and places})
    whole = (total_of(e.score for e in result.exercises), sum(e.max_score for e in result.exercises))
    _demand(name, {"its points": _close(whole, (result.score, result.max_score))})


def _adds_up(exercise: ExerciseResult) -> bool:
    checks = exercise.checks
    if len(checks) > CHECKS or any(c.score not in (0, c.max_score) for c in checks):
        return False
    if any((c.outcome == "passed") != (c.score > 0) for c in checks if c.max_score):
        return False
    could_not_run = any(c.outcome == "skipped" and c.max_score for c in checks)
    score = None if could_not_run else sum(c.score for c in checks)
    return _close((score, sum(c.max_score for c in checks)), (exercise.score, exercise.max_score))


def _close(a: tuple[float | None, ...], b: tuple[float | None, ...]) -> bool:
    """Return whether these are the same points, or there are none in the same places."""
    return all(
        x is y if x is None or y is None else math.isclose(x, y, abs_tol=1e-6) for x, y in zip(a, b, strict=True)
    )


def _demand(name: str, all_hold: Mapping[str, bool]) -> None:
    """Raise ArtifactError for the first of these problems that does not hold."""
    for problem, holds in all_hold.items():
        if not holds:
            raise ArtifactError(f"{name} is not what grading writes ({problem}). Next: run the workflow again")
