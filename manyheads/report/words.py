"""Choose what is reported about an attempt. Terminal, page and notebook render the same content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..result import CheckResult, ExerciseResult, Outcome, Result, total_of
from ..submission.unwritten import UNTOUCHED
from .functions import RIGHT, WRONG, FunctionReport, function_reports, waiting_checks

PROGRESS = "…"

OUTCOMES: dict[Outcome, str] = {
    "passed": "passed",
    "failed": "failed",
    "error": "raised an error",
    "timeout": "ran out of time",
    "crashed": "crashed",
    "skipped": "not run",
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


DECIDED, EXCUSED = "*", "ex"  # beside a score that a date or a human changed; in place of one that counts for nothing
NOT_GRADED = "?"  # in place of a score that there is not
_SAID_OF_NOT_GRADED = (
    "Not graded: the grader itself failed here. That is not your fault. Your instructor can have it graded again."
)


@dataclass(frozen=True)
class AttemptWords:
    """The report on one attempt, function by function.

    mark: ✓ where it is done, … where all that is written is right, ? where it is not graded, else ✗.
    functions: those of the file, in its order; without a name what is about the whole file.
    waiting: the failed checks that wait for what is not written, or for another function. passed: the others.
    total: how many points are seen here, where grading sees more.
    """

    mark: str
    passed: bool
    functions: tuple[FunctionReport, ...]
    waiting: tuple[CheckResult, ...]
    passed_checks: tuple[CheckResult, ...]
    hint: str  # to get started, where nothing is written
    total: str

    @property
    def first(self) -> FunctionReport | None:
        """The first that is wrong, None where there is none."""
        return next((each for each in self.functions if each.mark == WRONG), None)


def attempt_words(result: ExerciseResult) -> AttemptWords:
    """The report on an attempt."""
    if not result.is_graded:
        said = FunctionReport("", NOT_GRADED, said_of_not_graded(result))
        return AttemptWords(NOT_GRADED, False, (said,), (), (), "", "")
    functions = tuple(function_reports(result))
    wrong = any(each.mark == WRONG for each in functions)
    passed = tuple(check for check in result.checks if check.outcome == "passed")
    mark = RIGHT if result.is_done else WRONG if wrong or not functions else PROGRESS
    hint = next((d.hint for d in result.diagnosis if d.id == UNTOUCHED and not passed and not wrong), "")
    return AttemptWords(mark, result.is_done, functions, waiting_checks(result), passed, hint, _total(result))


def said_of_not_graded(result: ExerciseResult) -> str:
    """Return what a student reads in place of points."""
    if names := ", ".join(result.not_readable):
        return f"Not graded: what you handed in cannot be read: {names}. Next: hand in the file itself, or ask your instructor"
    return _SAID_OF_NOT_GRADED


def waiting_line(checks: Sequence[CheckResult]) -> str:
    """One line for the checks that wait."""
    return f"{counted(len(checks), 'check waits', 'checks wait')} for what is not right or written yet"


def counted(number: int, one: str, more: str) -> str:
    """1 check passes, 2 checks pass."""
    return f"{number} {one if number == 1 else more}"


def _total(result: ExerciseResult) -> str:
    if not result.unseen:
        return ""
    seen = f"{points(result.max_score - result.unseen)} of {points(result.max_score)} points are seen here"
    if not result.unseen_checks:
        return f"{seen}; {points(result.unseen)} only grading gives."
    return f"{seen}; {points(result.unseen)} is for what only grading sees: {'; '.join(result.unseen_checks)}."


def points(value: float) -> str:
    """4 for 4.0, 2.5 for 2.5."""
    return f"{value:g}"


def score_words(score: float | None) -> str:
    """2, or ? where it is not graded."""
    return NOT_GRADED if score is None else points(score)


def out_of(scored: CheckResult | ExerciseResult | Result) -> str:
    """2 / 6, or that it is not graded."""
    if isinstance(scored, Result):
        return out_of_all([scored])
    if isinstance(scored, CheckResult) and was_not_run(scored):
        return "not run"
    return "not graded" if scored.score is None else f"{points(scored.score)} / {points(scored.max_score)}"


def out_of_all(results: Sequence[Result]) -> str:
    """31 / 40, or how many exercises are not graded: then there is no total."""
    score = total_of(result.score for result in results)
    if score is not None:
        return f"{points(score)} / {points(sum(result.max_score for result in results))}"
    counting = [each for result in results for each in result.exercises if not each.excused]
    return f"not graded: {sum(not each.is_graded for each in counting)} of {len(counting)}"


def was_not_run(check: CheckResult) -> bool:
    """Whether the grader itself could not run this check, and nobody has given its points since."""
    return check.outcome == "skipped" and not check.score


def score_note(result: ExerciseResult) -> Outcome | None:
    """The gravest outcome to note beside a score; None if there is none."""
    outcomes = {c.outcome for c in result.checks}
    return next((outcome for outcome in NOTED if outcome in outcomes), None)
