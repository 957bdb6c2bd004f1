"""`course collect`: lay out what a learning platform gives."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from ..report.words import counted
from ..submission.roster import FORM, read_roster
from .console import open_console
from .options import AssignmentOption, CourseOption, RosterOption, assignment_of, course_of

if TYPE_CHECKING:
    from ..collect.lay_out import Laid

MOST_ROWS = 400  # the most files in the table


def collect(
    downloads: Annotated[
        list[Path], typer.Argument(metavar="DOWNLOAD…", help="Zips, tar archives or folders, as a platform gave them.")
    ],
    out: Annotated[Path, typer.Option(file_okay=False, help="The folder to fill, for `course grade`.")] = Path(
        "submitted"
    ),
    roster: RosterOption = None,
    assignment: AssignmentOption = None,
    course: CourseOption = None,
) -> None:
    """Lay out downloads from Canvas, Moodle, Sakai, Gradescope, GitHub Classroom, or zips of students, as `course grade` reads them.

    The newest attempt wins, and the others are named. Run again, it changes nothing but what is newer. Archives are
    opened with care: nothing is written outside OUT. Whatever is not taken is named with its reason; then the exit status is 1.

    Example: `course collect submissions.zip --out submitted --roster roster.csv`
    """
    from ..collect import collect as collect_all

    loaded = course_of(course)
    known = None if roster is None else read_roster(roster)
    only = None if assignment is None else assignment_of(loaded, assignment)
    done = collect_all(loaded, downloads, out, known, only=only)
    console = open_console()
    for download, platforms in done.platforms.items():
        console.print(f"{download!a} is read as: {', '.join(platforms)}", markup=False, soft_wrap=True)
    if 0 < len(done.laid) <= MOST_ROWS:
        console.print(_table(done.laid))
    students = {each.student for each in done.laid}
    states = ", ".join(f"{count} {state}" for state, count in Counter(each.state.value for each in done.laid).items())
    told = f"{counted(len(students), 'student', 'students')}: {states or 'nothing'}"
    console.print(told, markup=False, soft_wrap=True)
    if known is not None and known.unread:
        unread = ", ".join(map(ascii, known.unread))
        console.print(
            f"note: {roster}: not read: {unread}. {FORM}.", style="bright_black", markup=False, soft_wrap=True
        )
    for sentence in done.said:
        console.print(f"note: {sentence}", style="bright_black", markup=False, soft_wrap=True)
    for sentence in done.not_taken:
        console.print(f"not taken: {sentence}", style="yellow", markup=False, soft_wrap=True)
    into = shlex.quote(str(out))
    again = f"course collect DOWNLOAD --out {into}, with a download that holds what students wrote"
    console.print(f"Next: {f'course grade {into}' if done.laid else again}", markup=False, soft_wrap=True)
    if done.not_taken:
        raise typer.Exit(1)


def _table(laid: Sequence[Laid]) -> Table:
    """Who, what, from where, and what became of it."""
    table = Table(header_style="bold", box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in ("student", "file", "from", "now"):
        table.add_column(name, overflow="fold")
    for each in sorted(laid, key=lambda one: one.path):
        _, _, file = each.path.partition("/")
        late = " (late)" if each.late else ""
        table.add_row(*map(escape, (each.student, file, each.origin.path + late, each.state.value)))
    return table
