"""Find what changed between two runs, and show it in a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..result import CheckResult, ExerciseResult, Result
from .adjustments import sentences
from .labels import IDS, Labels
from .terminal import heading
from .words import OUTCOMES, out_of, points, score_words, was_not_run

# Find what changed between two runs.

Key = tuple[str, str]  # student, assignment


@dataclass(frozen=True)
class CheckChange:
    """A check with another outcome or other points. old, new: None if that run does not have the check."""

    exercise: str
    old: CheckResult | None
    new: CheckResult | None

    @property
    def title(self) -> str:
        """The title in the newer run."""
        known = self.new or self.old
        return known.title if known else ""

    @property
    def gain(self) -> float:
        """The gain in points; negative if points were lost; 0 where a grader could not run it."""
        if any(check is not None and was_not_run(check) for check in (self.old, self.new)):
            return 0.0
        return (self.new.score if self.new else 0.0) - (self.old.score if self.old else 0.0)


@dataclass(frozen=True)
class Otherwise:
    """What differs between two runs, with all that it was before and is now.

    A condition of grading and its values; or an exercise and the titles of its diagnosis, most likely first.
    """

    name: str
    old: tuple[str, ...]
    new: tuple[str, ...]


@dataclass(frozen=True)
class Change:
    """A submission whose verdict has changed.

    decided: what rules say of it now, and did not; and the other way round.
    """

    old: Result
    new: Result
    checks: tuple[CheckChange, ...]
    diagnoses: tuple[Otherwise, ...]
    decided: tuple[str, ...] = ()
    no_longer: tuple[str, ...] = ()

    @property
    def assignment(self) -> str:
        """The assignment's id."""
        return self.new.assignment

    @property
    def gain(self) -> float:
        """The gain in points; negative if points were lost; 0 where there is no total to compare."""
        if self.old.score is None or self.new.score is None:
            return 0.0
        return round(self.new.score - self.old.score, 9)

    @property
    def is_graded(self) -> bool:
        """Whether both runs have a total."""
        return self.old.score is not None and self.new.score is not None

    @property
    def is_lost(self) -> bool:
        """Whether an exercise had points, and is not graded any more."""
        return not set(self.new.not_graded) <= set(self.old.not_graded)


@dataclass(frozen=True)
class RunChanges:
    """The comparison of two runs."""

    same: int
    changed: tuple[Change, ...]
    added: tuple[Result, ...]
    gone: tuple[Result, ...]
    settings: tuple[Otherwise, ...]

    @property
    def drops(self) -> bool:
        """Whether a check earns fewer points than before, an exercise is not graded any more, or a submission is gone."""
        lost = any(change.is_lost for change in self.changed)
        return bool(self.gone) or lost or any(check.gain < 0 for change in self.changed for check in change.checks)


def compare(old: Sequence[Result], new: Sequence[Result], labels: Labels = IDS) -> RunChanges:
    """Compare two runs. labels: for what is said of decisions.

    Submissions are the same if all checks, diagnoses and decisions are: evidence and hints do not count.
    """
    before, after = _by_key(old), _by_key(new)
    both = [(before[key], after[key]) for key in before if key in after]
    changes = [_change(*pair, labels) for pair in both]
    changed = tuple(
        change for change in changes if change.checks or change.diagnoses or change.decided or change.no_longer
    )
    return RunChanges(
        same=len(both) - len(changed),
        changed=changed,
        added=tuple(result for key, result in after.items() if key not in before),
        gone=tuple(result for key, result in before.items() if key not in after),
        settings=tuple(_settings(old, new)),
    )


def by_check(changed: Sequence[Change]) -> list[tuple[str, str, int, int]]:
    """Return (exercise, title, how many students gained, how many lost) for each check, most losses first."""
    ups, downs = Counter[Key](), Counter[Key]()
    for change in changed:
        for check in change.checks:
            ups[check.exercise, check.title] += check.gain > 0
            downs[check.exercise, check.title] += check.gain < 0
    rows = [(*key, ups[key], downs[key]) for key in ups if ups[key] or downs[key]]
    return sorted(rows, key=lambda row: (-row[3], -row[2]))


def _by_key(results: Sequence[Result]) -> dict[Key, Result]:
    return {(result.student, result.assignment): result for result in results}


def _change(old: Result, new: Result, labels: Labels) -> Change:
    before, after = ({exercise.id: exercise for exercise in result.exercises} for result in (old, new))
    pairs = [(id_, before.get(id_), after.get(id_)) for id_ in dict.fromkeys([*before, *after])]
    decided, earlier = (list(sentences(result, labels)) for result in (new, old))
    return Change(
        old,
        new,
        tuple(check for id_, *pair in pairs for check in _checks(id_, *pair)),
        tuple(change for id_, *pair in pairs if (change := _diagnosis(id_, *pair))),
        tuple(said for said in decided if said not in earlier),
        tuple(said for said in earlier if said not in decided),
    )


def _checks(exercise: str, old: ExerciseResult | None, new: ExerciseResult | None) -> Iterator[CheckChange]:
    before, after = ({check.id: check for check in side.checks} if side else {} for side in (old, new))
    for id_ in dict.fromkeys([*before, *after]):
        change = CheckChange(exercise, before.get(id_), after.get(id_))
        if _verdict(change.old) != _verdict(change.new):
            yield change


def _verdict(check: CheckResult | None) -> tuple[str, float, float] | None:
    return (check.outcome, check.score, check.max_score) if check else None


def _diagnosis(exercise: str, old: ExerciseResult | None, new: ExerciseResult | None) -> Otherwise | None:
    before, after = (side.diagnosis if side else () for side in (old, new))
    if [d.id for d in before] == [d.id for d in after]:
        return None
    return Otherwise(exercise, tuple(d.title for d in before), tuple(d.title for d in after))


def _settings(old: Sequence[Result], new: Sequence[Result]) -> Iterator[Otherwise]:
    before, after = _values(old), _values(new)
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            yield Otherwise(name, before.get(name, ()), after.get(name, ()))


def _values(results: Sequence[Result]) -> dict[str, tuple[str, ...]]:
    found: dict[str, set[str]] = {}
    for result in results:
        own = {"isolation": result.isolation, "device": result.device, "seed": str(result.seed), **result.versions}
        for name, value in own.items():
            found.setdefault(name, set()).add(value)
    return {name: tuple(sorted(values)) for name, values in found.items()}


# The comparison of two runs as text for a terminal.

NONE = "none"


def changes(comparison: RunChanges, labels: Labels = IDS) -> RenderableType:
    """Return every submission that changed, was added or is gone, with its checks and diagnoses, assignment by assignment."""
    every: list[Change | Result] = [*comparison.changed, *comparison.added, *comparison.gone]
    parts: list[RenderableType] = []
    for id_, own in labels.by_assignment(every):
        parts.append(heading(labels.assignment(id_)))
        for adjustment in own:
            if isinstance(adjustment, Change):
                parts += _change_lines(adjustment, labels)
            else:
                new = adjustment in comparison.added
                said = f"is new, {out_of(adjustment)}" if new else f"is gone, was {out_of(adjustment)}"
                parts.append(Text(f"{'+' if new else '-'} {adjustment.student} {said}"))
    return Group(*parts)


def summary(comparison: RunChanges, labels: Labels = IDS) -> RenderableType:
    """Return the checks by how many students gained and lost, assignment by assignment, then a summary in a few lines."""
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


def _change_lines(change: Change, labels: Labels) -> Iterator[RenderableType]:
    style, mark = ("green", "↑") if change.gain > 0 else ("red", "↓") if change.gain < 0 else ("yellow", "=")
    score = f"{score_words(change.old.score)} → {out_of(change.new)}"
    yield Text(f"{mark} {change.new.student}: {score}", style=f"bold {style}")
    for diagnosis in change.diagnoses:
        yield Text(f"  {labels.exercise(diagnosis.name)}: {_listed(diagnosis.old)} → {_listed(diagnosis.new)}")
    yield from (Text(f"  decided: {said}") for said in change.decided)
    yield from (Text(f"  no longer decided: {said}") for said in change.no_longer)
    table = _table()
    for check in change.checks:
        table.add_row(Text(labels.exercise(check.exercise)), Text(check.title), _points(check), _outcome(check))
    yield Padding(table, (0, 0, 0, 2), expand=False)


def _table() -> Table:
    return Table(show_header=False, box=None, padding=(0, 2, 0, 0))


def _outcome(check: CheckChange) -> str:
    """Return the change of outcome; empty if the points show it, as from passed to failed."""
    if not check.old or not check.new:
        return "no such check before" if check.new else "no such check now"
    if {check.old.outcome, check.new.outcome} <= {"passed", "failed"}:
        return ""
    old, new = OUTCOMES[check.old.outcome], OUTCOMES[check.new.outcome]
    return old if old == new else f"{old} → {new}"


def _points(check: CheckChange) -> str:
    old, new = (out_of(end) if end else NONE for end in (check.old, check.new))
    same_most = check.old and check.new and check.old.max_score == check.new.max_score
    both_ran = not any(side is not None and was_not_run(side) for side in (check.old, check.new))
    return f"{points(check.old.score)} → {new}" if check.old and same_most and both_ran else f"{old} → {new}"


def _listed(values: Sequence[str]) -> str:
    return ", ".join(values) or NONE
