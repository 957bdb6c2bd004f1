"""`course plot`: a picture of the expected values, yours and the difference."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..tools.crops import TABLES, TIMES
from .console import open_console
from .last_check import CHECKED_LAST
from .options import CourseOption, course_of
from .picture import write_picture
from .trace import follow_own_attempt

FOLDER = "plots"  # in the course's folder, ignored by git


def plot(
    exercise: Annotated[str | None, typer.Argument(help="Its id or file.", show_default=CHECKED_LAST)] = None,
    function: Annotated[str | None, typer.Argument(help="One function or class of it [default: all].")] = None,
    course: CourseOption = None,
    *,
    out: Annotated[Path | None, typer.Option("--out", help="The PNG to write [default: plots/EXERCISE.png].")] = None,
) -> None:
    """Draw your answers beside the expected ones, head by head, and what your heads attend to.

    Example: `course plot causal_mask`
    """
    loaded = course_of(course)
    seen = follow_own_attempt(loaded, exercise, function, "plot", by_head=True, crop=TABLES, times=TIMES)
    from ..report.figures import png
    from ..tools.bands import summary
    from ..tools.sentence import every_band

    console = open_console()
    shown = every_band(seen.followed.shown)
    for line in summary(shown):
        console.print(line, soft_wrap=not console.is_terminal, markup=False)
    if seen.followed.ended:
        console.print(f"✗ {seen.followed.ended}", style="bold red", soft_wrap=not console.is_terminal, markup=False)
    if shown:
        path = out or loaded.root / FOLDER / f"{seen.exercise.id}.png"
        write_picture(path, png(shown, f"{seen.exercise.title}: expected, yours, difference"))
        console.print(f"Drawn in {path}", soft_wrap=True, markup=False)
    console.print(f"Next: course check {seen.exercise.id}")
    if seen.followed.ended:
        raise typer.Exit(1)
