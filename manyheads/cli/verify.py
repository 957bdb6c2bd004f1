"""`course verify`: test the claims about a course."""

from __future__ import annotations

from typing import Annotated

import typer

from ..batch.cpus import usable
from ..report.words import counted
from .console import open_console
from .options import AssignmentOption, CourseOption, exercises_named, instructors_course_of


def verify(
    exercises: Annotated[list[str] | None, typer.Argument(help="Ids [default: all].")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Draws of inputs for every right attempt.")] = 2,
    pairs: Annotated[int, typer.Option(min=0, help="Pairs of faults to try in each exercise; 0: all.")] = 40,
    assignment: AssignmentOption = None,
    course: CourseOption = None,
) -> None:
    """Check that stubs score 0, right attempts full, mutants are caught and named, and nothing hidden is released.

    Example: `course verify reshape_dance --seeds 20`
    """
    loaded = instructors_course_of(course, "verify")
    named = exercises_named(loaded, exercises or [], assignment)
    from ..authoring.verify.claims import VerifyEffort, verify_course

    console = open_console()
    broken = 0
    for claim in verify_course(loaded, named, VerifyEffort(seeds, pairs or None, usable())):
        mark, style = ("✓", "green") if claim.kept else ("✗", "red")
        console.print(
            f"{mark} {claim.about:<18} {claim.says:<72} {claim.figures:>5}", style=style, markup=False, soft_wrap=True
        )
        broken += not claim.kept
        for line in claim.lines:
            console.print(f"    {line}", markup=False, soft_wrap=True)
    fallen = counted(broken, "claim does", "claims do")
    console.print(f"{fallen} not hold." if broken else "Every claim holds.")
    if broken:
        raise typer.Exit(1)
