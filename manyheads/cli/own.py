"""A student's own attempt at an exercise: where it is, whether it is started, its visible checks, and what they tell as data.

What runs an attempt does so in an open box, `open_own_box(meta=True)`, or opens one each time. A process that has threads opens
it before them, for the box may fork.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from os.path import basename
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Literal

from ..course import Course, CourseError, Exercise
from ..report.result_evidence import Evidence, ExerciseEvidence, evidence_of
from ..report.words import FunctionReport, attempt_words
from ..result import ExerciseResult
from ..submission import AttemptSource, Unreadable, code_digest, largest, read_attempt, read_bytes, read_file
from ..submission.unwritten import is_unwritten
from .last_check import facts, fingerprint_path, keep, last_result, was_stopped

if TYPE_CHECKING:
    from ..box.level import Box

PATIENCE = 2  # how many times the limits of grading: a laptop may be slow, and no points depend on it


def judged_instead(exercise: Exercise, source: AttemptSource, names: Collection[str]) -> str:
    """Return why not the file that was named is judged, but the one beside it; "" where nothing needs to be said."""
    for other in {exercise.script, exercise.notebook} - {exercise.script.with_name(source.name)}:
        is_named = other.name in map(basename, names)
        if is_named and not source.missing and not source.note:  # a note is told with the result
            why = "is as it was handed out" if other.exists() else "is not here"
            return f"{source.name} is judged, for {other.name} {why}."
    return ""


def is_started(exercise: Exercise, source: AttemptSource) -> bool:
    """Return whether the attempt differs from the untouched stub."""
    return not source.missing and code_digest(source.source) != facts(exercise).stub


def why_unstarted(exercise: Exercise, source: AttemptSource, command: str) -> list[str]:
    """Return why nothing of the student's can run, and what comes next; nothing where something can."""
    if source.missing:
        return source.problem.splitlines()
    if not source.problem and is_started(exercise, source):
        return []
    first = "mend the file" if source.problem else f"fill the first stub of {exercise.stem}"
    return [
        source.problem or f"{exercise.id} is not started yet: there is nothing to {command}.",
        f"Next: {first}, then: course {command} {exercise.id}",
    ]


def check_one(course: Course, exercise: Exercise, source: AttemptSource, box: Box | None = None) -> ExerciseResult:
    """Run the visible checks of one attempt in a process of its own, and keep the result. `box`: an open box, if there is one."""
    from ..box.forked import open_own_box
    from ..diagnosis.recording_file import read
    from ..student.check_attempt import refuse_what_does_not_fit
    from ..student.run_attempt import check_source

    if box is None:
        with open_own_box(meta=True) as own:
            return check_one(course, exercise, source, own)
    path = fingerprint_path(exercise)
    refuse_what_does_not_fit(recording := read(path), path)
    limits = course.limits.for_worker()
    longer = {key: PATIENCE * getattr(limits, key) for key in ("seconds_per_call", "seconds_per_attempt")}
    result = check_source(recording, source, box, replace(limits, **longer), exercise=exercise)
    result = result.model_copy(update={"note": " ".join(filter(None, (source.note, result.note)))})
    keep(exercise, source, result)
    return result


def own_attempt(course: Course, exercise: Exercise) -> AttemptSource:
    """Return the attempt in exercises/: the script, or the notebook where that alone is worked on, or there.

    Missing, with a problem that says why and what comes next, where there is neither, or what is written has another name.
    """
    script = exercise.script
    source = read_attempt(script.parent, exercise.stem, facts(exercise).stub, course.limits.source_kib)
    if is_started(exercise, source):
        return source
    if other := _other_name(course, exercise):
        right = script.with_suffix(Path(other).suffix)
        is_here = "is as it was handed out" if script.exists() else "is not here"
        next_ = f"put it in the place of {right.name}" if right.exists() else f"rename it to {right.name}"
        said = f"{script.name} {is_here}, and {other} is not read.\nNext: {next_}, then: course check {exercise.id}"
        return AttemptSource(other, missing=True, problem=said)
    if source.missing:
        said = f"{script.name} is not here.\nNext: git checkout {quote(str(from_here(script)))}"
        return replace(source, problem=said)
    return read_file(script, course.limits.source_kib) if script.exists() else source


def _other_name(course: Course, exercise: Exercise) -> str:
    """Return a file beside the exercise's own that has nearly its name and is read for no exercise; "" where there is none.

    Beside an untouched script, only one in which something is written; without a script, also one that defines what is asked for.
    """
    from ..submission.which_exercise import Exercises, NotPlaced

    script, kib, exercises = exercise.script, course.limits.source_kib, Exercises(course)
    own = {path for other in course.exercises for path in (other.script, other.notebook)}
    files = sorted(path for path in script.parent.glob("*") if path.suffix in (".py", ".ipynb") and path not in own)
    names = [path.name for path in files]
    near = [name for name in names if exercise.id in name] or get_close_matches(script.name, names, n=1, cutoff=0.85)
    if script.exists():
        near = [name for name in near if not is_unwritten(read_file(script.with_name(name), kib).source)]
    for path in () if near or script.exists() else files:
        with suppress(NotPlaced, Unreadable):
            if exercises.of(path.name, read_bytes(path, largest(path.name, kib))) == exercise:
                return path.name
    return near[0] if near else ""


def done_exercises(course: Course) -> set[Exercise]:
    """Return the exercises that the last check of their present text found done. Nothing is run."""
    done = set()
    for exercise in course.exercises:
        with suppress(CourseError):  # a recorded file is missing: whoever checks that exercise is told
            result = last_result(exercise, own_attempt(course, exercise))
            if result is not None and result.is_done:
                done.add(exercise)
    return done


def from_here(path: Path) -> Path:
    """Return the path, relative to the working folder where it is below it."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def print_evidence(command: Literal["check", "status"], told: Iterable[ExerciseEvidence]) -> None:
    """Print what a command found as one JSON object, and nothing else."""
    print(Evidence(command=command, exercises=tuple(told)).model_dump_json(indent=1))


def problem_lines(told: ExerciseEvidence, path: Path) -> Iterator[str]:
    """Yield a line for each thing that is wrong, as compilers do: path:line:column: error: sentence. Of a notebook, line 1."""
    for each in told.wrong:
        place = "1:1" if each.cell else f"{each.line}:{each.column}"
        yield f"{path}:{place}: error: {each.sentence}{each.hint and f' Hint: {each.hint}'}"
    if told.problem:
        yield f"{path}:1:1: error: {' '.join(told.problem.split())}"


def check_evidence(
    course: Course, exercise: Exercise, box: Box | None = None, *, fresh: bool = False
) -> ExerciseEvidence:
    """Return what `course check` tells of an exercise. What has not changed since its last check is not run, unless `fresh`."""
    source = own_attempt(course, exercise)
    if source.missing:
        return _told(course, exercise, source)
    last = last_result(exercise, source)
    result = check_one(course, exercise, source, box) if fresh or last is None or was_stopped(last) else last
    keep(exercise, source, result)  # it was checked last
    if attempt_words(result).gives_hint:
        from ..student.hints import note_first

        note_first(result, course.root)
    return _told(course, exercise, source, result)


def status_evidence(course: Course, exercise: Exercise, *, fresh: bool = False) -> ExerciseEvidence:
    """Return where the student stands with an exercise: its state, its points and its checks."""
    source = own_attempt(course, exercise)
    if not is_started(exercise, source):
        return _told(course, exercise, source)
    last = None if fresh else last_result(exercise, source)
    return _told(course, exercise, source, last or check_one(course, exercise, source))


def _told(
    course: Course, exercise: Exercise, source: AttemptSource, result: ExerciseResult | None = None
) -> ExerciseEvidence:
    """Return what is known of an exercise: its state and its points, and of what was checked the functions and the checks."""
    told = ExerciseEvidence(
        id=exercise.id,
        title=exercise.title,
        assignment=exercise.assignment.id,
        file=exercise.script.with_name(source.name).relative_to(course.root).as_posix(),
        state="missing" if source.missing else "in progress" if is_started(exercise, source) else "untouched",
        score=0.0,
        max_score=exercise.points,
        next=f"course check {exercise.id}",
    )
    if result is None:
        return told.model_copy(update={"problem": source.problem})
    words = attempt_words(result)

    def shown(report: FunctionReport) -> int:
        from ..student.hints import level_of

        return max(level_of(result, report.named, course.root), 1)  # the first is told with the check

    functions, checks = evidence_of(result, source, shown)
    parts: dict[str, object] = {key: getattr(result, key) for key in ("unseen", "note")}
    parts |= {"functions": functions, "checks": checks, "score": result.score or 0.0}
    if result.is_done:
        parts |= {"state": "done", "next": ""}
    if following := f"course hint {exercise.id}" if words.gives_hint else words.first.next if words.first else "":
        parts["next"] = following
    return told.model_copy(update=parts)
