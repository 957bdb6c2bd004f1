"""What is said about one attempt. A terminal, a page and a notebook show the same words, each in its own way."""

from __future__ import annotations

from dataclasses import dataclass

from ..result import CheckResult, Diagnosed, ExerciseResult, Outcome, Result

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
NOTED: tuple[Outcome, ...] = ("crashed", "timeout", "missing")  # what a score says beside its points, gravest first


@dataclass(frozen=True)
class MisconceptionWords:
    """A misconception's sentence, with what gives the same numbers. The hint may be empty."""

    title: str
    hint: str


@dataclass(frozen=True)
class AttemptWords:
    """One attempt. The first broken check is shown with its evidence; the others that failed stand below."""

    passed: bool
    first: CheckResult | None  # None where all passed
    findings: tuple[MisconceptionWords, ...]
    hint: str  # the first broken check's own, where nothing is diagnosed
    rest: tuple[CheckResult, ...]

    @property
    def mark(self) -> str:
        """✓ or ✗."""
        return MARKS["passed" if self.passed else "failed"]


def attempt_words(result: ExerciseResult) -> AttemptWords:
    """What to say about an attempt."""
    failed = [c for c in result.checks if c.outcome != "passed"]
    if not failed:
        return AttemptWords(True, None, (), "", ())
    first, rest = failed[0], tuple(failed[1:])
    return AttemptWords(
        False, first, tuple(map(_finding, result.diagnosis)), "" if result.diagnosis else first.hint, rest
    )


def points(value: float) -> str:
    """4 for 4.0, 2.5 for 2.5."""
    return f"{value:g}"


def out_of(scored: CheckResult | ExerciseResult | Result) -> str:
    """2 / 6."""
    return f"{points(scored.score)} / {points(scored.max_score)}"


def score_note(result: ExerciseResult) -> Outcome | None:
    """The gravest thing that a score alone does not say."""
    outcomes = {c.outcome for c in result.checks}
    return next((outcome for outcome in NOTED if outcome in outcomes), None)


def _finding(diagnosed: Diagnosed) -> MisconceptionWords:
    same = f" (the same numbers come from: {', '.join(diagnosed.alternatives)})" if diagnosed.alternatives else ""
    return MisconceptionWords(diagnosed.title + same, diagnosed.hint)
