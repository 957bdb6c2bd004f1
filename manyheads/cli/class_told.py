"""Tell the outcome for a class: its tables, who is absent, what was decided, and what is not graded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from ..judge.record_results import ChangedPoints
from ..report.class_rows import ClassList, Row, absent_rows
from ..report.labels import Labels
from ..report.terminal import class_misconceptions, class_table
from ..report.words import counted, score_words
from ..submission import NotGraded
from .options import Console

MOST_ROWS = 200  # the most students in the table at the end
MOST_NAMED = 40  # the most files and folders that are named as not graded, and students who handed in nothing


def show_rows(console: Console, rows: Sequence[Row], members: ClassList, labels: Labels, report: str) -> None:
    """Print the class tables, with a row for everybody on the roster. report: the command that shows all."""
    everybody = [*rows, *absent_rows(rows, members)]
    if len(everybody) <= MOST_ROWS:
        console.print(class_table(everybody, labels, report))
        return
    console.print(class_misconceptions(rows, labels, report))
    console.print(
        f"{len({row.student for row in everybody})} students are too many for a table here. Next: {report} --students\n"
    )


def counted_up(submissions: int, before: int, in_part: int) -> str:
    """12 submissions (9 as before, 2 in part)."""
    less = ", ".join(f"{count} {how}" for count, how in ((before, "as before"), (in_part, "in part")) if count)
    return counted(submissions, "submission", "submissions") + (f" ({less})" if less else "")


def name_absent(console: Console, present: Sequence[str], members: ClassList) -> None:
    """Name who is on the roster and handed in nothing, and who was graded and is not on it."""
    if absent := members.absent(present):
        on_it = f"{len(absent)} of {len(members.roster.students)} on the roster"
        console.say(f"Handed in nothing: {on_it}: {_some(absent)}")
    if strangers := members.strangers(present):
        console.say(f"Not on the roster, and in no mean: {_some(strangers)}. Next: complete the roster", style="yellow")


def name_decisions(console: Console, rows: Sequence[Row]) -> None:
    """Name who got what by which rule, those of whom it is the same together, and whose time is unknown."""
    said = _with_whose((sentence, row.student) for row in rows for sentence in row.adjustments)
    console.say(*(f"decided: {sentence}" for sentence in said[:MOST_NAMED]), style="cyan")
    if len(said) > MOST_NAMED:
        console.say(f"decided: and {len(said) - MOST_NAMED} more. Next: course report, whose class page has them all")
    if unknown := [row.student for row in rows if row.at_unknown_time]:
        untimed = f"When these were handed in is not known, and none of them counts as late: {_some(unknown)}"
        console.say(f"{untimed}. Next: course collect, or a score in overrides.yaml", style="yellow")


def name_not_graded(console: Console, rows: Sequence[Row]) -> bool:
    """Name who is not graded in which exercise, with the reason. Returns whether there is nobody."""
    ordered = sorted(rows, key=lambda row: row.student)
    said = [
        f"not graded: {each}" for each in _with_whose((why, row.student) for row in ordered for why in row.not_graded)
    ]
    if len(said) > MOST_NAMED:
        more = f"not graded: and {len(said) - MOST_NAMED} more. Next: course report, whose class page has them all"
        said = [*said[:MOST_NAMED], more]
    if said:
        following = "the same course grade again, which tries that alone"
        if any(row.not_readable for row in rows):
            mend = "put what cannot be read into the student's folder, opened, or decide in overrides.yaml"
            following = f"{mend}; then the same course grade again"
        said.append(f"There are no points for that, and no total. Next: {following}")
    console.say(*said, style="yellow")
    return not said


def name_changed(console: Console, changed: Sequence[ChangedPoints], labels: Labels) -> None:
    """Name whose points the run changed."""
    for id_, own in labels.by_assignment(changed):
        said = _some([f"{each.student} {score_words(each.before)} → {score_words(each.after)}" for each in own])
        console.say(f"{labels.assignment(id_)}: points changed since the last run: {said}", style="cyan")


def _with_whose(said: Iterable[tuple[str, str]]) -> list[str]:
    """Return each sentence behind the students of whom it is said."""
    whose: dict[str, list[str]] = {}
    for sentence, student in said:
        whose.setdefault(sentence, []).append(student)
    return [f"{_some(students)}: {sentence}" for sentence, students in whose.items()]


def name_others(console: Console, others: Sequence[NotGraded], out: Path) -> None:
    """Name what is not graded, with the reason."""
    console.say(*(f"not graded: {other}" for other in others[:MOST_NAMED]), style="yellow")
    if others:
        more = f"{len(others)} in all" if len(others) <= MOST_NAMED else f"and {len(others) - MOST_NAMED} more"
        console.say(f"Not graded: {more}. All of them: {out}/not-graded.json")


def _some(names: Sequence[str]) -> str:
    more = f", and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more
