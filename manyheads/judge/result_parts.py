"""Build the parts of a result: checks, functions and misconceptions, with their locations.

`attribution` has decided everything before. These functions choose the final texts, and replace
line numbers in a notebook by cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..checks.explain import LIMIT, sanitize
from ..checks.hidden_check import CheckOutcome
from ..course import Exercise
from ..diagnosis.fault_dictionary import FaultDictionary
from ..result import CheckResult, Diagnosed, ExerciseResult, FunctionResult, ProvedLine
from ..submission.source import (
    INTERFACE,
    UNTOUCHED,
    Source,
    in_cells,
    lines_of,
    location_of,
    where_it_is_written,
)
from .locate_misconceptions import LocatedMisconception
from .public_calls import public_outcome
from .public_findings import FunctionVerdict

DIGITS = 12  # the length of a file's digest in a result


def check_result(
    outcome: CheckOutcome, function: str, source: Source, evidence: str = ""
) -> CheckResult:
    """Return the result of a check, with the cells of a notebook in its evidence.

    Args:
        outcome: The outcome of the check.
        function: The function that it is attributed to, or "".
        source: The attempt's text.
        evidence: The evidence with the usual repair, or "" to show the outcome's evidence.
    """
    passed = outcome.outcome == "passed"
    # the message of an exception may take one LIMIT
    text = sanitize(evidence, 2 * LIMIT) or sanitize(outcome.evidence)
    return CheckResult(
        id=outcome.id,
        title=outcome.title,
        outcome=outcome.outcome,
        score=outcome.score,
        max_score=outcome.points,
        evidence=in_cells(text, source),
        hint="" if passed else outcome.hint,
        function=function,
    )


def function_result(verdict: FunctionVerdict, source: Source) -> FunctionResult:
    """Return the result of a function, with its location in the file if nothing else is known.

    If the file has only comments, an undefined function counts as unwritten.
    """
    state, evidence, near = verdict.state, verdict.evidence, verdict.near
    if source.name and state == "undefined":
        if location := location_of(source, verdict.name):
            evidence = f"{verdict.name} {location}"
        elif all(line.strip()[:1] in ("", "#") for line in lines_of(source.text)):
            state, near = "unwritten", ""
    elif source.name and state == "unwritten" and not evidence:
        evidence = where_it_is_written(source, verdict.name)
    return FunctionResult(
        name=verdict.name,
        state=state,
        waits_for=verdict.waits_for,
        check=verdict.check,
        evidence=in_cells(evidence, source),
        near=near,
    )


def diagnosed_result(
    misconception: LocatedMisconception,
    functions: Sequence[FunctionResult],
    exercise: Exercise | None,
) -> Diagnosed:
    """Return a misconception for the result.

    If nothing is written yet, the exercise's hint says how to start. If a function is undefined
    once the file has run, the hint says where the file has its name.
    """
    diagnosed = misconception.diagnosed
    title, hint = diagnosed.title, diagnosed.hint
    if misconception.id == UNTOUCHED and exercise is not None and exercise.hint:
        hint = exercise.hint
    undefined = {f.name: f.evidence for f in functions if f.state == "undefined" and f.evidence}
    if misconception.id == INTERFACE and misconception.function in undefined:
        title = f"{misconception.function} is not there once the file has run."
        hint = undefined[misconception.function]  # the usual hint is about a misspelt name
    return Diagnosed(
        id=misconception.id,
        title=title,
        hint=hint,
        alternatives=diagnosed.alternatives,
        alternative_titles=misconception.alternative_titles,
        function=misconception.function,
        also_in=misconception.also_in,
    )


@dataclass(frozen=True)
class ResultParts:
    """The parts of a result that exist in grading and on a student's machine."""

    functions: tuple[FunctionResult, ...] = ()
    diagnosis: tuple[Diagnosed, ...] = ()
    also: tuple[Diagnosed, ...] = ()
    lines: tuple[ProvedLine, ...] = ()


def graded_result(
    exercise: Exercise | None,
    source: Source,
    checks: tuple[CheckResult, ...],
    result_parts: ResultParts,
    note: str = "",
    answers: str = "",
) -> ExerciseResult:
    """Return the result of grading.

    If a check with points could not be run, the result has no points and no diagnosis.

    Args:
        exercise: The exercise.
        source: The attempt.
        checks: The results of all hidden checks.
        result_parts: The functions, the misconceptions and the proved lines.
        note: A message about parts of the file that did not run; "" if there are none.
        answers: A digest of the wrong replies, which attempts with the same mistake share.
    """
    assert exercise is not None
    score: float | None = sum(check.score for check in checks)
    if any(check.outcome == "skipped" and check.max_score for check in checks):
        score, result_parts, answers = None, ResultParts(), ""
    return ExerciseResult(
        id=exercise.id,
        score=score,
        max_score=sum(check.max_score for check in checks),
        checks=checks,
        diagnosis=result_parts.diagnosis,
        also=result_parts.also,
        answers=answers,
        lines=result_parts.lines,
        note=_note(source, note),
        functions=result_parts.functions,
        digest="" if source.missing else source.digest[:DIGITS],
    )


def home_result(
    exercise: Exercise | None,
    source: Source,
    dictionary: FaultDictionary,
    checks: tuple[CheckResult, ...],
    result_parts: ResultParts,
    note: str = "",
) -> ExerciseResult:
    """Return the result on a student's machine: visible checks, and all points of the exercise.

    A visible check that did not run because an earlier one failed is "skipped" and keeps its
    points.
    """
    checked_ids = {check.id for check in checks}
    not_run = [check for check in dictionary.visible if check.id not in checked_ids]
    skipped = [check_result(public_outcome(check, "skipped", ""), "", source) for check in not_run]
    all_checks = (*checks, *skipped)
    visible_ids = {check.id for check in all_checks}
    visible_points = sum(check.max_score for check in all_checks)
    points = sum(c.points for c in dictionary.checks) if exercise is None else exercise.points
    max_score = max(visible_points, points)
    diagnosed_ids = [diagnosed.id for diagnosed in result_parts.diagnosis]
    unseen_checks = [
        check.title
        for check in dictionary.checks
        if check.id not in visible_ids and not _certainly_fails(check.id, diagnosed_ids, dictionary)
    ]
    return ExerciseResult(
        id=dictionary.exercise,
        score=sum(check.score for check in all_checks),
        max_score=max_score,
        checks=all_checks,
        diagnosis=result_parts.diagnosis,
        also=result_parts.also,
        lines=result_parts.lines,
        note=_note(source, note),
        functions=result_parts.functions,
        unseen=round(max_score - visible_points, 9),
        unseen_checks=tuple(unseen_checks),
    )


def _note(source: Source, note: str) -> str:
    """Return the note on the source and this one, in one text."""
    return in_cells(" ".join(filter(None, (source.note, note))), source)


def _certainly_fails(check: str, ids: Sequence[str], dictionary: FaultDictionary) -> bool:
    """Return whether a diagnosed misconception certainly fails a hidden check.

    That is so if every mutant of the misconception fails it. The check's result is then no news to
    a student.
    """
    if check not in dictionary.hidden:
        return False
    column = dictionary.hidden.index(check)
    # `kills` has a string for each mutant, with a digit for each check: "0" if the mutant passes
    rows = list(zip(dictionary.mutants, dictionary.kills, strict=True))
    for id_ in ids:
        flags = {row[column] for mutant, row in rows if mutant.id == id_}
        if flags and "0" not in flags:
            return True
    return False
