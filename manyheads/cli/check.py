"""`course check`: a student's own attempt, against recorded answers."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ..course import Course, Exercise
from ..course.model import exercises_called
from ..errors import CourseFault
from ..report.labels import label_of
from ..report.ladder import after_done, following, how_far, welcome
from ..report.result_evidence import defined_on
from ..report.terminal import exercise_report
from ..report.words import attempt_words
from ..result import ExerciseResult
from ..submission import AttemptSource, proved_line
from .last_check import keep, last_result, was_stopped
from .options import (
    AssignmentOption,
    Console,
    CourseOption,
    FreshOption,
    JsonOption,
    course_of,
    exercises_named,
    open_console,
)
from .own import (
    check_evidence,
    check_one,
    done_exercises,
    from_here,
    is_started,
    judged_instead,
    own_attempt,
    print_evidence,
    problem_lines,
)
from .progress import waiting
from .watch import watch_as_lines, watch_exercises

if TYPE_CHECKING:
    from ..box.level import Box

_Attempt = tuple[Exercise, AttemptSource]


def check(
    exercises: Annotated[
        list[str] | None, typer.Argument(help="Ids or files, or an assignment [default: all that are started].")
    ] = None,
    assignment: AssignmentOption = None,
    course: CourseOption = None,
    *,
    watch: Annotated[bool, typer.Option("--watch", help="Check again at every save, until Ctrl-C.")] = False,
    fresh: FreshOption = False,
    as_json: JsonOption = False,
    format: Annotated[
        Literal["text", "lines"], typer.Option("--format", help="lines: what is wrong, a line each, for an editor.")
    ] = "text",
) -> None:
    """Check your own attempts, and name the misconception behind a mistake.

    Example: `course check reshape_dance`, or `course check --watch` while you write.
    """
    loaded = course_of(course)
    named = exercises_named(loaded, exercises or [], assignment)
    console = open_console()
    if watch and as_json:
        raise CourseFault("--watch gives no JSON. Next: course check --json, after each save")
    if watch:
        from ..box.forked import open_own_box

        with open_own_box(meta=True) as box:
            if format == "lines":
                watch_as_lines(loaded, named, box)
            else:
                watch_exercises(loaded, named, box, console)
        return
    started = [(e, own_attempt(loaded, e)) for e in named]
    if exercises:
        started = _meant(loaded, exercises, started)
    else:
        started = [(e, s) for e, s in started if is_started(e, s) or (s.missing and s.name != e.script.name)]
    if as_json or format == "lines":
        _for_programs(loaded, [exercise for exercise, _ in started], as_json=as_json, fresh=fresh)
        return
    if not started:
        console.tell(*welcome(loaded, str(from_here(loaded.exercises[0].script))))
        return
    for exercise, source in started:
        if said := judged_instead(exercise, source, exercises or []):
            console.say(f"note: {said}", style="dim")
    with ExitStack() as stack:
        checking = _Checking(loaded, console, stack, tells_why=bool(exercises))
        passed = {exercise: checking.show(exercise, source, fresh=fresh) for exercise, source in started}
    _say_how_far(console, loaded, passed)
    if not all(passed.values()):
        raise typer.Exit(1)


def _for_programs(course: Course, exercises: list[Exercise], *, as_json: bool, fresh: bool) -> None:
    """Print what is told of these exercises as JSON, or what is wrong as lines."""
    told = [check_evidence(course, exercise, fresh=fresh) for exercise in exercises]
    if as_json:
        print_evidence("check", told)
    for each in () if as_json else told:
        for line in problem_lines(each, from_here(course.root / each.file)):
            print(line)
    if any(each.state != "done" for each in told):
        raise typer.Exit(1)


def _meant(course: Course, names: list[str], attempts: list[_Attempt]) -> list[_Attempt]:
    """Return those that are begun, if any is, where a number alone is given and stands in several assignments; else all."""
    if len(names) != 1 or len(exercises_called(course.exercises, names[0])) < 2:
        return attempts
    return [attempt for attempt in attempts if is_started(*attempt)] or attempts


def _say_how_far(console: Console, course: Course, passed: Mapping[Exercise, bool]) -> None:
    """After something that is done: how much is done, and what comes next."""
    if not any(passed.values()):
        return
    kept, right = done_exercises(course), {exercise for exercise, is_right in passed.items() if is_right}
    done = kept | right
    if right - kept:
        said = "note: this result cannot be kept here, and course status will not know of it"
        console.say(f"{said}. Next: free some space, or copy the folder to where you may write", style="dim")
    last = [exercise for exercise in passed if passed[exercise]][-1]
    open_here = next((exercise for exercise in passed if not passed[exercise]), None)
    upcoming = open_here or following(course, done, last)
    if upcoming is None:
        console.tell(how_far(course, done), "All done.")
    else:
        what = "change" if upcoming == open_here else f"{upcoming.title}, in"
        next_ = f"Next: {what} {from_here(upcoming.script)}, then: course check {upcoming.id}"
        console.tell(how_far(course, done), next_)


def _next_function(exercise: Exercise, result: ExerciseResult, source: AttemptSource) -> str:
    """Return the function to write next, with its line and file, where all that is written is right; "" else."""
    if result.is_done or any(f.state not in ("right", "so_far", "waiting", "unwritten") for f in result.functions):
        return ""
    name = next((function.name for function in result.functions if function.state == "unwritten"), "")
    line = defined_on(source.source, name)
    path = from_here(exercise.script.with_name(source.name))
    return f"{name}, on {proved_line(source, line).place} of {path}" if line else name


@dataclass
class _Checking:
    """Shows one attempt after the other. The box is opened for the first that has to be run.

    tells_why: also of what is unchanged since its last check, why it works.
    """

    course: Course
    console: Console
    stack: ExitStack
    tells_why: bool = False
    box: Box | None = None

    def show(self, exercise: Exercise, source: AttemptSource, *, fresh: bool) -> bool:
        """Print the result of an attempt. Returns whether every check passed."""
        if source.missing:
            self.console.say(source.problem, style="red")
            return False
        last = None if fresh else last_result(exercise, source)
        unchanged = last is not None and not was_stopped(last)
        result = last if last is not None and unchanged else self._run(exercise, source)
        tells_why = result.is_done and (self.tells_why or not unchanged)
        self.console.print(
            exercise_report(result, label=label_of(exercise), after=after_done(exercise) if tells_why else ())
        )
        if following := _next_function(exercise, result, source):
            self.console.tell(f"Next: {following}, then: course check {exercise.id}")
        elif not result.is_done and attempt_words(result).gives_hint:
            self.console.tell(f"Next: course hint {exercise.id}")
            if not unchanged:
                from ..student.hints import note_first

                note_first(result, self.course.root)
        if unchanged:
            keep(exercise, source, result)  # it was checked last
            again = f"  unchanged since its last check; course check {exercise.id} --fresh runs it again"
            self.console.tell(again, style="dim")
        return result.is_done

    def _run(self, exercise: Exercise, source: AttemptSource) -> ExerciseResult:
        if self.box is None:
            from ..box.forked import open_own_box

            self.box = self.stack.enter_context(open_own_box(meta=True))
        with waiting(self.console, f"checking {label_of(exercise)}"):  # an endless loop takes until its limit
            return check_one(self.course, exercise, source, self.box)
