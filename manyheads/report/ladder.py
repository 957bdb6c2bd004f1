"""Show where a student stands: the list of exercises, the next one's checklist, and what comes after a ✓."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from ..course import Course, Exercise
from .terminal import Hanging, heading
from .words import RIGHT, WRONG, FunctionReport, points

State = Literal["done", "in progress", "untouched", "missing"]
_MARKS: dict[State, tuple[str, str]] = {
    "done": ("✓", "green"),
    "in progress": ("…", "yellow"),
    "untouched": ("·", "bright_black"),
    "missing": ("?", "red"),
}
_STYLES = {RIGHT: "green", WRONG: "red"}


@dataclass(frozen=True)
class Rung:
    """One exercise. label: its number and title. assignment: its assignment's title.

    score: the points that are seen here. unseen: those that only grading sees.
    checklist: the title of each visible check, and whether the attempt passes it. functions: what is said of each.
    """

    assignment: str
    label: str
    state: State
    score: float
    max_score: float
    checklist: tuple[tuple[str, bool], ...] = ()
    functions: tuple[FunctionReport, ...] = ()
    unseen: float = 0.0


def ladder(rungs: Sequence[Rung]) -> RenderableType:
    """Return every exercise, the points so far, and the checklist of the first exercise that is not done."""
    done = f"{sum(rung.state == 'done' for rung in rungs)} of {len(rungs)} done"
    unseen = sum(r.unseen for r in rungs)
    total = f"{done}, {points(sum(r.score for r in rungs))} of {points(sum(r.max_score for r in rungs))} points"
    total += " by the visible checks" + (f"; only grading can give {points(unseen)} of them" if unseen else "")
    parts: list[RenderableType] = []
    for title in dict.fromkeys(rung.assignment for rung in rungs):
        parts += [heading(title), _table([rung for rung in rungs if rung.assignment == title])]
    parts.append(Text(total, style="bold"))
    upcoming = next((rung for rung in rungs if rung.state != "done"), None)
    if upcoming is not None:
        lines: list[RenderableType] = []
        if upcoming.state == "in progress" and upcoming.functions:
            lines += [Text(""), Text(f"{upcoming.label}, function by function:", style="bold")]
            lines += [Hanging(f"  {each.mark} ", each.head, _STYLES.get(each.mark, "")) for each in upcoming.functions]
        lines += [Text(""), Text(f"The checklist of {upcoming.label}: it …", style="bold")]
        lines += [
            Hanging("  ✓ ", title, "green") if does else Hanging("  ☐ ", title) for title, does in upcoming.checklist
        ]
        above = len(rungs) + len({rung.assignment for rung in rungs}) + -(-len(total) // WIDE)
        parts.append(_Fitted(tuple(lines), above))
    return Group(*parts)


WIDE, BELOW = 80, 4  # columns of the usual terminal; lines of the screen for what comes next, and the prompt
FEWEST = 5  # lines of a checklist that say something


@dataclass(frozen=True)
class _Fitted:
    """As many lines as the screen has room for. above: how many stand above them. What is not a terminal gets all."""

    lines: tuple[RenderableType, ...]
    above: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = console.height - self.above - BELOW
        if not console.is_terminal or len(self.lines) <= room:
            yield from self.lines
            return
        shown = self.lines[: room - 1] if room > FEWEST else ()
        yield from shown
        yield Text(f"… {len(self.lines) - len(shown)} lines more: course status | cat", style="bright_black")


def _table(rungs: Sequence[Rung]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    for rung in rungs:
        mark, style = _MARKS[rung.state]
        passed = f"{sum(does for _, does in rung.checklist)} of {len(rung.checklist)} checks"
        score = points(rung.score) if rung.state in ("done", "in progress") else "–"
        table.add_row(
            Text(mark, style=style),
            Text(rung.label, style=style),
            Text(f"{score} / {points(rung.max_score)}", justify="right", no_wrap=True),
            Text(passed if rung.state == "in progress" else rung.state, style=style),
        )
    return table


def welcome(course: Course, first: str) -> list[str]:
    """For a student who has begun nothing. first: the path of the first exercise, as seen from here."""
    count = len(course.exercises)
    exercises = "one exercise" if count == 1 else f"{count} exercises, one file each"
    return [
        f"Welcome to {course.title}: {exercises}. Nothing is begun yet, so there is nothing to check.",
        f"Open {first} (or the notebook beside it), read the lesson, and fill what says YOUR CODE HERE.",
        f"Next: check it as soon as one function is written, then: course check {course.exercises[0].id}",
    ]


def after_done(exercise: Exercise) -> list[str]:
    """For an exercise of which every check passes."""
    lines = [f"Why it works: {exercise.why}"] if exercise.why else []
    if exercise.train is not None:
        lines.append(f"It can learn to write now, in about a minute: course train {exercise.id}")
    lines.append(f"Five questions on your own code: course ask {exercise.id}")
    return lines


def how_far(course: Course, done: Collection[Exercise]) -> str:
    """3 of 8 done."""
    return f"{len(done)} of {len(course.exercises)} done."


def following(course: Course, done: Collection[Exercise], after: Exercise) -> Exercise | None:
    """Return the exercise to do next: the first after this one that is not done, else the first; None where all are done."""
    every = course.exercises
    place = every.index(after) + 1
    return next((result for result in (*every[place:], *every[:place]) if result not in done), None)
