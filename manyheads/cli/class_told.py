"""Tell the outcome for a class: its tables, who is absent, what was decided, and what is not graded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from ..report.class_rows import ClassList, Row, absent_rows
from ..report.labels import Labels
from ..report.terminal import class_misconceptions, class_table
from ..report.words import counted
from ..submission import NotGraded

MOST_ROWS = 200  # the most students in the table at the end
MOST_NAMED = 40  # the most files and folders that are named as not graded, and students who handed in nothing


def show_rows(console: Console, rows: Sequence[Row], members: ClassList, labels: Labels) -> None:
    """Print the class tables, with a row for everybody on the roster."""
    everybody = [*rows, *absent_rows(rows, members)]
    if len(everybody) <= MOST_ROWS:
        console.print(class_table(everybody, labels))
        return
    console.print(class_misconceptions(rows, labels))
    console.print(
        f"{len({row.student for row in everybody})} students are too many for a table here. Next: course report --students\n"
    )


def counted_up(submissions: int, before: int, in_part: int) -> str:
    """12 submissions (9 as before, 2 in part)."""
    less = ", ".join(f"{count} {how}" for count, how in ((before, "as before"), (in_part, "in part")) if count)
    return counted(submissions, "submission", "submissions") + (f" ({less})" if less else "")


def name_absent(console: Console, present: Sequence[str], members: ClassList) -> None:
    """Name who is on the roster and handed in nothing, and who was graded and is not on it."""
    if absent := members.absent(present):
        on_it = f"{len(absent)} of {len(members.roster.students)} on the roster"
        console.print(f"Handed in nothing: {on_it}: {_some(absent)}", markup=False, soft_wrap=True)
    if strangers := members.strangers(present):
        said = f"Not on the roster: {_some(strangers)}. Next: complete the roster"
        console.print(said, style="yellow", markup=False, soft_wrap=True)


def name_decisions(console: Console, rows: Sequence[Row]) -> None:
    """Name who got what by which rule, those of whom it is the same together, and whose time is unknown."""
    whose: dict[str, list[str]] = {}
    for row in rows:
        for sentence in row.adjustments:
            whose.setdefault(sentence, []).append(row.student)
    said = [f"{_some(students)}: {sentence}" for sentence, students in whose.items()]
    for sentence in said[:MOST_NAMED]:
        console.print(f"decided: {sentence}", style="cyan", markup=False, soft_wrap=True)
    if len(said) > MOST_NAMED:
        console.print(f"decided: and {len(said) - MOST_NAMED} more. Next: course report, whose class page has them all")
    if unknown := [row.student for row in rows if row.at_unknown_time]:
        untimed = f"When these were handed in is not known, and none of them counts as late: {_some(unknown)}"
        console.print(f"{untimed}. Next: course grade … --times FILE", style="yellow", markup=False, soft_wrap=True)


def name_not_graded(console: Console, rows: Sequence[Row]) -> bool:
    """Name who is not graded in which exercise, with the reason. Returns whether there is nobody."""
    whose: dict[str, list[str]] = {}
    for row in sorted(rows, key=lambda row: row.student):
        for sentence in row.not_graded:
            whose.setdefault(sentence, []).append(row.student)
    for sentence, students in list(whose.items())[:MOST_NAMED]:
        console.print(f"not graded: {_some(students)}: {sentence}", style="yellow", markup=False, soft_wrap=True)
    if len(whose) > MOST_NAMED:
        said = f"not graded: and {len(whose) - MOST_NAMED} more. Next: course report, whose class page has them all"
        console.print(said, style="yellow", markup=False, soft_wrap=True)
    if whose:
        said = "There are no points for that, and no total. Next: the same course grade again, which tries that alone"
        if any(row.not_readable for row in rows):
            mend = "put what cannot be read into the student's folder, opened, or decide in overrides.yaml"
            said = f"There are no points for that, and no total. Next: {mend}; then the same course grade again"
        console.print(said, style="yellow", soft_wrap=True)
    return not whose


def name_others(console: Console, others: Sequence[NotGraded], out: Path) -> None:
    """Name what is not graded, with the reason."""
    for other in others[:MOST_NAMED]:
        console.print(f"not graded: {other}", style="yellow", markup=False, soft_wrap=True)
    if others:
        more = f"{len(others)} in all" if len(others) <= MOST_NAMED else f"and {len(others) - MOST_NAMED} more"
        console.print(f"Not graded: {more}. All of them: {out}/not-graded.json", markup=False, soft_wrap=True)


def _some(names: Sequence[str]) -> str:
    more = f", and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more
