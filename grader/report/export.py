"""Results in other systems' formats. Pure: results in, text out."""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence

from ..result import CheckResult, ExerciseResult, Result

_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would run these


def to_csv(results: Sequence[Result]) -> str:
    """A row for every student and exercise."""
    rows = [
        (
            r.student,
            r.assignment,
            e.id,
            f"{e.score:g}",
            f"{e.max_score:g}",
            " ".join(d.id for d in e.diagnosis),
            r.isolation,
        )
        for r in results
        for e in r.exercises
    ]
    header = ("student", "assignment", "exercise", "score", "max_score", "misconceptions", "isolation")
    return _table([header, *rows])


def to_canvas(results: Sequence[Result]) -> str:
    """Canvas's gradebook import: a column for every assignment, a row of points possible, then a row a student."""
    assignments = list(dict.fromkeys(r.assignment for r in results))
    most = {r.assignment: r.max_score for r in results}
    scores = {(r.student, r.assignment): r.score for r in results}
    rows = [["Student", "ID", "SIS Login ID", "Section", *assignments]]
    rows.append(["    Points Possible", "", "", "", *(f"{most[a]:g}" for a in assignments)])
    for student in dict.fromkeys(r.student for r in results):
        cells = [f"{scores[student, a]:g}" if (student, a) in scores else "" for a in assignments]
        rows.append([student, "", student, "", *cells])
    return _table(rows)


def to_gradescope(results: Sequence[Result]) -> str:
    """Gradescope's results.json of each submission, by student and assignment."""
    found = {f"{r.student}/{r.assignment}": _gradescope(r) for r in results}
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def to_junit(results: Sequence[Result]) -> str:
    """JUnit XML: a test suite for every student and exercise, a test case for every check."""
    root = ET.Element("testsuites", name="course")
    for result in results:
        for exercise in result.exercises:
            failed = [c for c in exercise.checks if c.outcome not in ("passed", "skipped")]
            skipped = [c for c in exercise.checks if c.outcome == "skipped"]
            suite = ET.SubElement(
                root,
                "testsuite",
                name=f"{result.student}.{result.assignment}.{exercise.id}",
                tests=str(len(exercise.checks)),
                failures=str(len(failed)),
                skipped=str(len(skipped)),
                errors="0",
            )
            for check in exercise.checks:
                _junit_case(suite, result, exercise, check)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


FORMATS: dict[str, Callable[[Sequence[Result]], str]] = {
    "csv": to_csv,
    "gradescope": to_gradescope,
    "canvas": to_canvas,
    "junit": to_junit,
}


def _table(rows: Sequence[Sequence[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([[_cell(value) for value in row] for row in rows])
    return out.getvalue()


def _cell(value: str) -> str:
    """Never a formula: a student chose some of these texts."""
    return f"'{value}" if value.startswith(_FORMULA) else value


def _gradescope(result: Result) -> dict[str, object]:
    tests = [
        {
            "name": f"{exercise.id}: {check.title}",
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
    return {"score": result.score, "output": f"isolation: {result.isolation}", "output_format": "text", "tests": tests}


def _named(exercise: ExerciseResult, check: CheckResult) -> list[str]:
    if check.outcome == "passed":
        return []
    said = [f"{d.title} hint: {d.hint}" for d in exercise.diagnosis]
    return said or ([f"hint: {check.hint}"] if check.hint else [])


def _junit_case(suite: ET.Element, result: Result, exercise: ExerciseResult, check: CheckResult) -> None:
    case = ET.SubElement(suite, "testcase", classname=f"{result.assignment}.{exercise.id}", name=check.title)
    if check.outcome == "skipped":
        ET.SubElement(case, "skipped", message=check.evidence)
    elif check.outcome != "passed":
        failure = ET.SubElement(case, "failure", message=check.evidence, type=check.outcome)
        failure.text = "\n".join(_named(exercise, check))
