"""`course similar`: pairs of attempts to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import CourseFault
from ..report.labels import label_of
from ..submission import find_submissions
from .console import open_console
from .options import AssignmentOption, CourseOption, course_of, exercises_named

CAUTION = (
    "A short exercise has few right answers, so likeness is to be expected. "
    "These are pairs to look at, not findings: read both, and ask both students."
)


def similar(
    submitted: Annotated[Path, typer.Argument(help="The folder with `<student>/<assignment>/` folders.")],
    out: Annotated[
        Path, typer.Option(file_okay=False, help="Where pages go: `OUT/<assignment>/<exercise>/index.html`.")
    ] = Path("similar"),
    exercise: Annotated[list[str] | None, typer.Option(help="Only this exercise. May be given again.")] = None,
    pairs: Annotated[int, typer.Option(min=1, help="Pairs shown for each exercise, most alike first.")] = 10,
    assignment: AssignmentOption = None,
    course: CourseOption = None,
) -> None:
    """Show which attempts of a class look alike, side by side: pairs to look at, and no more than that.

    Needs compare50, which is installed by itself: `pipx install compare50`. What the stub gives is no likeness.

    Example: `course similar submitted --exercise fused_qkv`
    """
    from ..similar.attempts import attempts_of, stub_text
    from ..similar.compare50 import compare, find_compare50

    loaded = course_of(course)
    exercises = exercises_named(loaded, exercise or [], assignment)
    command = find_compare50(loaded.root)
    submissions, _ = find_submissions(loaded, submitted)
    console = open_console()
    for each in exercises:
        attempts = attempts_of(loaded, each, submissions)
        page, said = out / each.assignment.id / each.id, f"{label_of(each)}: {len(attempts)} written"
        if len(attempts) < 2:
            console.print(f"{said}, nothing to compare", markup=False)
            continue
        try:
            alike = compare(command, attempts, stub_text(each), each.stem, page, pairs)
        except OSError as error:
            raise CourseFault(f"{out} cannot be written ({error.strerror}). Next: give --out another path") from None
        console.print(f"{said}, {page / 'index.html' if alike else 'none alike'}", markup=False, soft_wrap=True)
    console.print(CAUTION)
