"""Give a student's own attempts as evidence: what `--json`, `course lsp` and other programs tell.

`check_evidence` and its likes print nothing. They run attempts in an open box, `open_own_box(meta=True)`, or open one each time.
A process that has threads opens it before them, for the box may fork.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..course import Course, Exercise
from ..course.secret import FOLDER
from ..evidence import (
    CallEvidence,
    Evidence,
    ExerciseEvidence,
    HintEvidence,
    LineEvidence,
    RepeatEvidence,
)
from ..report.result_evidence import evidence_of, placed
from ..report.words import FunctionReport, attempt_words
from ..result import ExerciseResult
from ..submission import AttemptSource, lines_of
from ..submission.read import in_cells
from .last_check import NOTE, fingerprint_path, keep, last_result, was_stopped
from .own import check_one, is_started, missing_message, own_attempt, why_unstarted

if TYPE_CHECKING:
    from ..box.level import Box
    from ..box.worker.answers import Traced
    from ..student.example import Example


def print_evidence(
    command: Literal["check", "hint", "trace", "status", "ask"], told: Iterable[ExerciseEvidence]
) -> None:
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
        return _known(course, exercise, source, problem=missing_message(course, exercise))
    last = last_result(exercise, source)
    result = check_one(course, exercise, source, box) if fresh or last is None or was_stopped(last) else last
    keep(exercise, source, result)  # it was checked last
    if attempt_words(result).gives_hint:
        from ..student.hints import note_first

        note_first(result, course.root / FOLDER / NOTE)
    return _checked(course, exercise, source, result)


def status_evidence(
    course: Course, exercise: Exercise, box: Box | None = None, *, fresh: bool = False
) -> ExerciseEvidence:
    """Return where the student stands with an exercise: its state, its points and its checks."""
    source = own_attempt(course, exercise)
    if not is_started(exercise, source):
        return _known(course, exercise, source)
    last = None if fresh else last_result(exercise, source)
    return _checked(course, exercise, source, last or check_one(course, exercise, source, box))


def hint_evidence(
    course: Course, exercise: Exercise, box: Box | None = None, *, again: bool = False
) -> ExerciseEvidence:
    """Return the next hint, which counts as shown from now on; none where every check passes. again: start with the first."""
    source = own_attempt(course, exercise)
    if source.missing:
        return _known(course, exercise, source, problem=missing_message(course, exercise))
    if not is_started(exercise, source):
        start = HintEvidence(title="Nothing is written here yet.", hint=exercise.hint, step=1, steps=1)
        return _known(course, exercise, source, hint=start)
    result = last_result(exercise, source) or check_one(course, exercise, source, box)
    if result.is_done:
        return _known(course, exercise, source, result)
    from ..diagnosis.recording_file import read
    from ..student.hints import next_hint

    content, note = read(fingerprint_path(exercise)).content, course.root / FOLDER / NOTE
    given = next_hint(content, result, exercise.hint, note, again=again)
    hint, following = HintEvidence.model_validate(given), f"course {given.following} {exercise.id}"
    return _known(course, exercise, source, result, hint=hint, next=following)


def trace_evidence(
    course: Course, exercise: Exercise, function: str | None = None, box: Box | None = None
) -> ExerciseEvidence:
    """Return what each line does to shapes, call by call. Raises CourseError where the exercise has no such function."""
    from ..box.forked import open_own_box
    from ..diagnosis.recording_file import read
    from ..student.choose_example import examples_named
    from ..student.follow import follow

    if box is None:
        with open_own_box() as own:
            return trace_evidence(course, exercise, function, own)
    source = own_attempt(course, exercise)
    if lines := why_unstarted(course, exercise, source, "trace"):
        return _known(course, exercise, source, problem="\n".join(lines))
    chosen = examples_named(exercise, read(fingerprint_path(exercise)), function, "course trace")
    followed = follow(box, course.limits.for_worker(), source, chosen)
    calls = [_call(example, traced, source) for example, traced in followed.shown]
    return _known(course, exercise, source, last_result(exercise, source), calls=calls, problem=followed.ended)


def _known(
    course: Course, exercise: Exercise, source: AttemptSource, result: ExerciseResult | None = None, **parts: Any
) -> ExerciseEvidence:
    """Return what is known of an exercise beside its checks: its state, its points, and these parts."""
    state = "missing" if source.missing else "in progress" if is_started(exercise, source) else "untouched"
    known = {
        "id": exercise.id,
        "title": exercise.title,
        "assignment": exercise.assignment.id,
        "file": exercise.script.with_name(source.name).relative_to(course.root).as_posix(),
        "state": "done" if result is not None and result.is_done else state,
        "score": (result and result.score) or 0.0,
        "max_score": exercise.points,
        "next": "" if result is not None and result.is_done else f"course check {exercise.id}",
    }
    return ExerciseEvidence.model_validate({**known, **parts})


def _checked(course: Course, exercise: Exercise, source: AttemptSource, result: ExerciseResult) -> ExerciseEvidence:
    words, note = attempt_words(result), course.root / FOLDER / NOTE

    def shown(report: FunctionReport) -> int:
        from ..student.hints import level_of

        return max(level_of(result, report.named, note), 1)  # the first is told with the check

    functions, checks = evidence_of(result, source, shown)
    parts = {key: getattr(result, key) for key in ("unseen", "note", "printed")}
    if following := f"course hint {exercise.id}" if words.gives_hint else words.first.next if words.first else "":
        parts["next"] = following
    return _known(course, exercise, source, result, functions=functions, checks=checks, **parts)


def _call(example: Example, traced: Traced, source: AttemptSource) -> CallEvidence:
    from ..student.explain_trace import TraceLine, explained
    from ..student.follow import Source

    told = explained(example, traced, Source(tuple(lines_of(source.source))))
    lines: list[LineEvidence] = []
    repeats: list[RepeatEvidence] = []
    for each in told.entries:
        if isinstance(each, TraceLine):
            ran = {"depth": each.depth, "code": each.code, "operations": each.operations}
            lines.append(LineEvidence.model_validate(ran | placed(source, int(each.label))))
        else:
            repeats.append(RepeatEvidence.model_validate(each))
    ended = {key: getattr(told, key) for key in ("title", "sizes", "dropped", "returned", "right")}
    ended |= {"function": example.target, "raised": in_cells(told.raised, source), "lines": lines, "repeats": repeats}
    return CallEvidence.model_validate(ended)
