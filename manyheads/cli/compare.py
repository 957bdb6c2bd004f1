"""`course compare`: what changed between two runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..report.class_list import NOBODY
from ..report.compare import compare as compared
from ..report.compare_terminal import changes
from ..report.compare_terminal import summary as summary_of
from ..report.labels import labels_of
from ..result import read_results
from .class_members import class_list
from .console import open_console
from .decided import course_near, decided
from .options import AssignmentOption, CourseOption, RosterOption, course_of, results_of


def compare(
    old: Annotated[Path, typer.Argument(help="The results of an earlier run.")],
    new: Annotated[Path, typer.Argument(help="The results of a later run.")],
    summary: Annotated[bool, typer.Option("--summary", help="Leave out the line for each submission.")] = False,
    fail_on_drop: Annotated[
        bool,
        typer.Option(
            "--fail-on-drop", help="Exit status 1 if a check earns less than before, or a submission is gone."
        ),
    ] = False,
    roster: RosterOption = None,
    assignment: AssignmentOption = None,
    course: CourseOption = None,
) -> None:
    """Show what changed between two runs: scores by submission and by check, diagnoses, who is new and who is gone.

    Both are looked at as they count today, by the course's dates and overrides.yaml.

    Example: `course compare results-monday results --fail-on-drop`
    """
    loaded = course_near(course, new)
    before, after = read_results(old), read_results(new)
    everybody = {result.student for result in (*before, *after)}
    near = loaded if roster is None else course_of(course)
    members = NOBODY if near is None else class_list(near, roster, everybody)
    labels = labels_of(loaded)
    counted = (decided(loaded, found, members, everybody) for found in (before, after))
    earlier, later = (results_of(loaded, found, assignment) for found in counted)
    comparison = compared(earlier, later, labels)
    console = open_console()
    if not summary:
        console.print(changes(comparison, labels))
    console.print(summary_of(comparison, labels))
    if fail_on_drop and comparison.drops:
        raise typer.Exit(1)
