"""Show results as text for a terminal: a class, one attempt, or a student's progress."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.columns import Columns
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..result import CheckResult, ExerciseResult
from ..student.check_and_keep_result import OwnAttempt, from_here
from ..student.hints import Rung
from ..submission import proved_line
from .class_summary import GRAVE, SHARES, AssignmentView, Cell, ClassView, Column
from .report_content import (
    DECIDED,
    EXCUSED,
    LATER,
    MARKS,
    NOT_GRADED,
    OUTCOMES,
    PROGRESS,
    RIGHT,
    WRONG,
    FunctionReport,
    attempt_words,
    count_with_noun,
    defined_on,
    label_of,
    points,
    score_words,
)

_LABEL = 40  # columns of an exercise's number and title
_STUDENT = 32  # columns of a name in the class table
_MOST_MISCONCEPTIONS = 10  # in the list below it
_SENTENCE = 52  # columns of a check's title
_POINTS = 13  # columns of "  2.25 / 4.25"


def class_table(view: ClassView, where: str = "below", *, students: bool = True) -> RenderableType:
    """Return each assignment's table of students, and its ten most frequent misconceptions.

    Args:
        view: The class.
        where: The place that shows all misconceptions, for the last line.
        students: Whether to include the table.
    """
    sections = []
    for assignment in view.assignments:
        table = _students(assignment) if students else Group()
        sections.append(
            Group(_heading(assignment.title), table, _misconceptions(assignment, where))
        )
    return Group(*sections)


def _students(assignment: AssignmentView) -> RenderableType:
    table = Table(header_style="bold", box=None, padding=(0, 1, 0, 0), pad_edge=False)
    # a long name must not displace the scores
    table.add_column("student", no_wrap=True, max_width=_STUDENT)
    for column in assignment.columns:
        table.add_column(column.number, justify="right", no_wrap=True)
    table.add_column("total", justify="right", style="bold", no_wrap=True)
    # the only column that may be narrowed: its texts are cut, not wrapped
    table.add_column("first misconception")
    for row in sorted(assignment.rows, key=lambda row: row.student):
        row_cells = [row.cells.get(column.id, Cell()) for column in assignment.columns]
        cells = (Text(cell.text, _colour(cell)) for cell in row_cells)
        misconception = Text(row.misconception, no_wrap=True, overflow="ellipsis")
        table.add_row(
            Text(row.student), *cells, f"{row.total}/{points(row.max_score)}", misconception
        )
    titles = (
        f"{column.number} {column.label.removeprefix(f'{column.number} ')}"
        for column in assignment.columns
    )
    legend = Columns([Text(title, style="dim") for title in titles], padding=(0, 3))
    texts = [cell.text for row in assignment.rows for cell in row.cells.values()]
    marks = [f"{MARKS[outcome]} {OUTCOMES[outcome]}" for outcome in (*GRAVE, "missing")]
    if any(text.endswith(DECIDED) for text in texts):
        marks.append(f"{DECIDED} by a rule")
    if EXCUSED in texts:
        marks.append(f"{EXCUSED} excused")
    if NOT_GRADED in texts:
        marks.append(f"{NOT_GRADED} not graded")
    return Group(table, legend, Text(f"{'   '.join(marks)}\n", style="dim"))


def _colour(cell: Cell) -> str:
    if cell.share is None:
        return "bold magenta" if cell.text == NOT_GRADED else "dim"
    if cell.share == len(SHARES) - 1:
        return "green"
    return "yellow" if cell.share else "red"


def _heading(title: str) -> RenderableType:
    return Text(title, style="bold underline")


def _misconceptions(assignment: AssignmentView, where: str) -> RenderableType:
    if not assignment.misconceptions:
        return Group()
    table = Table(show_header=False, box=None)
    for misconception in assignment.misconceptions[:_MOST_MISCONCEPTIONS]:
        table.add_row(str(len(misconception.names)), Text(misconception.titles[-1]))
    remaining = len(assignment.misconceptions) - _MOST_MISCONCEPTIONS
    footer = [Text(f" and {remaining} more: {where}")] if remaining > 0 else []
    return Group(Text("Misconceptions in this class", style="italic"), table, *footer, Text(""))


def class_exercises(view: ClassView) -> RenderableType:
    """Return each assignment over the class, exercise by exercise.

    Misconceptions that came back in a later exercise stand below.
    """
    sections = [
        renderable
        for assignment in view.assignments
        for renderable in (_heading(assignment.title), *map(_exercise, assignment.columns))
    ]
    label = view.labels.exercise
    for recurrence in view.came_back:
        exercises = f"in {label(recurrence.later_id)} after {label(recurrence.first_id)}"
        message = f"Came back for {len(recurrence.students)}, {exercises}: {recurrence.title}"
        sections.append(Text(message))
    return Group(*sections)


def _exercise(column: Column) -> RenderableType:
    unknown = NOT_GRADED if column.attempts else MARKS["missing"]
    mean = unknown if column.mean is None else f"{column.mean:.2f}"
    attempts = count_with_noun(column.attempts, "attempt", "attempts")
    summary = f"{attempts}, {column.full} full, mean {mean} / {points(column.max_score)}"
    head = Text(f"{column.label:<{_LABEL}}  {summary}")
    head.stylize("bold", 0, len(column.label))
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for misconception in column.misconceptions:
        count = len(misconception.names)
        either = "; ".join(
            f"or {title}, {n} of {count}" if n < count else f"or {title}"
            for title, n in misconception.alternatives
        )
        table.add_row(
            str(count), Text(misconception.titles[-1] + (f" ({either})" if either else ""))
        )
    for group, count in column.groups.items():
        table.add_row(str(count), group)
    return Group(head, Padding(table, (0, 0, 1, 2))) if table.rows else head


@dataclass(frozen=True)
class HintLine:
    """A hint below the report on a function. A notebook folds it away.

    Attributes:
        function: The name of the function; "" for the whole attempt.
        hint: The hint.
        indent: The number of columns by which it is indented.
    """

    function: str
    hint: str
    indent: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield _indent(f"hint: {self.hint}", self.indent, "cyan")


def exercise_report(
    result: ExerciseResult, *, label: str = "", after: Sequence[str] = (), brief: bool = False
) -> Group:
    """Return the report on one attempt, function by function, then the other checks.

    For each function the report has the student's mistake, the evidence and a hint. The report on
    an attempt that is right has only the first line, the sentences `after` and the note.

    Args:
        result: The result of the exercise.
        label: The exercise's number and title.
        after: Sentences below the report.
        brief: Whether only the first wrong function has more than one line.
    """
    words = attempt_words(result)
    head = _Scored(
        f"{words.mark} ", label or result.id, result.score, result.max_score, _STYLES[words.mark]
    )
    renderables: list[RenderableType] = [head]
    if not words.passed:
        for function in words.functions:
            lines = _function(function)
            is_short = brief and function != words.first_wrong
            renderables += lines[:1] if is_short else lines
    if words.hint:
        renderables.append(HintLine("", words.hint, 2))
    if not words.passed:
        renderables += [_fold_sentence(*folded) for folded in words.folded if folded.checks]
    renderables += [_indent(sentence, 2, "") for sentence in after]
    if result.note:
        renderables.append(_indent(result.note, 2, "dim"))
    return Group(*renderables)


def fitted_report(
    console: Console, result: ExerciseResult, label: str, after: Sequence[str] = (), below: int = 4
) -> Group:
    """Return the report on one attempt, or its brief form if the terminal has too few lines.

    Args:
        console: The terminal.
        result: The result of the exercise.
        label: The exercise's number and title.
        after: Sentences below the report.
        below: The number of lines that follow the report, with the prompt.
    """
    report = exercise_report(result, label=label, after=after)
    fits = not console.is_terminal or len(console.render_lines(report)) + below <= console.height
    return report if fits else exercise_report(result, label=label, after=after, brief=True)


def next_of(attempt: OwnAttempt, result: ExerciseResult) -> str:
    """Return the next step for an attempt that is not done.

    After a mistake, the step is the command that shows more about it. If everything that is written
    is right, the step is to write the next unwritten function, and to check again.
    """
    id_ = attempt.exercise.id
    words = attempt_words(result)
    if words.first_wrong:
        return f"Next: {words.next_command or f'course hint {id_}'}"
    name = next(
        (function.name for function in result.functions if function.state == "unwritten"), ""
    )
    stub = to_write(attempt, name)
    return f"Next: {stub and f'write {stub}, then: '}course check {id_}"


def to_write(attempt: OwnAttempt, name: str) -> str:
    """Return the function or class to write, with the line of its stub: "attend, on line 12 of …".

    If methods of a class are unwritten, return the first one. If the file does not define the name,
    return the name alone.
    """
    source = attempt.source
    name = ".".join([name, *source.unwritten_methods(name)[:1]])
    line = defined_on(source, name)
    return f"{name}, on {proved_line(source, line).place} of {attempt.path}" if line else name


_STYLES = {
    RIGHT: "bold green",
    WRONG: "bold red",
    PROGRESS: "bold yellow",
    NOT_GRADED: "bold yellow",
    LATER: "",
}


def _function(function: FunctionReport) -> list[RenderableType]:
    indent = 4 if function.name else 2
    renderables: list[RenderableType] = []
    if function.name:
        renderables.append(Hanging(f"  {function.mark} ", function.head, _STYLES[function.mark]))
    elif function.says:
        renderables.append(Hanging("  ", function.says, "bold"))
    for role, text, checks in function.details:
        if checks:
            renderables.append(_fold_sentence(text, checks, indent))
        elif role == "hint":
            renderables.append(HintLine(function.name, text, indent))
        elif role == "evidence":
            renderables.append(_indent(text, indent + 2, "yellow"))
        elif role != "next":  # the caller prints the next command last
            renderables.append(_indent(text, indent, ""))
    return renderables


def _indent(text: str, indent: int, style: str) -> RenderableType:
    return Padding(Text(text, style=style), (0, 0, 0, indent))


def _fold_sentence(sentence: str, checks: Sequence[CheckResult], indent: int = 2) -> RenderableType:
    return _Scored(
        " " * indent, sentence, sum(c.score for c in checks), sum(c.max_score for c in checks)
    )


@dataclass(frozen=True)
class Hanging:
    """A sentence after a prefix. Its further lines begin below its first letter.

    If the sentence has several lines, the lines after the first are a list, and a wrapped item is
    indented further.
    """

    prefix: str
    sentence: str
    style: str = ""
    before_style: str | None = None  # the style of the prefix; if None, the style of the sentence

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide = max(options.max_width - len(self.prefix), 12)
        lines = [self.sentence] if options.no_wrap else self.sentence.splitlines() or [""]
        first_line, *further_lines = textwrap.wrap(lines[0], wide) or [""]
        for item in lines[1:]:
            further_lines += textwrap.wrap(item, wide, subsequent_indent="   ") or [""]
        prefix_style = self.style if self.before_style is None else self.before_style
        yield Text.assemble((self.prefix, prefix_style), (first_line, self.style))
        yield from (Text(" " * len(self.prefix) + line, self.style) for line in further_lines)


@dataclass(frozen=True)
class _Scored:
    """A sentence with its points at the right of the first line.

    The sentence takes the width of the terminal, up to a width that is easy to read.
    """

    prefix: str
    sentence: str
    score: float | None
    max_score: float
    style: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        scored = f"{score_words(self.score):>6} / {points(self.max_score)}"
        wide = max(min(_SENTENCE + 2, options.max_width - _POINTS) - len(self.prefix), 10)
        first_line, *further_lines = textwrap.wrap(self.sentence, wide) or [""]
        lines = [
            f"{self.prefix}{first_line:<{wide}}{scored}",
            *(" " * len(self.prefix) + line for line in further_lines),
        ]
        yield Text("\n".join(lines), style=self.style)


_STATES: dict[str, tuple[str, str]] = {
    "done": ("✓", "green"),
    "in progress": ("…", "yellow"),
    "untouched": ("·", "bright_black"),
    "missing": ("?", "red"),
}


def below_ladder(
    owns: Sequence[OwnAttempt], results: Sequence[ExerciseResult | None]
) -> Iterator[Text | str]:
    """Yield notes about the files that are read, and the next step.

    The next step is about the first exercise that is not done. If all are done, the last sentence
    says so.
    """
    for attempt in owns:
        if note := attempt.source.problem if attempt.source.missing else attempt.source.note:
            yield Text(f"note: {note.splitlines()[0]}", style="dim")
    for attempt, result in zip(owns, results, strict=True):
        if not (result and result.is_done):
            manual_step = ""
            if not (attempt.is_started or attempt.source.missing):
                manual_step = f"fill the stubs of {from_here(attempt.exercise.script)}, then: "
            yield f"Next: {manual_step}course check {attempt.exercise.id}"
            return
    yield "All done."


def ladder(rungs: Sequence[Rung], *, is_whole: bool = False) -> RenderableType:
    """Return every exercise, the points so far, and the checklist of the first unfinished exercise.

    Args:
        rungs: The student's progress in each exercise.
        is_whole: Whether to show all of the checklist even if the screen has too few lines.
    """
    progress = f"{sum(rung.state == 'done' for rung in rungs)} of {len(rungs)} done"
    unseen = sum(rung.result.unseen for rung in rungs if rung.result)
    total = (
        f"{progress}, {points(sum(r.score for r in rungs))} of "
        f"{points(sum(r.exercise.points for r in rungs))} points"
    )
    total += " by the visible checks"
    if unseen:
        total += f"; only grading can give {points(unseen)} of them"
    renderables: list[RenderableType] = []
    for title in dict.fromkeys(rung.exercise.assignment.title for rung in rungs):
        renderables += [
            _heading(title),
            _rungs([rung for rung in rungs if rung.exercise.assignment.title == title]),
        ]
    renderables.append(Text(total, style="bold"))
    upcoming = next((rung for rung in rungs if rung.state != "done"), None)
    return _Fitted(Group(*renderables), upcoming, is_whole) if upcoming else Group(*renderables)


BELOW = 4  # lines of the screen for the next step and the prompt
FEWEST = 5  # if no more lines have room, only the number of checks is shown, and no checklist


class _Fitted(NamedTuple):
    """The progress, and below it as much of a checklist as the screen has room for.

    The checklist is complete if `is_whole` is set, or if the output is no terminal.
    """

    progress: RenderableType
    rung: Rung
    is_whole: bool

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.progress
        title = Text(f"The checklist of {label_of(self.rung.exercise)}: it …", style="bold")
        head: list[RenderableType] = [Text(""), title]
        checks = [
            Hanging("  ✓ ", check_title, "green") if passes else Hanging("  ☐ ", check_title)
            for check_title, passes in self.rung.checklist
        ]
        room = console.height - len(console.render_lines(self.progress)) - BELOW
        if self.is_whole or not console.is_terminal or len(head) + len(checks) <= room:
            yield from (*head, *checks)
        elif room <= FEWEST:
            message = (
                f"The checklist of {label_of(self.rung.exercise)} has {len(checks)} checks: "
                "course status --all"
            )
            yield Text(message, style="bright_black")
        else:
            fitting_checks = checks[: room - len(head) - 1]
            yield from (*head, *fitting_checks)
            yield Text(
                f"  … and {len(checks) - len(fitting_checks)} more: course status --all",
                style="bright_black",
            )


def _rungs(rungs: Sequence[Rung]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    for rung in rungs:
        mark, style = _STATES[rung.state]
        passed = f"{sum(does for _, does in rung.checklist)} of {len(rung.checklist)} checks"
        score = points(rung.score) if rung.result else "–"
        table.add_row(
            Text(mark, style=style),
            Text(label_of(rung.exercise), style=style),
            Text(f"{score} / {points(rung.exercise.points)}", justify="right", no_wrap=True),
            Text(passed if rung.state == "in progress" else rung.state, style=style),
        )
    return table
