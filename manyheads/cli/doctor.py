"""`course doctor`: what this machine can do, and the command that would improve it."""

from __future__ import annotations

import typer

from ..box.names import Level
from .console import open_console
from .options import CourseOption, course_of


def doctor(course: CourseOption = None) -> None:
    """Show which isolation levels hold here, proved by a canary, and what would improve this machine.

    Example: `course doctor`
    """
    from ..box.machine import findings

    loaded = course_of(course)
    console = open_console()
    graded = False
    for finding in findings(loaded):
        mark = {True: "✓", False: "✗", None: "·"}[finding.good]
        console.print(f"{mark} {finding.about:<18} {finding.says}", markup=False, soft_wrap=True)
        if finding.command:
            console.print(f"    Next: {finding.command}", markup=False, soft_wrap=True)
        graded |= finding.about == Level.NAMESPACES and finding.good is True
    console.print("This machine can grade." if graded else "This machine cannot grade; `course check` still works.")
    if not graded:
        raise typer.Exit(1)
