"""`course check`: a student's own attempt, against recorded answers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ..course import Course, Exercise
from ..course.model import exercises_called
from ..errors import CourseFault
from ..report.labels import label_of
from ..report.ladder import after_done, following, how_far, welcome
from ..report.result_evidence import defined_on
from ..report.terminal import fitted_report, next_after
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
        raise CourseFault("--watch gives no JSON: ask for it after each save. Next: course check --json")
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
    with ExitStack() as stack:
        checking = _Checking(loaded, console, stack, fresh, len(started), exercises or [])
        for exercise, source in started:
            checking.show(exercise, source)
    checking.end()


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


def _next_of(exercise: Exercise, result: ExerciseResult, source: AttemptSource) -> str:
    """Return what comes next for an attempt that is not done: the next function, where all that is written is right."""
    if attempt_words(result).gives_hint:
        return f"Next: course hint {exercise.id}"
    if any(f.state not in ("right", "so_far", "waiting", "unwritten") for f in result.functions):
        return next_after(result) or f"Next: course hint {exercise.id}"
    name = next((function.name for function in result.functions if function.state == "unwritten"), "")
    line, path = defined_on(source.source, name), from_here(exercise.script.with_name(source.name))
    where = f"{name}, on {proved_line(source, line).place} of {path}" if line else name
    return where and f"Next: write {where}, then: course check {exercise.id}"


@dataclass
class _Checking:
    """Shows one attempt after the other. The box is opened for the first that has to be run.

    On a terminal, of several attempts one is shown whole: the first that is not done, or the last.
    many: how many there are. names: those that were given; of what is named it is told why it works, also unchanged.
    following: what comes next for the first that is not done.
    """

    course: Course
    console: Console
    stack: ExitStack
    fresh: bool
    many: int
    names: Sequence[str]
    seen: int = 0
    done: list[Exercise] = field(default_factory=list)
    following: str = ""
    box: Box | None = None

    def show(self, exercise: Exercise, source: AttemptSource) -> None:
        """Print the result of an attempt."""
        self.seen += 1
        if said := judged_instead(exercise, source, self.names):
            self.console.say(f"note: {said}", style="dim")
        if source.missing:
            said, _, following = source.problem.partition("\nNext: ")
            self.console.say(said, style="red")
            self.following = self.following or f"Next: {following}"
            return
        last = None if self.fresh else last_result(exercise, source)
        unchanged = last is not None and not was_stopped(last)
        result = last if last is not None and unchanged else self._run(exercise, source)
        is_first = not self.following and (not result.is_done or self.seen == self.many)
        is_whole = is_first or not self.console.is_terminal
        after = after_done(exercise) if result.is_done and is_whole and (self.names or not unchanged) else ()
        report = fitted_report(self.console, result, label_of(exercise), after, self.many + 5)
        self.console.print(report if is_whole else report.renderables[0])
        if unchanged:
            keep(exercise, source, result)  # it was checked last
            if is_whole:
                self.console.tell("  unchanged since its last check; --fresh runs it again", style="dim")
        if result.is_done:
            self.done.append(exercise)
        else:
            self.following = self.following or _next_of(exercise, result, source) or f"Next: course check {exercise.id}"
            if is_whole and not unchanged and attempt_words(result).gives_hint:
                from ..student.hints import note_first

                note_first(result, self.course.root)

    def end(self) -> None:
        """Say how far the student is, where something is done, and what comes next. Exits where something is not done."""
        done, kept = set(self.done), done_exercises(self.course) if self.done else set()
        if done - kept:
            said = "this result cannot be kept here, and course status will not know of it"
            self.console.say(f"note: {said}. Free some space, or copy the folder to where you may write.", style="dim")
        if done:
            self.console.tell(how_far(self.course, done | kept))
        if self.following:
            self.console.tell(self.following)
            raise typer.Exit(1)
        upcoming = following(self.course, done | kept, self.done[-1])
        if upcoming is None:
            self.console.tell("All done.")
        else:
            where = f"{upcoming.title}, in {from_here(upcoming.script)}"
            self.console.tell(f"Next: go on with {where}, then: course check {upcoming.id}")

    def _run(self, exercise: Exercise, source: AttemptSource) -> ExerciseResult:
        if self.box is None:
            from ..box.forked import open_own_box

            self.box = self.stack.enter_context(open_own_box(meta=True))
        with waiting(self.console, f"checking {label_of(exercise)}"):  # an endless loop takes until its limit
            return check_one(self.course, exercise, source, self.box)
