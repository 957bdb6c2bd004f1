"""The command `course collect`: lay out downloads from platforms for `course grade`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

from rich.markup import escape
from rich.table import Table
from typer import Argument, Exit, Option

from ..report.report_content import count_with_noun
from ..submission.roster_and_times import FORM, read_roster
from .class_of_results import roster_of
from .class_sentences import list_names, print_labelled
from .options import (
    AssignmentOption,
    Console,
    CourseOption,
    RosterOption,
    assignment_of,
    course_of,
    open_console,
)

if TYPE_CHECKING:
    from ..submission.collect_downloads import Collected
    from ..submission.intake_journal import IntakeCandidate

# students in the table: chosen for the download of a very large class; --verbose shows every file
MOST_COLLECTED_ROWS = 400
MAX_SHOWN = 20  # messages with the same label: about as many as one screen shows


def collect(
    downloads: Annotated[
        list[Path],
        Argument(
            metavar="DOWNLOAD…", help="Zips, tar archives or folders, as a platform gave them."
        ),
    ],
    out: Annotated[
        Path, Option(file_okay=False, help="The folder to fill, for `course grade`.")
    ] = Path("submitted"),
    roster: RosterOption = None,
    assignment: AssignmentOption = None,
    times: Annotated[
        list[Path] | None,
        Option(
            metavar="LIST",
            help="Moodle's grading worksheet (CSV), or Canvas' submissions (JSON): when each was "
            "handed in.",
        ),
    ] = None,
    verbose: Annotated[bool, Option("--verbose", help="Tell every file, and every note.")] = False,
    course: CourseOption = None,
) -> None:
    """Lay out downloads from Canvas, Moodle, Sakai, Gradescope, GitHub Classroom, or zips of
    students, as `course grade` reads them.

    The newest attempt wins, and the others are named. Run again, it changes nothing but what is
    newer. Whatever is not taken is named with its reason, and so is a time that a list lacks; then
    the exit status is 1. There is a
    line for each student, and with --verbose for each file.

    Example: `course collect submissions.zip --out submitted --roster roster.csv`
    """
    from ..submission.collect_downloads import collect as collect_all
    from ..submission.roster_and_times import read_times

    loaded = course_of(course)
    console = open_console()
    roster = roster_of(loaded, roster)
    class_roster = None if roster is None else read_roster(roster)
    collected = collect_all(
        loaded,
        downloads,
        out,
        class_roster,
        only=assignment_of(loaded, assignment) if assignment else None,
        times=read_times(times or (), loaded),
    )
    _print_platforms(console, collected)
    files = sorted(collected.candidates, key=lambda file: file.path)
    if verbose:  # a line each, which no terminal cuts in the middle of a path
        console.say(*(f"{file.path}: {_state(file)}, from {file.origin.path}" for file in files))
    elif files:
        console.print(_table(files))
    students = count_with_noun(len({file.student for file in files}), "student", "students")
    console.say(f"{students}: {_counts(file.state for file in files) or 'nothing'}")
    if class_roster is not None and class_roster.unread:
        unread = list_names([repr(name) for name in class_roster.unread])
        console.say(f"note: {roster}: not read: {unread}. {FORM}.", style="bright_black")
    limit = None if verbose else MAX_SHOWN
    verbose_hint = "" if verbose else "Next: the same command with --verbose"
    print_labelled(console, "note", collected.notes, verbose_hint, "bright_black", limit)
    not_taken = [*collected.not_taken, *_changed_by_hand(files)]
    print_labelled(console, "not taken", not_taken, verbose_hint, limit=limit)
    print_labelled(console, "no time", collected.no_time, verbose_hint, limit=limit)
    folder = quote(str(out))
    again = f"collect DOWNLOAD --out {folder}, with a download that holds what students wrote"
    console.say(f"Next: course grade {folder}" if files else f"Next: course {again}")
    if not_taken or collected.no_time:
        raise Exit(1)


def _print_platforms(console: Console, collected: Collected) -> None:
    """Print which platforms the downloads are read as, with one line for the same platforms."""
    sources_by_platforms: dict[tuple[str, ...], list[str]] = {}
    for download, platforms in collected.platforms.items():
        sources_by_platforms.setdefault(tuple(platforms), []).append(ascii(download))
    for names, sources in sources_by_platforms.items():
        verb = "is" if len(sources) == 1 else "are"
        console.say(f"{list_names(sources)} {verb} read as: {', '.join(names)}")


def _changed_by_hand(files: Iterable[IntakeCandidate]) -> Iterator[str]:
    """Yield a sentence about each file that was changed by hand, and is not replaced."""
    from ..submission.intake_journal import State

    next_step = (
        "Next: remove what is there, then the same command again, if the download's is to count"
    )
    for file in files:
        if file.state is State.BY_HAND:
            yield f"{file.path}: {file.state.removeprefix('not taken: ')}. {next_step}"


def _counts(states: Iterable[str]) -> str:
    return ", ".join(f"{count} {state}" for state, count in Counter(states).items())


def _state(file: IntakeCandidate) -> str:
    return f"{file.state} (late)" if file.origin.late else file.state


def _table(files: Sequence[IntakeCandidate]) -> Table:
    states: dict[str, list[str]] = {}
    for file in files:
        states.setdefault(file.student, []).append(_state(file))
    table = Table(
        "student",
        "files",
        "now",
        header_style="bold",
        box=None,
        padding=(0, 2, 0, 0),
        pad_edge=False,
    )
    for student, file_states in list(states.items())[:MOST_COLLECTED_ROWS]:
        table.add_row(escape(student), str(len(file_states)), escape(_counts(file_states)))
    if len(states) > MOST_COLLECTED_ROWS:
        table.add_row(f"and {len(states) - MOST_COLLECTED_ROWS} more", "", "")
    return table
