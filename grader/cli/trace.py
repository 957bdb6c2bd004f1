"""`course trace`: a student's own forward pass, explained line by line."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from ..course import CourseError
from .check import fingerprint_path, is_begun, own_attempt
from .options import CourseOption, course_of, exercise_named

CORNER = (6, 8)  # numbers that --values shows, along the last two axes


def trace(
    exercise: Annotated[str, typer.Argument(help="Its id or file.")],
    function: Annotated[str | None, typer.Argument(help="One function or class of it [default: all].")] = None,
    course: CourseOption = None,
    *,
    values: Annotated[bool, typer.Option("--values", help="Show the numbers, too.")] = False,
) -> None:
    """Follow your own code: what each line does to shapes, and whether numbers move.

    Example: `course trace reshape_dance`
    """
    loaded = course_of(course)
    assignment, wanted = exercise_named(loaded, exercise, "trace")
    source = own_attempt(loaded, assignment, wanted)
    console = Console(highlight=False)
    if source.problem or not is_begun(loaded, assignment, wanted, source):
        sentence = source.problem or f"{wanted.id} is not begun yet: there is nothing to follow."
        console.print(sentence, soft_wrap=True, markup=False)
        console.print(f"Next: fill the first stub of {assignment.stem(wanted)}, then: course trace {wanted.id}")
        raise typer.Exit(1)

    from ..public.file import read
    from ..report.trace import LEGEND, trace_report
    from ..tools.calls import looks
    from ..tools.follow import follow
    from ..tools.source import Source
    from ..tools.trace import explained

    every = looks(wanted, read(fingerprint_path(loaded, assignment, wanted)))
    chosen = [look for look in every if function in (None, look.target)]
    if not chosen:
        known = ", ".join(dict.fromkeys(look.target for look in every)) or "none"
        raise CourseError(f"{wanted.id} has no {function!r} to follow; it has: {known}. Next: course trace {wanted.id}")
    followed = follow(loaded, source, chosen, CORNER if values else ())
    lines = Source(tuple(source.source.splitlines()))
    told = [explained(look, traced, lines) for look, traced in zip(chosen, followed.traced, strict=False)]
    for each in told:
        console.print(trace_report(each), soft_wrap=True)
    if followed.ended:
        console.print(f"✗ {followed.ended}", style="bold red", soft_wrap=True, markup=False)
    console.print(LEGEND, style="dim", soft_wrap=True)
    well = not followed.ended and all(each.right for each in told)
    console.print(f"Next: course {'check' if well else 'hint'} {wanted.id}")
    if followed.ended or any(each.raised for each in told):
        raise typer.Exit(1)
