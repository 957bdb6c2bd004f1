"""Results as text for a terminal."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..result import CheckResult, ExerciseResult, Result
from .aggregate import ExerciseView, Shared
from .words import MARKS, NOTED, OUTCOMES, AttemptWords, attempt_words, points, score_note


def class_table(results: Sequence[Result]) -> RenderableType:
    """Students and exercises, by number to fit a terminal, and the misconceptions that the class has."""
    numbers = {name: i for i, name in enumerate(dict.fromkeys(e.id for r in results for e in r.exercises), 1)}
    table = Table(header_style="bold", box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("student", no_wrap=True)
    for number in numbers.values():
        table.add_column(str(number), justify="right", no_wrap=True)
    table.add_column("total", justify="right", style="bold", no_wrap=True)
    table.add_column("first misconception", no_wrap=True)
    for result in sorted(results, key=lambda r: r.student):
        scores = {e.id: e for e in result.exercises}
        cells = [_score(scores.get(name)) for name in numbers]
        total = f"{points(result.score)}/{points(result.max_score)}"
        table.add_row(escape(result.student), *cells, total, _first(result, numbers))
    legend = "  ".join(f"{number} {name}" for name, number in numbers.items())
    return Group(table, Text(f"{legend}\n{_MARK_LEGEND}\n", style="dim"), _misconceptions(results))


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


def _or_else(shared: Shared) -> str:
    """What gives the same numbers, and in how many attempts where not in all."""
    others = [
        f"or {name}" + (f", {count} of {shared.students}" if count < shared.students else "")
        for name, count in shared.alternatives
    ]
    return f" ({'; '.join(others)})" if others else ""


def exercise_report(result: ExerciseResult) -> RenderableType:
    """One attempt: the first broken layer's checks, the diagnosis, a hint."""
    words = attempt_words(result)
    style = "green" if words.passed else "red"
    head = f"{words.mark} {result.id:<52}{points(result.score):>6} / {points(result.max_score)}"
    return Group(Text(head, style=f"bold {style}"), *_failures(words))


def _failures(words: AttemptWords) -> list[RenderableType]:
    if words.first is None:
        return []
    parts: list[RenderableType] = [_line(words.first)]
    parts.append(Padding(Text(words.first.evidence, style="yellow"), (0, 0, 0, 4)))
    for finding in words.findings:
        parts.append(Padding(Text(finding.title, style="bold"), (0, 0, 0, 2)))
        parts += _hint(finding.hint)
    return parts + _hint(words.hint) + [_line(check) for check in words.rest]


def _hint(hint: str) -> list[RenderableType]:
    return [Padding(Text(f"hint: {hint}", style="cyan"), (0, 0, 0, 2))] if hint else []


def _line(check: CheckResult) -> RenderableType:
    first, *more = textwrap.wrap(check.title, 52) or [""]
    lines = [f"  {first:<52}{points(check.score):>6} / {points(check.max_score)}", *(f"  {line}" for line in more)]
    return Text("\n".join(lines))


def _score(result: ExerciseResult | None) -> str:
    if result is None:
        return ""
    colour = "green" if result.score == result.max_score else "yellow" if result.score else "red"
    noted = score_note(result)
    return f"[{colour}]{points(result.score)}[/]{MARKS[noted] if noted else ''}"


_MARK_LEGEND = "   ".join(f"{MARKS[outcome]} {OUTCOMES[outcome]}" for outcome in NOTED)


def _first(result: Result, numbers: dict[str, int]) -> str:
    for exercise in result.exercises:
        for diagnosed in exercise.diagnosis:
            return f"{numbers[exercise.id]}: {diagnosed.id}"
    return ""


def _misconceptions(results: Sequence[Result]) -> RenderableType:
    found = Counter(name for r in results for name in {d.id for e in r.exercises for d in e.diagnosis})
    if not found:
        return Text("")
    table = Table(show_header=False, box=None)
    for name, count in found.most_common(10):
        table.add_row(str(count), name)
    return Group(Text("Misconceptions in this class", style="italic"), table)
