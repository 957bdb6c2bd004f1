"""Give a student's own attempts as evidence: what `--json`, `course lsp` and other programs tell.

`check_evidence` and its likes print nothing. Each takes an open box, `open_own_box(meta=True)`, or opens one where something has to be run. A process that has
threads opens it before them, for the box may fork.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
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
    OperationEvidence,
    RepeatEvidence,
)
from ..report.result_evidence import evidence_of, placed
from ..report.words import FunctionReport, attempt_words
from ..result import ExerciseResult
from ..submission import AttemptSource, lines_of
from .last_check import NOTE, fingerprint_path, keep, last_result, was_stopped
from .own import check_one, examples_named, is_started, missing_message, own_attempt, why_unstarted

if TYPE_CHECKING:
    from ..box.level import Box
    from ..student.example import Example


def print_evidence(command: Literal["check", "hint", "trace", "status"], told: Iterable[ExerciseEvidence]) -> None:
    """Print what a command found as one JSON object, and nothing else."""
    print(Evidence(command=command, exercises=tuple(told)).model_dump_json(indent=1))


def problem_lines(told: ExerciseEvidence, path: Path) -> Iterator[str]:
    """Yield a line for each thing that is wrong, as compilers do: path:line:column: error: sentence. Of a notebook, line 1."""
    for each in told.wrong:
        line, column = (1, 1) if each.cell else (each.line, each.column)
        hint = f" Hint: {each.hint}" if each.hint else ""
        yield f"{path}:{line}:{column}: error: {each.sentence}{hint}"
    if told.problem:
        yield f"{path}:1:1: error: {' '.join(told.problem.split())}"


@contextmanager
def box_for(exercises: Iterable[Exercise], course: Course, *, fresh: bool = False) -> Iterator[Box | None]:
    """Open one box for all of these, if one has to be run."""
    if not fresh and all(last_result(e, own_attempt(course, e)) for e in exercises):
        yield None
        return
    from ..box.forked import open_own_box

    with open_own_box(meta=True) as box:
        yield box


def check_evidence(
    course: Course, exercise: Exercise, box: Box | None = None, *, fresh: bool = False
) -> ExerciseEvidence:
    """Return what `course check` tells of an exercise. What has not changed since its last check is not run, unless `fresh`."""
    source = own_attempt(course, exercise)
    if source.missing:
        return _begun(course, exercise, source, problem=missing_message(course, exercise))
    last = last_result(exercise, source)
    result = _result(course, exercise, source, box, fresh=fresh or (last is not None and was_stopped(last)))
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
        return _begun(course, exercise, source)
    checked = _checked(course, exercise, source, _result(course, exercise, source, box, fresh=fresh))
    return checked.model_copy(update={"functions": ()})


def hint_evidence(
    course: Course, exercise: Exercise, box: Box | None = None, *, again: bool = False, in_turn: bool = False
) -> ExerciseEvidence:
    """Return the next hint, which counts as shown from now on; none where every check passes.

    again: start with the first step again. in_turn: refuse the last step until the file was saved since the step before.
    """
    source = own_attempt(course, exercise)
    if source.missing:
        return _begun(course, exercise, source, problem=missing_message(course, exercise))
    if not is_started(exercise, source):
        start = HintEvidence(title="Nothing is written here yet.", hint=exercise.hint, step=1, steps=1)
        return _begun(course, exercise, source, hint=start)
    result = _result(course, exercise, source, box)
    if result.is_done:
        return _begun(course, exercise, source, result)
    from ..diagnosis.recording_file import read
    from ..student.hints import LATE, is_due, next_hint

    content, note = read(fingerprint_path(exercise)).content, course.root / FOLDER / NOTE
    path = exercise.script.with_name(source.name)
    if in_turn and not again and not is_due(content, result, exercise.hint, note, path.stat().st_mtime_ns):
        problem = f"Hint {LATE} comes after a try: change {path.name} and save it. Next: course check {exercise.id}"
        return _begun(course, exercise, source, result, problem=problem)
    given = next_hint(content, result, exercise.hint, note, again=again)
    hint = HintEvidence(title=given.title, hint=given.hint, step=given.step, steps=given.steps)
    following = "trace" if given.shows_more else "check" if given.last else "hint"
    return _begun(course, exercise, source, result, hint=hint, next=f"course {following} {exercise.id}")


def trace_evidence(
    course: Course, exercise: Exercise, function: str | None = None, box: Box | None = None
) -> ExerciseEvidence:
    """Return what each line does to shapes, call by call. Raises CourseError where the exercise has no such function."""
    from ..box.forked import open_own_box

    if box is None:
        with open_own_box() as own:
            return trace_evidence(course, exercise, function, own)
    from ..student.follow import follow

    source = own_attempt(course, exercise)
    if lines := why_unstarted(course, exercise, source, "trace"):
        return _begun(course, exercise, source, problem=" ".join(lines))
    chosen = examples_named(exercise, function, "trace")
    followed = follow(box, course.limits.for_worker(), source, chosen)
    calls = tuple(_call(example, traced, source) for example, traced in followed.shown)
    result = last_result(exercise, source)
    return _begun(course, exercise, source, result, calls=calls, problem=followed.ended)


def _result(
    course: Course, exercise: Exercise, source: AttemptSource, box: Box | None, *, fresh: bool = False
) -> ExerciseResult:
    last = None if fresh else last_result(exercise, source)
    return check_one(course, exercise, source, box) if last is None else last


def _begun(
    course: Course, exercise: Exercise, source: AttemptSource, result: ExerciseResult | None = None, **parts: Any
) -> ExerciseEvidence:
    """Return what is known of an exercise without its checks: its state, its points, and these parts."""
    state = "missing" if source.missing else "in progress" if is_started(exercise, source) else "untouched"
    state = "done" if result is not None and result.is_done else state
    known = {
        "id": exercise.id,
        "title": exercise.title,
        "assignment": exercise.assignment.id,
        "file": exercise.script.with_name(source.name).relative_to(course.root).as_posix(),
        "state": state,
        "score": (result and result.score) or 0.0,
        "max_score": exercise.points,
        "next": "" if state == "done" else f"course check {exercise.id}",
    }
    return ExerciseEvidence.model_validate({**known, **parts})


def _checked(course: Course, exercise: Exercise, source: AttemptSource, result: ExerciseResult) -> ExerciseEvidence:
    words, note = attempt_words(result), course.root / FOLDER / NOTE
    functions, checks = evidence_of(result, source, lambda report: _shown(result, report, note))
    first = words.first
    following = f"course hint {exercise.id}" if words.gives_hint else first.next if first else ""
    parts = {"functions": functions, "checks": checks, "unseen": result.unseen, "note": result.note}
    parts |= {"printed": result.printed, "next": following} if following else {"printed": result.printed}
    return _begun(course, exercise, source, result, **parts)


def _shown(result: ExerciseResult, report: FunctionReport, note: Path) -> int:
    """Return how many hints were shown: the first is told with the check."""
    from ..student.hints import level_of  # which imports torch

    return max(level_of(result, report.named, note), 1)


def _call(example: Example, traced: Any, source: AttemptSource) -> CallEvidence:
    from ..student.explain_trace import TraceLine, explained
    from ..student.follow import Source
    from ..submission.read import in_cells

    told = explained(example, traced, Source(tuple(lines_of(source.source))))
    return CallEvidence(
        function=example.target,
        title=told.title,
        sizes=told.sizes,
        lines=tuple(
            LineEvidence(
                depth=line.depth,
                code=line.code,
                operations=tuple(
                    OperationEvidence.model_validate(
                        {key: getattr(each, key) for key in OperationEvidence.model_fields}
                    )
                    for each in line.operations
                ),
                **placed(source, int(line.label)),
            )
            for line in told.entries
            if isinstance(line, TraceLine)
        ),
        repeats=tuple(
            RepeatEvidence(first=int(each.first), last=int(each.last), more=each.more, alike=each.alike)
            for each in told.entries
            if not isinstance(each, TraceLine)
        ),
        dropped=told.dropped,
        returned=told.returned,
        right=told.right,
        raised=in_cells(told.raised, source),
    )
