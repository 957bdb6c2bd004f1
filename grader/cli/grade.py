"""`course grade`: a class, graded."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ..batch.journal import open_journal
from ..batch.plan import Plan
from ..batch.run import Graded, grade_all
from ..box.names import Device, Level
from ..course import Course
from ..course.secret import course_secret
from ..errors import CourseFault
from ..report.terminal import class_table
from ..result import write_result
from ..submission import Submission, find_submissions
from .options import CourseOption, course_of, exercises_named

if TYPE_CHECKING:
    from ..gradebook.writer import GradebookWriter

PLAIN_SECONDS = 5.0  # between two lines of progress where there is no terminal


def grade(
    submitted: Annotated[Path, typer.Argument(help="The folder with <student>/<assignment>/ folders.")],
    out: Annotated[
        Path, typer.Option(file_okay=False, help="Where results go: OUT/<student>/<assignment>.json.")
    ] = Path("results"),
    device: Annotated[Device, typer.Option(help="Where attempts compute.")] = Device.CPU,
    exercise: Annotated[list[str] | None, typer.Option(help="Grade only this exercise. May be given again.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Judges that work at once [default: one a core].")] = os.cpu_count()
    or 1,
    isolation: Annotated[Level, typer.Option(help="The isolation level.")] = Level.NAMESPACES,
    seed: Annotated[int, typer.Option(help="Draws other inputs; kept in the results.")] = 0,
    gradebook: Annotated[
        str | None, typer.Option(help="nbgrader's database too, such as sqlite:///gradebook.db.")
    ] = None,
    regrade: Annotated[bool, typer.Option(help="Grade again what is graded already and has not changed.")] = False,
    course: CourseOption = None,
) -> None:
    """Grade every submission in a folder. What is graded in OUT already, and has not changed, stays as it is.

    Example: `course grade examples/submitted --out results`
    """
    loaded = course_of(course)
    chosen = tuple(e.id for _, e in exercises_named(loaded, exercise or [])) if exercise else ()
    submissions, refused = find_submissions(loaded, submitted)
    plan = Plan(loaded.root, course_secret(loaded.root), isolation, seed, device, chosen)
    console = Console(highlight=False)
    started = time.monotonic()
    journal = open_journal(out, loaded, plan)
    keys = {s: journal.key(s) for s in submissions}
    known = {} if regrade else {s: result for s in submissions if (result := journal.known(s, keys[s]))}
    results, faults = dict(known), list[str]()
    with ExitStack() as stack:
        book = None if gradebook is None else stack.enter_context(_gradebook(loaded, gradebook))
        if book is not None:
            for result in known.values():  # an earlier run may have been stopped between the file and the gradebook
                book.write(result)
        waiting = [s for s in submissions if s not in known]
        try:
            for each in _with_progress(console, _graded(plan, waiting, jobs), len(submissions), len(known)):
                write_result(each.result, out)
                if book is not None:
                    book.write(each.result)
                if not each.faults:
                    journal.note(each.submission, keys[each.submission])
                results[each.submission] = each.result
                faults += each.faults
        except KeyboardInterrupt:
            done = f"{len(results)} of {len(submissions)} submissions are graded"
            console.print(f"Stopped: {done}. Next: run the same command again, and it goes on from there.")
            raise typer.Exit(130) from None
    console.print(class_table(list(results.values())))
    again = f" ({len(known)} as before)" if known else ""
    seconds = time.monotonic() - started
    console.print(
        f"{len(results)} submissions{again} in {seconds:.1f} s, isolation: {isolation}. Results: {out}/", soft_wrap=True
    )
    for sentence in refused:
        console.print(f"not graded: {sentence}", style="yellow", markup=False, soft_wrap=True)
    for fault in faults:
        console.print(
            f"course: a fault of the grader's own: {fault}. Next: course verify",
            style="red",
            markup=False,
            soft_wrap=True,
        )
    if faults:
        raise typer.Exit(2)


def _graded(plan: Plan, submissions: Sequence[Submission], jobs: int) -> Iterator[Graded]:
    """Nothing to grade needs no judge."""
    return grade_all(plan, submissions, min(jobs, len(submissions))) if submissions else iter(())


def _gradebook(course: Course, url: str) -> GradebookWriter:
    """nbgrader's database. Raises CourseFault where nbgrader is not installed."""
    try:
        from ..gradebook.writer import GradebookWriter
    except ImportError:
        raise CourseFault("--gradebook needs nbgrader. Next: pip install 'manyheads[nbgrader]'") from None
    return GradebookWriter(course, url)


def _with_progress(console: Console, graded: Iterable[Graded], total: int, done: int) -> Iterator[Graded]:
    """Pass results on and show how many are done: a bar on a terminal, a line now and then elsewhere."""
    if not console.is_terminal:
        yield from _with_lines(console, graded, total, done)
        return
    columns = (TextColumn("grading"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=total, completed=done)
        for each in graded:
            progress.advance(task)
            yield each


def _with_lines(console: Console, graded: Iterable[Graded], total: int, before: int) -> Iterator[Graded]:
    last = time.monotonic()
    for done, each in enumerate(graded, before + 1):
        if time.monotonic() - last > PLAIN_SECONDS:
            last = time.monotonic()
            console.print(f"grading: {done} of {total} submissions", highlight=False)
        yield each
