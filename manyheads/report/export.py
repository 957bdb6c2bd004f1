"""Results in the formats of other systems."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from ..result import CheckResult, ExerciseResult, Result
from .adjustments import own, sentences, told
from .class_list import NOBODY, ClassList, absent_by_assignment
from .gradebooks import to_canvas, to_moodle
from .spreadsheet import number, table
from .words import attempt_words

# JUnit's term for each outcome: a failure is a check's verdict, an error means that the attempt gave nothing to judge.
_JUNIT = {"passed": "", "skipped": "skipped", "error": "error", "timeout": "error", "crashed": "error"}


def to_csv(results: Sequence[Result], members: ClassList = NOBODY) -> str:
    """CSV with a row for every student and exercise."""
    header = ("student", "assignment", "exercise", "score", "max_score", "misconceptions", "isolation", "decided")
    rows = [
        (
            r.student,
            r.assignment,
            e.id,
            "" if e.excused else number(e.score),
            "" if e.excused else number(e.max_score),
            " ".join(d.id for d in e.diagnosis),
            r.isolation,
            "; ".join(told(each) for each in (*r.adjustments, *own(e, r))),
        )
        for r in results
        for e in r.exercises
    ]
    exercises = {r.assignment: r.exercises for r in results}
    nothing = number(0) if members.zero else ""
    for assignment, names in absent_by_assignment(results, members).items():
        rows += [
            (n, assignment, e.id, nothing, number(e.max_score), "", "", "")
            for n in names
            for e in exercises[assignment]
        ]
    return table([header, *rows])


def to_gradescope(results: Sequence[Result], members: ClassList = NOBODY) -> str:
    """Gradescope's results.json of the only submission, or of each one by student and assignment.

    Gradescope reads one such file for each submission: see `gradescope_files`.
    """
    found = {f"{r.student}/{r.assignment}": gradescope_result(r) for r in results}
    return _json(next(iter(found.values())) if len(found) == 1 else found)


def gradescope_files(results: Sequence[Result]) -> dict[Path, str]:
    """A results.json for every submission, by its path in a folder."""
    return {Path(r.student, r.assignment, "results.json"): _json(gradescope_result(r)) for r in results}


def to_junit(results: Sequence[Result], members: ClassList = NOBODY) -> str:
    """JUnit XML: a test suite for every student and exercise, a test case for every check."""
    root = ET.Element("testsuites", name="course")
    for result in results:
        for exercise in result.exercises:
            kinds = [_JUNIT.get(c.outcome, "failure") for c in exercise.checks]
            suite = ET.SubElement(
                root,
                "testsuite",
                name=f"{result.student}.{result.assignment}.{exercise.id}",
                tests=str(len(exercise.checks)),
                failures=str(kinds.count("failure")),
                errors=str(kinds.count("error")),
                skipped=str(kinds.count("skipped")),
            )
            if said := [told(each) for each in (*result.adjustments, *own(exercise, result))]:
                ET.SubElement(suite, "system-out").text = "\n".join(said)
            for check in exercise.checks:
                _junit_case(suite, result, exercise, check)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


class Format(Protocol):
    """Writes results as one text. members: the class, where a roster says who is in it."""

    def __call__(self, results: Sequence[Result], members: ClassList = NOBODY, /) -> str: ...


FORMATS: dict[str, Format] = {
    "csv": to_csv,
    "gradescope": to_gradescope,
    "canvas": to_canvas,
    "moodle": to_moodle,
    "junit": to_junit,
}


TELLS_NOTHING = ("canvas", "moodle")  # formats without a place for words


def gradescope_result(result: Result, titles: Mapping[str, str] | None = None) -> dict[str, object]:
    """Gradescope's results.json of one submission, as a value. titles: of the exercises, by their ids."""
    named = titles or {}
    tests = [
        {
            "name": f"{named.get(exercise.id, exercise.id)}: {check.title}",
            "name_format": "text",
            "number": f"{i}.{j}",
            "score": check.score,
            "max_score": check.max_score,
            "status": "passed" if check.outcome == "passed" else "failed",
            "output": "\n".join(text for text in (check.evidence, *_named(exercise, check)) if text),
            "output_format": "text",
        }
        for i, exercise in enumerate(result.exercises, 1)
        for j, check in enumerate(exercise.checks, 1)
    ]
    said = [f"{named.get(e.id, e.id)}: {e.note}" for e in result.exercises if e.note]
    said += [*sentences(result), f"isolation: {result.isolation}"]
    return {"score": result.scaled_score, "output": "\n".join(said), "output_format": "text", "tests": tests}


def _named(exercise: ExerciseResult, check: CheckResult) -> list[str]:
    if check.outcome == "passed":
        return []
    about = next((f for f in attempt_words(exercise).functions if check in f.failed), None)
    if about is None:
        return []
    return [*filter(None, [about.says, about.also]), *([f"hint: {about.hint}"] if about.hint else [])]


def _junit_case(suite: ET.Element, result: Result, exercise: ExerciseResult, check: CheckResult) -> None:
    case = ET.SubElement(suite, "testcase", classname=f"{result.assignment}.{exercise.id}", name=check.title)
    kind = _JUNIT.get(check.outcome, "failure")
    if kind:
        problem = ET.SubElement(case, kind, message=check.evidence)
        if kind != "skipped":
            problem.set("type", check.outcome)
            problem.text = "\n".join(_named(exercise, check))


def _json(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"
