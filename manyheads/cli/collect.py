"""`course collect`: lay out what a learning platform gives."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from ..report.words import counted
from ..submission.roster import FORM, read_roster
from .class_results import roster_of
from .options import AssignmentOption, CourseOption, RosterOption, assignment_of, course_of, open_console

if TYPE_CHECKING:
    from ..submission.lay_out import Candidate

MOST_ROWS = 400  # the most students in the table
MOST_TOLD = 20  # the most sentences of a kind


def collect(
    downloads: Annotated[
        list[Path], typer.Argument(metavar="DOWNLOAD…", help="Zips, tar archives or folders, as a platform gave them.")
    ],
    out: Annotated[Path, typer.Option(file_okay=False, help="The folder to fill, for `course grade`.")] = Path(
        "submitted"
    ),
    roster: RosterOption = None,
    assignment: AssignmentOption = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Tell every file, and every note.")] = False,
    course: CourseOption = None,
) -> None:
    """Lay out downloads from Canvas, Moodle, Sakai, Gradescope, GitHub Classroom, or zips of students, as `course grade` reads them.

    The newest attempt wins, and the others are named. Run again, it changes nothing but what is newer. Whatever is not taken
    is named with its reason; then the exit status is 1. There is a line for each student, and with --verbose for each file.

    Example: `course collect submissions.zip --out submitted --roster roster.csv`
    """
    from ..submission.collect_downloads import collect as collect_all

    loaded = course_of(course)
    roster = roster_of(loaded, roster)
    known = None if roster is None else read_roster(roster)
    done = collect_all(loaded, downloads, out, known, only=assignment_of(loaded, assignment) if assignment else None)
    (console := open_console()).say(*_read_as(done.platforms))
    if done.laid:
        console.print(_table(done.laid, every_file=verbose))
    students = counted(len({file.student for file in done.laid}), "student", "students")
    console.say(f"{students}: {_counts(file.state for file in done.laid) or 'nothing'}")
    if known is not None and known.unread:
        unread = _some([ascii(name) for name in known.unread])
        console.say(f"note: {roster}: not read: {unread}. {FORM}.", style="bright_black")
    for kind, sentences, style in (("note", done.said, "bright_black"), ("not taken", done.not_taken, "yellow")):
        most = len(sentences) if verbose else MOST_TOLD
        console.say(*(f"{kind}: {sentence}" for sentence in sentences[:most]), style=style)
        if left := len(sentences[most:]):
            console.say(f"{kind}: and {left} more. Next: the same command with --verbose", style=style)
    into = shlex.quote(str(out))
    again = f"collect DOWNLOAD --out {into}, with a download that holds what students wrote"
    console.say(f"Next: course {f'grade {into}' if done.laid else again}")
    if done.not_taken:
        raise typer.Exit(1)


def _counts(states: Iterable[str]) -> str:
    return ", ".join(f"{count} {state}" for state, count in Counter(states).items())


def _read_as(platforms: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield a sentence for the downloads that are read as the same platforms."""
    for names in dict.fromkeys(", ".join(names) for names in platforms.values()):
        downloads = [ascii(download) for download, own in platforms.items() if ", ".join(own) == names]
        yield f"{_some(downloads)} {'is' if len(downloads) == 1 else 'are'} read as: {names}"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST_TOLD]) + f" and {len(names) - MOST_TOLD} more" * (len(names) > MOST_TOLD)


def _table(laid: Sequence[Candidate], every_file: bool) -> Table:
    """Return a table of what became of each student's files, with a line for each student, or for each file."""
    whose: dict[str, list[Candidate]] = {}
    for each in sorted(laid, key=lambda one: one.path):
        whose.setdefault(each.student, []).append(each)
    table = Table(header_style="bold", box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in ("student", "file", "from", "now") if every_file else ("student", "files", "now"):
        table.add_column(name, overflow="fold")
    for student, files in list(whose.items())[: None if every_file else MOST_ROWS]:
        for each in files if every_file else ():
            late = " (late)" if each.origin.late else ""
            table.add_row(*map(escape, (student, each.path.partition("/")[2], each.origin.path + late, each.state)))
        if not every_file:
            now = _counts(file.state + " (late)" * file.origin.late for file in files)
            table.add_row(escape(student), str(len(files)), escape(now))
    if len(whose) > MOST_ROWS and not every_file:
        table.add_row(f"and {len(whose) - MOST_ROWS} more", "", "")
    return table
