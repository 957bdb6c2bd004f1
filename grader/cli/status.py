"""`course status`: the ladder of exercises."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from ..report.words import points
from .check import check_one, is_begun, own_attempt
from .options import CourseOption, course_of, exercises_named


def status(course: CourseOption = None) -> None:
    """Show which exercises are done, in progress or untouched, and what is next.

    Example: `course status`
    """
    loaded = course_of(course)
    table = Table(box=None, show_header=False)
    upcoming = None
    for assignment, exercise in exercises_named(loaded, []):
        source = own_attempt(loaded, assignment, exercise)
        mark, state = "·", "untouched"
        if source.missing:
            mark, state = "?", "missing"
        elif is_begun(loaded, assignment, exercise, source):
            result = check_one(loaded, assignment, exercise, source)
            done = all(c.outcome == "passed" for c in result.checks)
            passed = sum(c.outcome == "passed" for c in result.checks)
            mark, state = ("✓", "done") if done else ("…", f"in progress, {passed} of {len(result.checks)} checks")
        upcoming = upcoming or (None if mark == "✓" else exercise.id)
        table.add_row(mark, assignment.stem(exercise), f"{points(exercise.points)} points", state)
    console = Console(highlight=False)
    console.print(table)
    console.print(f"Next: course check {upcoming}" if upcoming else "All done.")
