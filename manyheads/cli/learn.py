"""Commands for a student's next step: `course hint`, `course status`, `course trace`, `course plot`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ..report.labels import label_of
from ..report.ladder import Rung, State, ladder
from ..report.words import attempt_words, function_reports
from ..result import ExerciseResult
from ..student.hints import Hint, next_hint
from ..student.own_attempt import Own, from_here, read_own, recorded, recorded_path
from ..submission import lines_of, proved_line
from ..submission.standing import in_cells
from ..whole import told_where
from .options import AssignmentOption, CourseOption, FreshOption, JsonOption, course_of, exercises_named, open_console
from .own import checks_on, follow_own, own_meant, own_told, print_evidence, refuse_unstarted

_LAST = "the one that was checked last and is not done"
CROP = (6, 8)  # how many numbers of a table are shown: enough to read
BELOW = 6  # lines of the screen: the legend, how many lines are left out, what comes next, the prompt
ExerciseArgument = Annotated[str | None, typer.Argument(help="Its id or file.", show_default=_LAST)]
FunctionArgument = Annotated[str | None, typer.Argument(help="One function or class of it [default: all].")]


def hint(
    exercise: ExerciseArgument = None,
    course: CourseOption = None,
    *,
    again: Annotated[bool, typer.Option("--again", help="Start with the first step again.")] = False,
) -> None:
    """Ask for a hint: a question first, then a pointer, then nearly the answer.

    Example: `course hint reshape_dance`
    """
    loaded, console = course_of(course), open_console()
    own = own_meant(loaded, exercise, "hint")
    id_ = own.exercise.id
    if own.source.missing:
        refuse_unstarted(own, "hint")
    if not own.is_started:
        first = f"fill the first stub of {from_here(own.exercise.script)}"
        console.tell(own.exercise.hint, f"Next: {first}, then: course check {id_}")
        return
    with checks_on(loaded, console, looks=True) as checks:
        given = hint_on(own, checks.result(own), again=again)
    if given is None:
        console.tell(f"{id_} needs no hint: every check passes.", "Next: course status")
    else:
        console.tell(*filter(None, (given.title, given.sentence)), f"Next: course {given.following} {id_}")


def hint_on(own: Own, result: ExerciseResult, *, again: bool = False) -> Hint | None:
    """Return the next hint, which counts as shown from now on; None where every check passes. again: start with the first."""
    from ..diagnosis.recording_file import read

    if result.is_done:
        return None
    return next_hint(read(recorded_path(own.exercise)), result, own.exercise.hint, own.course.root, again=again)


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
    loaded, console = course_of(course), open_console()
    owns = [read_own(loaded, exercise) for exercise in exercises_named(loaded, [], assignment)]
    with checks_on(loaded, console, fresh=fresh, looks=True) as checks:
        results = [checks.result(own) if own.is_started else None for own in owns]
    if as_json:
        print_evidence("status", (own_told(own, result) for own, result in zip(owns, results, strict=True)))
        return
    rungs = [_rung(own, result) for own, result in zip(owns, results, strict=True)]
    console.print(ladder(rungs))
    for said in (own.source.problem if own.source.missing else own.source.note for own in owns):
        console.tell(*[f"note: {line}" for line in said.splitlines()[:1]], style="dim")
    for own, rung in zip(owns, rungs, strict=True):
        if rung.state != "done":
            stubs = f"fill the stubs of {from_here(own.exercise.script)}, then: " * (rung.state == "untouched")
            console.print(f"Next: {stubs}course check {own.exercise.id}")
            return
    console.print("All done.")


def _rung(own: Own, result: ExerciseResult | None) -> Rung:
    named, most = (own.exercise.assignment.title, label_of(own.exercise)), own.exercise.points
    passed = {check.id for check in result.checks if check.outcome == "passed"} if result else set()
    asked = tuple((title, id_ in passed) for id_, title in recorded(own.exercise)[1])
    if result is None:
        return Rung(*named, "missing" if own.source.missing else "untouched", 0, most, asked)
    functions = tuple(function_reports(result))
    state: State = "done" if result.is_done else "in progress"
    return Rung(*named, state, result.score or 0.0, most, asked, functions, result.unseen)


def trace(
    exercise: ExerciseArgument = None,
    function: FunctionArgument = None,
    course: CourseOption = None,
    *,
    values: Annotated[bool, typer.Option("--values", help="Show the numbers, too.")] = False,
    whole: Annotated[bool, typer.Option("--all", help="Show every line, also where the screen has no room.")] = False,
) -> None:
    """Follow your own code: what each line does to shapes, and whether numbers move.

    Example: `course trace reshape_dance`
    """
    console, (own, followed) = (
        open_console(),
        follow_own(course_of(course), exercise, function, "trace", CROP if values else ()),
    )
    from rich.console import Group

    from ..report.trace_text import LEGEND, fitted_trace, trace_report
    from ..student.explain_trace import explained
    from ..student.follow import Source

    id_, source = own.exercise.id, own.source
    texts = tuple(lines_of(source.source))
    places = (proved_line(source, line) for line in range(1, len(texts) + 1))
    labels = tuple(f"cell {place.cell}, {place.line_in_cell}" for place in places) if source.cells else ()
    last = own.last
    proved = frozenset(line.line for line in last.lines) if last else frozenset()
    lines = Source(texts, labels, proved)
    told = [explained(example, traced, lines) for example, traced in followed.shown]
    told = [replace(each, raised=in_cells(each.raised, source)) for each in told]
    shown, left = (Group(*map(trace_report, told)), 0) if whole else fitted_trace(console, told, BELOW)
    console.print(shown, soft_wrap=not console.is_terminal)
    if followed.ended:
        console.tell(f"✗ {followed.ended}", style="bold red")
    if told:
        console.print(LEGEND, style="bright_black", soft_wrap=not console.is_terminal)
    if left:
        console.say(f"{left} lines more: course trace {' '.join(filter(None, (id_, function)))} --all")
    first, next_ = "", f"course check {id_}"
    if any(each.entries and not each.right for each in told):
        first = "change the first line that surprises you, then: "
    elif not followed.ended and last and not last.is_done and (wrong := attempt_words(last).first):
        console.tell(f"✗ These calls are right, and yet something is not: {wrong.head}", style="bold red")
        next_ = f"course hint {id_}"
    console.print(f"Next: {first}{next_}")
    if followed.ended or any(each.raised for each in told):
        raise typer.Exit(1)


def plot(
    exercise: ExerciseArgument = None,
    function: FunctionArgument = None,
    course: CourseOption = None,
    *,
    out: Annotated[Path | None, typer.Option("--out", help="The page to write [default: plots/EXERCISE.html].")] = None,
) -> None:
    """Draw your answers beside the expected ones, head by head, and what your heads attend to.

    Example: `course plot causal_mask`
    """
    loaded, console = course_of(course), open_console()
    own, followed = follow_own(loaded, exercise, function, "plot")
    from ..report.pages.write import pictures_page
    from ..student.plot_content import pictures

    shown, wanted = pictures(followed.shown), own.exercise
    console.tell(*(picture.caption for picture in shown))
    if followed.ended:
        console.tell(f"✗ {followed.ended}", style="bold red")
    if shown:
        path = out or loaded.root / "plots" / f"{wanted.id}.html"  # which git ignores
        with told_where(path, f"course plot {wanted.id} --out ~/{wanted.id}.html"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(pictures_page(f"{wanted.title}: expected, yours, difference", shown), encoding="utf-8")
        console.say(f"Drawn in {path}")
    console.print(f"Next: course check {wanted.id}")
    if followed.ended:
        raise typer.Exit(1)
