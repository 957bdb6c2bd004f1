"""Results as text for a terminal."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rich.columns import Columns
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..result import CheckResult, ExerciseResult
from .aggregate import ExerciseView, Ranked
from .class_rows import Cell, Row
from .labels import IDS, Labels
from .words import (
    DECIDED,
    EXCUSED,
    LATER,
    MARKS,
    NOT_GRADED,
    NOTED,
    OUTCOMES,
    PROGRESS,
    RIGHT,
    WRONG,
    FunctionReport,
    attempt_words,
    counted,
    points,
    score_words,
    waiting_line,
)

_LABEL = 40  # columns of an exercise's number and title
_STUDENT = 32  # columns of a name in the class table
_MOST_MISCONCEPTIONS = 10  # in the list below it
_SENTENCE, _POINTS = 52, 13  # columns of a check's own words, and of "  2.25 / 4.25"


def class_table(rows: Sequence[Row], labels: Labels = IDS, where: str = "below") -> RenderableType:
    """For each assignment, in the course's order: students and numbered exercises, and its misconceptions.

    where: where all misconceptions are, of which ten are here.
    """
    return Group(
        *(_assignment_table(labels.assignment(id_), own, labels, where) for id_, own in labels.by_assignment(rows))
    )


def _assignment_table(title: str, rows: Sequence[Row], labels: Labels, where: str) -> RenderableType:
    numbered = labels.numbered([name for row in rows for name in row.cells])
    table = Table(header_style="bold", box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("student", no_wrap=True, max_width=_STUDENT)  # one long name may not take the others' scores
    for number, _ in numbered.values():
        table.add_column(number, justify="right", no_wrap=True)
    table.add_column("total", justify="right", style="bold", no_wrap=True)
    table.add_column("first misconception")  # the only column that may be narrowed: its texts are cut, not wrapped
    for row in sorted(rows, key=lambda r: r.student):
        total = f"{score_words(row.score)}/{points(row.max_score)}"
        first = f"{numbered[row.first[0]][0]}: {row.first[1]}" if row.first else ""
        cells = (_score(row.cells.get(name)) for name in numbered)
        table.add_row(escape(row.student), *cells, total, Text(first, no_wrap=True, overflow="ellipsis"))
    legend = Columns([Text(" ".join(each), style="dim") for each in numbered.values()], padding=(0, 3))
    every = [cell for row in rows for cell in row.cells.values()]
    more = [f"{DECIDED} by a rule"] * any(cell.decided for cell in every)
    more += [f"{EXCUSED} excused"] * any(cell.excused for cell in every)
    more += [f"{NOT_GRADED} not graded"] * any(cell.score is None for cell in every)
    marks = "   ".join([_MARK_LEGEND, *more])
    return Group(heading(title), table, legend, Text(f"{marks}\n", style="dim"), _misconceptions(rows, where))


def heading(title: str) -> RenderableType:
    """Return an assignment's title, above what is said of it."""
    return Text(title, style="bold underline")


def class_misconceptions(rows: Sequence[Row], labels: Labels, where: str) -> RenderableType:
    """Return the ten most frequent misconceptions of the class, for each assignment."""
    each = labels.by_assignment(rows)
    return Group(
        *(part for id_, own in each for part in (heading(labels.assignment(id_)), _misconceptions(own, where)))
    )


def _misconceptions(rows: Sequence[Row], where: str) -> RenderableType:
    counts = Counter(id_ for row in rows for id_ in row.misconceptions)
    if not counts:
        return Group()
    titles = {id_: title for row in rows for id_, title in row.misconceptions.items()}
    table = Table(show_header=False, box=None)
    for id_, count in counts.most_common(_MOST_MISCONCEPTIONS):
        table.add_row(str(count), Text(titles[id_]))
    left = len(counts) - _MOST_MISCONCEPTIONS
    more = [Text(f" and {left} more: {where}")] if left > 0 else []
    return Group(Text("Misconceptions in this class", style="italic"), table, *more, Text(""))


def class_exercises(views: Sequence[ExerciseView], title: str, labels: Labels = IDS) -> RenderableType:
    """Return one assignment over the class, exercise by exercise."""
    return Group(heading(title), *(exercise_view(view, labels) for view in views))


def exercise_view(view: ExerciseView, labels: Labels = IDS) -> RenderableType:
    """Return one exercise over the class: scores, then its misconceptions, most frequent first."""
    label = labels.exercise(view.id)
    unknown = NOT_GRADED if view.attempts else MARKS["missing"]
    mean = unknown if view.mean is None else f"{view.mean:.2f}"
    seen = f"{counted(view.attempts, 'attempt', 'attempts')}, {view.full} full, mean {mean} / {points(view.max_score)}"
    head = Text(f"{label:<{_LABEL}}  {seen}")
    head.stylize("bold", 0, len(label))
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for shared in view.misconceptions:
        table.add_row(str(shared.students), Text(shared.titles[-1] + _or_else(shared)))
    for group, count in view.groups.items():
        table.add_row(str(count), group)
    for outcome, count in view.outcomes.items():
        table.add_row(str(count), OUTCOMES[outcome] if outcome == "missing" else f"a check: {OUTCOMES[outcome]}")
    return Group(head, Padding(table, (0, 0, 1, 2))) if table.rows else head


def _or_else(shared: Ranked) -> str:
    """Return the alternatives with the same values, with the number of attempts if it is not all of them."""
    others = [
        f"or {title}" + (f", {count} of {shared.students}" if count < shared.students else "")
        for title, count in shared.alternatives
    ]
    return f" ({'; '.join(others)})" if others else ""


@dataclass(frozen=True)
class HintLine:
    """A hint, below what it is about: the name of a function, "" for the whole attempt. A notebook folds it away."""

    about: str
    hint: str
    deep: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield _indented(f"hint: {self.hint}", self.deep, "cyan")


def exercise_report(
    result: ExerciseResult, *, label: str = "", after: Sequence[str] = (), brief: bool = False
) -> Group:
    """Return one attempt, function by function: what the student did, what was seen, a hint; then the other checks.

    label: the exercise's number and title. after: sentences below it.
    brief: of functions, only the first that is wrong has more than its own line.
    """
    words = attempt_words(result)
    head = _Scored(f"{words.mark} ", label or result.id, result.score, result.max_score, _STYLES[words.mark])
    parts: list[RenderableType] = [head]
    if not words.passed:
        shown = [words.first] if brief else words.functions
        parts += [part for each in words.functions for part in _function(each)[: None if each in shown else 1]]
    parts += [HintLine("", words.hint, 2)] * bool(words.hint)
    if words.waiting:
        parts.append(_folded(waiting_line(words.waiting), words.waiting))
    if words.passed_checks and not words.passed:
        parts.append(_folded(counted(len(words.passed_checks), "check passes", "checks pass"), words.passed_checks))
    parts += [_indented(sentence, 2, "") for sentence in after]
    parts += [_indented(text, 2, "dim") for text in (words.total, result.note) if text]
    return Group(*parts)


def fitted_report(
    console: Console, result: ExerciseResult, label: str, after: Sequence[str] = (), below: int = 4
) -> Group:
    """Return the same, brief where a terminal has no room for it. below: how many lines come after it, with the prompt."""
    report = exercise_report(result, label=label, after=after)
    fits = not console.is_terminal or len(console.render_lines(report)) + below <= console.height
    return report if fits else exercise_report(result, label=label, after=after, brief=True)


def next_after(result: ExerciseResult) -> str:
    """Return "Next: ", and the command that shows more of an attempt for which there is no hint; "" where there is one."""
    words = attempt_words(result)
    return f"Next: {words.first.next}" if words.first and words.first.next and not words.gives_hint else ""


_STYLES = {RIGHT: "bold green", WRONG: "bold red", PROGRESS: "bold yellow", NOT_GRADED: "bold yellow", LATER: ""}


def _function(function: FunctionReport) -> list[RenderableType]:
    """Return a line for the function; below it, deeper, what is wrong with it."""
    deep = 4 if function.name else 2
    parts: list[RenderableType] = []
    if function.name:
        parts.append(Hanging(f"  {function.mark} ", function.head, _STYLES[function.mark]))
    elif function.says:
        parts.append(Hanging("  ", function.says, "bold"))
    for kind, text, checks in function.told:
        if checks:
            parts.append(_folded(text, checks, deep))
        elif kind == "hint":
            parts.append(HintLine(function.name, text, deep))
        elif kind != "next":  # which whoever prints this says last
            is_evidence = kind == "evidence"
            parts.append(_indented(text, deep + 2 * is_evidence, "yellow" if is_evidence else ""))
    return parts


def _indented(text: str, deep: int, style: str) -> RenderableType:
    return Padding(Text(text, style=style), (0, 0, 0, deep))


def _folded(sentence: str, checks: Sequence[CheckResult], deep: int = 2) -> RenderableType:
    return _Scored(" " * deep, sentence, sum(c.score for c in checks), sum(c.max_score for c in checks))


@dataclass(frozen=True)
class Hanging:
    """A sentence behind what stands before it, whose further lines stand below its first; those of a list, below their own."""

    before: str
    sentence: str
    style: str = ""
    before_style: str | None = None  # another than that of the sentence

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide = max(options.max_width - len(self.before), 12)
        lines = [self.sentence] if options.no_wrap else self.sentence.splitlines() or [""]
        first, *more = [
            part
            for line in lines
            for part in textwrap.wrap(line, wide, subsequent_indent="   " * (line != lines[0])) or [""]
        ]
        before = self.style if self.before_style is None else self.before_style
        yield Text.assemble((self.before, before), (first, self.style))
        yield from (Text(" " * len(self.before) + line, self.style) for line in more)


@dataclass(frozen=True)
class _Scored:
    """A sentence with its points at the right of the first line, fitted to the terminal up to a readable width."""

    before: str
    sentence: str
    score: float | None
    max_score: float
    style: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        scored = f"{score_words(self.score):>6} / {points(self.max_score)}"
        wide = max(min(_SENTENCE + 2, options.max_width - _POINTS) - len(self.before), 10)
        first, *more = textwrap.wrap(self.sentence, wide) or [""]
        lines = [f"{self.before}{first:<{wide}}{scored}", *(" " * len(self.before) + line for line in more)]
        yield Text("\n".join(lines), style=self.style)


def _score(cell: Cell | None) -> str:
    if cell is None:
        return ""
    if cell.excused:
        return f"[dim]{EXCUSED}[/]"
    if cell.score is None:
        return f"[bold yellow]{NOT_GRADED}[/]"
    colour = "green" if cell.score == cell.max_score else "yellow" if cell.score else "red"
    return f"[{colour}]{points(cell.score)}[/]{MARKS[cell.note] if cell.note else ''}{DECIDED if cell.decided else ''}"


_MARK_LEGEND = "   ".join(f"{MARKS[outcome]} {OUTCOMES[outcome]}" for outcome in NOTED)
