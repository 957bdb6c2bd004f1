"""The comparison of two runs as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..result import Result
from .compare import Change, CheckChange, Comparison, by_check
from .labels import IDS, Labels
from .terminal import heading
from .words import OUTCOMES, out_of, points, score_words, was_not_run

NONE = "none"


def changes(comparison: Comparison, labels: Labels = IDS) -> RenderableType:
    """Every submission that changed, was added or is gone, with its checks and diagnoses, assignment by assignment."""
    every: list[Change | Result] = [*comparison.changed, *comparison.added, *comparison.gone]
    parts: list[RenderableType] = []
    for id_, own in labels.by_assignment(every):
        parts.append(heading(labels.assignment(id_)))
        for each in own:
            if isinstance(each, Change):
                parts += _change(each, labels)
            else:
                new = each in comparison.added
                said = f"is new, {out_of(each)}" if new else f"is gone, was {out_of(each)}"
                parts.append(Text(f"{'+' if new else '-'} {each.student} {said}"))
    return Group(*parts)


def summary(comparison: Comparison, labels: Labels = IDS) -> RenderableType:
    """The checks by how many students gained and lost, assignment by assignment, then a summary in a few lines."""
    parts: list[RenderableType] = []
    for id_, own in labels.by_assignment(comparison.changed):
        if counted := by_check(own):
            table = _table()
            for exercise, title, up, down in counted:
                both = (f"{up} up" if up else "", f"{down} down" if down else "")
                table.add_row(Text(labels.exercise(exercise)), Text(title), ", ".join(filter(None, both)))
            parts += [heading(f"{labels.assignment(id_)}: checks, by students who gained or lost"), table]
    for setting in comparison.settings:
        parts.append(Text(f"Graded otherwise: {setting.name} {_listed(setting.old)} → {_listed(setting.new)}"))
    gains = [change.gain for change in comparison.changed if change.is_graded]
    counts = (
        (comparison.same, "the same"),
        (sum(gain > 0 for gain in gains), "up"),
        (sum(gain < 0 for gain in gains), "down"),
        (sum(gain == 0 for gain in gains), "with other checks or diagnoses for as many points"),
        (len(comparison.changed) - len(gains), "not graded in one of the runs"),
        (len(comparison.added), "new"),
        (len(comparison.gone), "gone"),
    )
    said = ", ".join(f"{count} {what}" for count, what in counts if count) or "none"
    return Group(*parts, Text(f"Submissions: {said}"))


def _change(change: Change, labels: Labels) -> Iterator[RenderableType]:
    style, mark = ("green", "↑") if change.gain > 0 else ("red", "↓") if change.gain < 0 else ("yellow", "=")
    score = f"{score_words(change.old.score)} → {out_of(change.new)}"
    yield Text(f"{mark} {change.new.student}: {score}", style=f"bold {style}")
    for diagnosis in change.diagnoses:
        yield Text(f"  {labels.exercise(diagnosis.exercise)}: {_listed(diagnosis.old)} → {_listed(diagnosis.new)}")
    yield from (Text(f"  decided: {said}") for said in change.decided)
    yield from (Text(f"  no longer decided: {said}") for said in change.no_longer)
    table = _table()
    for check in change.checks:
        table.add_row(Text(labels.exercise(check.exercise)), Text(check.title), _points(check), _outcome(check))
    yield Padding(table, (0, 0, 0, 2), expand=False)


def _table() -> Table:
    return Table(show_header=False, box=None, padding=(0, 2, 0, 0))


def _outcome(check: CheckChange) -> str:
    """The change of outcome; empty if the points show it, as from passed to failed."""
    if not check.old or not check.new:
        return "no such check before" if check.new else "no such check now"
    if {check.old.outcome, check.new.outcome} <= {"passed", "failed"}:
        return ""
    old, new = OUTCOMES[check.old.outcome], OUTCOMES[check.new.outcome]
    return old if old == new else f"{old} → {new}"


def _points(check: CheckChange) -> str:
    old, new = (out_of(end) if end else NONE for end in (check.old, check.new))
    same_most = check.old and check.new and check.old.max_score == check.new.max_score
    both_ran = not any(each is not None and was_not_run(each) for each in (check.old, check.new))
    return f"{points(check.old.score)} → {new}" if check.old and same_most and both_ran else f"{old} → {new}"


def _listed(values: Sequence[str]) -> str:
    return ", ".join(values) or NONE
