"""`course plot`: what is expected beside yours beside the difference, as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ..course import CourseError
from .check import fingerprint_path, own_attempt
from .options import CourseOption, course_of, exercise_named
from .trace import looks_named, refuse_unbegun

FOLDER = "plots"  # in the course's folder, ignored by git


def plot(
    exercise: Annotated[str, typer.Argument(help="Its id or file.")],
    function: Annotated[str | None, typer.Argument(help="One function or class of it [default: all].")] = None,
    course: CourseOption = None,
    *,
    out: Annotated[Path | None, typer.Option("--out", help="The PNG to write [default: plots/EXERCISE.png].")] = None,
) -> None:
    """Draw your answers beside the expected ones, head by head, and the weights of your heads.

    Example: `course plot causal_mask`
    """
    loaded = course_of(course)
    assignment, wanted = exercise_named(loaded, exercise, "plot")
    source = own_attempt(loaded, assignment, wanted)
    console = Console(highlight=False)
    refuse_unbegun(console, loaded, assignment, wanted, source, "plot")

    from ..report.figures import png
    from ..tools.follow import follow
    from ..tools.heads import CROP, TIMES
    from ..tools.plot import all_bands, summary

    chosen = looks_named(wanted, fingerprint_path(loaded, assignment, wanted), function, "plot", by_head=True)
    followed = follow(loaded, source, chosen, CROP, TIMES)
    shown = all_bands(chosen, followed.traced)
    for line in summary(shown):
        console.print(line, soft_wrap=True, markup=False)
    if followed.ended:
        console.print(f"✗ {followed.ended}", style="bold red", soft_wrap=True, markup=False)
    if shown:
        path = out or loaded.root / FOLDER / f"{wanted.id}.png"
        _write(path, png(shown, f"{wanted.title}: expected, yours, difference"))
        console.print(f"Drawn in {path}", soft_wrap=True, markup=False)
    console.print(f"Next: course check {wanted.id}")
    if followed.ended:
        raise typer.Exit(1)


def _write(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise CourseError(f"{path} cannot be written ({error.strerror}). Next: pass --out FILE.png") from None
