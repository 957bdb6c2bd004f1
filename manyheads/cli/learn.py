"""Commands for a student's next step: `course hint`, `course status`, `course plot`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..course import Course, Exercise
from ..errors import CourseFault
from ..report.labels import label_of
from ..report.ladder import Rung, State, ladder
from ..report.words import function_reports
from ..result import ExerciseResult
from ..submission import AttemptSource
from .last_check import CHECKED_LAST, exercise_meant, facts, fingerprint_path, last_result
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
from .own import check_one, from_here, is_started, own_attempt, print_evidence, status_evidence
from .progress import waiting
from .trace import follow_own_attempt

if TYPE_CHECKING:
    from ..student.hints import Hint

PLOTS = "plots"  # in the course's folder, ignored by git


def hint(
    exercise: Annotated[str | None, typer.Argument(help="Its id or file.", show_default=CHECKED_LAST)] = None,
    course: CourseOption = None,
    *,
    again: Annotated[bool, typer.Option("--again", help="Start with the first step again.")] = False,
) -> None:
    """Ask for a hint: a question first, then a pointer, then nearly the answer.

    Example: `course hint reshape_dance`
    """
    loaded = course_of(course)
    wanted = exercise_meant(loaded, exercise, "hint")
    source = own_attempt(loaded, wanted)
    console = open_console()
    if source.missing:
        console.say(source.problem)
        raise typer.Exit(1)
    if not is_started(wanted, source):
        _print(
            console, wanted.hint, f"fill the first stub of {from_here(wanted.script)}, then: course check {wanted.id}"
        )
        return
    if (result := last_result(wanted, source)) is None:
        from ..box.forked import open_own_box

        # The box first: it may fork only while there is no other thread, and the spinner is one.
        with open_own_box(meta=True) as box, waiting(console, f"checking {wanted.id}"):
            result = check_one(loaded, wanted, source, box)
    given = hint_on(loaded, wanted, result, again=again)
    if given is None:
        _print(console, f"{wanted.id} needs no hint: every check passes.", "course status")
        return
    if given.title:
        console.tell(given.title)
    _print(console, given.sentence, f"course {given.following} {wanted.id}")


def hint_on(course: Course, exercise: Exercise, result: ExerciseResult, *, again: bool = False) -> Hint | None:
    """Return the next hint, which counts as shown from now on; None where every check passes. again: start with the first."""
    from ..diagnosis.recording_file import read
    from ..student.hints import next_hint

    if result.is_done:
        return None
    recording = read(fingerprint_path(exercise))
    return next_hint(recording, result, exercise.hint, course.root, again=again)


def _print(console: Console, sentence: str, following: str) -> None:
    console.tell(sentence)
    console.print(f"Next: {following}")


def status(
    assignment: AssignmentOption = None,
    course: CourseOption = None,
    *,
    fresh: FreshOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show which exercises are done, in progress or untouched, your points, and what is next.

    Example: `course status`
    """
    loaded = course_of(course)
    console = open_console()
    attempts = [(e, own_attempt(loaded, e)) for e in exercises_named(loaded, [], assignment)]
    if as_json:
        print_evidence("status", (status_evidence(loaded, e, fresh=fresh) for e, _ in attempts))
        return
    results = _results(loaded, [a for a in attempts if is_started(*a)], console, fresh=fresh)
    rungs = [(e, _rung(e, source, results.get(e))) for e, source in attempts]
    console.print(ladder([rung for _, rung in rungs]))
    for said in (source.problem if source.missing else source.note for _, source in attempts):
        if said:
            console.tell(f"note: {said.splitlines()[0]}", style="dim")
    for exercise, rung in rungs:
        if rung.state != "done":
            first = f"fill the stubs of {from_here(exercise.script)}, then: " if rung.state == "untouched" else ""
            console.print(f"Next: {first}course check {exercise.id}")
            return
    console.print("All done.")


def _results(
    course: Course, started: Sequence[tuple[Exercise, AttemptSource]], console: Console, *, fresh: bool
) -> dict[Exercise, ExerciseResult]:
    """Return the result of each attempt. Runs what has changed since its last check, or everything if `fresh`."""
    results = {e: kept for e, source in started if not fresh and (kept := last_result(e, source))}
    changed = [(e, source) for e, source in started if e not in results]
    if changed:
        from ..box.forked import open_own_box

        with open_own_box(meta=True) as box, waiting(console, "checking what has changed"):
            results |= {e: check_one(course, e, source, box) for e, source in changed}
    return results


def _rung(exercise: Exercise, source: AttemptSource, result: ExerciseResult | None) -> Rung:
    named, most = (exercise.assignment.title, label_of(exercise)), exercise.points
    checks = facts(exercise).checks
    if result is None:
        asked = tuple((title, False) for _, title in checks)
        return Rung(*named, "missing" if source.missing else "untouched", 0, most, asked)
    passed = {check.id for check in result.checks if check.outcome == "passed"}
    asked = tuple((title, id in passed) for id, title in checks)
    state: State = "done" if result.is_done else "in progress"
    return Rung(*named, state, result.score or 0.0, most, asked, tuple(function_reports(result)), result.unseen)


def plot(
    exercise: Annotated[str | None, typer.Argument(help="Its id or file.", show_default=CHECKED_LAST)] = None,
    function: Annotated[str | None, typer.Argument(help="One function or class of it [default: all].")] = None,
    course: CourseOption = None,
    *,
    out: Annotated[Path | None, typer.Option("--out", help="The page to write [default: plots/EXERCISE.html].")] = None,
) -> None:
    """Draw your answers beside the expected ones, head by head, and what your heads attend to.

    Example: `course plot causal_mask`
    """
    loaded = course_of(course)
    wanted, _, followed = follow_own_attempt(loaded, exercise, function, "plot", by_head=True)
    from ..report.pages.write import pictures_page
    from ..student.plot_content import pictures

    console = open_console()
    shown = pictures(followed.shown)
    console.tell(*(picture.caption for picture in shown))
    if followed.ended:
        console.tell(f"✗ {followed.ended}", style="bold red")
    if shown:
        path = out or loaded.root / PLOTS / f"{wanted.id}.html"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(pictures_page(f"{wanted.title}: expected, yours, difference", shown), encoding="utf-8")
        except OSError as error:
            following = f"course plot {wanted.id} --out ~/{wanted.id}.html"
            raise CourseFault(f"{path} cannot be written ({error.strerror}). Next: {following}") from None
        console.say(f"Drawn in {path}")
    console.print(f"Next: course check {wanted.id}")
    if followed.ended:
        raise typer.Exit(1)
