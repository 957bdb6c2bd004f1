"""Choose what is reported about an attempt. Terminal, page and notebook render the same content."""

from __future__ import annotations

from dataclasses import dataclass

from ..result import CheckResult, Diagnosed, ExerciseResult, Outcome, ProvedLine, Result

OUTCOMES: dict[Outcome, str] = {
    "passed": "passed",
    "failed": "failed",
    "error": "raised an error",
    "timeout": "ran out of time",
    "crashed": "crashed",
    "skipped": "skipped",
    "missing": "not handed in",
}
MARKS: dict[Outcome, str] = {
    "passed": "✓",
    "failed": "✗",
    "error": "e",
    "timeout": "∞",
    "crashed": "!",
    "skipped": "·",
    "missing": "–",
}
NOTED: tuple[Outcome, ...] = (
    "crashed",
    "timeout",
    "missing",
)  # the outcomes that are noted beside a score, gravest first


@dataclass(frozen=True)
class MisconceptionWords:
    """A misconception's title, with its alternatives. The hint may be empty."""

    title: str
    hint: str


@dataclass(frozen=True)
class AttemptWords:
    """The report on one attempt. The first failed check is shown with its evidence, the others are listed below it."""

    passed: bool
    first: CheckResult | None  # None where all passed
    where: str  # the line that is wrong, in a sentence; "" where none is proved
    findings: tuple[MisconceptionWords, ...]
    hint: str  # the first failed check's hint, if there is no diagnosis
    rest: tuple[CheckResult, ...]

    @property
    def mark(self) -> str:
        """✓ or ✗."""
        return MARKS["passed" if self.passed else "failed"]


def attempt_words(result: ExerciseResult) -> AttemptWords:
    """The report on an attempt."""
    failed = [c for c in result.checks if c.outcome != "passed"]
    if not failed:
        return AttemptWords(True, None, "", (), "", ())
    first, rest = failed[0], tuple(failed[1:])
    hint = "" if result.diagnosis else first.hint
    return AttemptWords(False, first, where_wrong(result), tuple(map(_finding, result.diagnosis)), hint, rest)


def where_wrong(result: ExerciseResult) -> str:
    """The lines that are proved to be wrong, as a place: "line 23, or line 31, is where it goes wrong"."""
    if not result.lines:
        return ""
    first, *others = map(place_of, result.lines)
    return f"{first}{''.join(f', or {other},' for other in others)} is where it goes wrong"


def place_of(proved: ProvedLine) -> str:
    """line 23, or line 5 of code cell 3."""
    return f"line {proved.line_in_cell} of code cell {proved.cell}" if proved.cell else f"line {proved.line}"


def points(value: float) -> str:
    """4 for 4.0, 2.5 for 2.5."""
    return f"{value:g}"


def out_of(scored: CheckResult | ExerciseResult | Result) -> str:
    """2 / 6."""
    return f"{points(scored.score)} / {points(scored.max_score)}"


def score_note(result: ExerciseResult) -> Outcome | None:
    """The gravest outcome to note beside a score; None if there is none."""
    outcomes = {c.outcome for c in result.checks}
    return next((outcome for outcome in NOTED if outcome in outcomes), None)


def _finding(diagnosed: Diagnosed) -> MisconceptionWords:
    same = f" (the same numbers come from: {', '.join(diagnosed.alternatives)})" if diagnosed.alternatives else ""
    return MisconceptionWords(diagnosed.title + same, diagnosed.hint)
