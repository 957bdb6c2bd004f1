"""Results as text for a terminal."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..result import CheckResult, ExerciseResult
from .aggregate import ExerciseView, MisconceptionCount
from .rows import Cell, Row
from .words import MARKS, NOTED, OUTCOMES, AttemptWords, attempt_words, points

_SENTENCE, _POINTS = 52, 13  # columns of a check's own words, and of "  2.25 / 4.25"
_WHOLE = ("error", "timeout", "crashed", "missing")  # how a whole attempt can end


def class_table(rows: Sequence[Row]) -> RenderableType:
    """A table of students and numbered exercises, and the misconceptions of the class."""
    numbers = {name: i for i, name in enumerate(dict.fromkeys(name for row in rows for name in row.cells), 1)}
    table = Table(header_style="bold", box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("student", no_wrap=True)
    for number in numbers.values():
        table.add_column(str(number), justify="right", no_wrap=True)
    table.add_column("total", justify="right", style="bold", no_wrap=True)
    table.add_column("first misconception", no_wrap=True)
    for row in sorted(rows, key=lambda r: r.student):
        total = f"{points(row.score)}/{points(row.max_score)}"
        first = f"{numbers[row.first[0]]}: {row.first[1]}" if row.first else ""
        table.add_row(escape(row.student), *(_score(row.cells.get(name)) for name in numbers), total, first)
    legend = "  ".join(f"{number} {name}" for name, number in numbers.items())
    return Group(table, Text(f"{legend}\n{_MARK_LEGEND}\n", style="dim"), class_misconceptions(rows))


def class_misconceptions(rows: Sequence[Row]) -> RenderableType:
    """The ten most frequent misconceptions of the class."""
    found = Counter(name for row in rows for name in row.misconceptions)
    if not found:
        return Text("")
    table = Table(show_header=False, box=None)
    for name, count in found.most_common(10):
        table.add_row(str(count), name)
    return Group(Text("Misconceptions in this class", style="italic"), table)


def exercise_view(view: ExerciseView) -> RenderableType:
    """One exercise over the class: scores, then its misconceptions, most frequent first."""
    head = Text(
        f"{view.id:<24}{view.attempts} attempts, {view.full} full, mean {view.mean:.2f} / {points(view.max_score)}"
    )
    head.stylize("bold", 0, len(view.id))
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for shared in view.misconceptions:
        table.add_row(str(shared.students), shared.id + _or_else(shared), shared.title)
    if view.unexplained:
        table.add_row(str(view.unexplained), "—", "wrong in a way that no misconception explains")
    for outcome, count in view.outcomes.items():
        table.add_row(str(count), "—", f"a check ended with: {outcome}")
    return Group(head, Padding(table, (0, 0, 1, 2)))


def _or_else(shared: MisconceptionCount) -> str:
    """The alternatives with the same values, with the number of attempts if it is not all of them."""
    others = [
        f"or {name}" + (f", {count} of {shared.students}" if count < shared.students else "")
        for name, count in shared.alternatives
    ]
    return f" ({'; '.join(others)})" if others else ""


def exercise_report(result: ExerciseResult) -> RenderableType:
    """One attempt: the first broken layer's checks, the diagnosis, a hint, and what else its student should know."""
    words = attempt_words(result)
    head = _Scored(
        f"{words.mark} ", result.id, result.score, result.max_score, "bold green" if words.passed else "bold red"
    )
    note = [Padding(Text(result.note, style="dim"), (0, 0, 0, 2))] if result.note else []
    return Group(head, *_failures(words), *note)


def _failures(words: AttemptWords) -> list[RenderableType]:
    if words.first is None:
        return []
    parts: list[RenderableType] = [_line(words.first)]
    parts.append(Padding(Text(words.first.evidence, style="yellow"), (0, 0, 0, 4)))
    if words.where:
        parts.append(Padding(Text(words.where, style="bold yellow"), (0, 0, 0, 2)))
    for finding in words.findings:
        parts.append(Padding(Text(finding.title, style="bold"), (0, 0, 0, 2)))
        parts += _hint(finding.hint)
    return [*parts, *_hint(words.hint), *_others(words.first, words.rest)]


def _others(first: CheckResult, rest: Sequence[CheckResult]) -> list[RenderableType]:
    """The other checks that failed; a single line if the whole attempt ended before them."""
    ended = first.outcome in _WHOLE and all((c.outcome, c.evidence) == (first.outcome, first.evidence) for c in rest)
    if not ended or len(rest) < 2:
        return [_line(check) for check in rest]
    most = sum(check.max_score for check in rest)
    return [_Scored("  ", f"and {len(rest)} other checks, which wait for that", sum(c.score for c in rest), most)]


def _hint(hint: str) -> list[RenderableType]:
    return [Padding(Text(f"hint: {hint}", style="cyan"), (0, 0, 0, 2))] if hint else []


def _line(check: CheckResult) -> RenderableType:
    return _Scored("  ", check.title, check.score, check.max_score)


@dataclass(frozen=True)
class _Scored:
    """A sentence with its points at the right of the first line, fitted to the terminal up to a readable width."""

    before: str
    sentence: str
    score: float
    max_score: float
    style: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        scored = f"{points(self.score):>6} / {points(self.max_score)}"
        wide = max(min(_SENTENCE, options.max_width - len(self.before) - _POINTS), 12)
        first, *more = textwrap.wrap(self.sentence, wide) or [""]
        lines = [f"{self.before}{first:<{wide}}{scored}", *(f"  {line}" for line in more)]
        yield Text("\n".join(lines), style=self.style)


def _score(cell: Cell | None) -> str:
    if cell is None:
        return ""
    colour = "green" if cell.score == cell.max_score else "yellow" if cell.score else "red"
    return f"[{colour}]{points(cell.score)}[/]{MARKS[cell.note] if cell.note else ''}"


_MARK_LEGEND = "   ".join(f"{MARKS[outcome]} {OUTCOMES[outcome]}" for outcome in NOTED)
