"""`course resolve`: who a pseudonym stands for."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from ..errors import CourseFault
from ..submission import shown
from ..submission.pseudonyms import read_pseudonyms
from .console import open_console
from .options import CourseOption, instructors_course_of


def resolve(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME…]", help="Pseudonyms, or students; all if none is given.")
    ] = None,
    course: CourseOption = None,
) -> None:
    """Say who a pseudonym of `course grade --anonymous` stands for.

    The list is `.course/pseudonyms.json`, which only its owner can read. `course export --resolve` uses it, too.

    Example: `course resolve student-3fa9c1`
    """
    loaded = instructors_course_of(course, "resolve")
    known = read_pseudonyms(loaded.root).students
    if unknown := [name for name in names or () if name not in known and name not in known.values()]:
        raise CourseFault(f"no pseudonym is or stands for {unknown[0]!a}. Next: course resolve")
    if not known:
        raise CourseFault("there are no pseudonyms. Next: course grade SUBMITTED --anonymous")
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for pseudonym, student in sorted(known.items()):
        if not names or pseudonym in names or student in names:
            table.add_row(escape(pseudonym), escape(shown(student)))
    open_console().print(table)
