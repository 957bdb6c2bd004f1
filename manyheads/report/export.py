"""Results in the formats of other systems."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from ..result import CheckResult, ExerciseResult, Result
from .adjustments import own, sentences, told
from .class_list import NOBODY, ClassList, absent_by_assignment
from .file_names import file_stems
from .gradebooks import to_canvas, to_moodle
from .labels import IDS, Labels
from .rows import not_graded
from .spreadsheet import number, number_or_blank, table
from .words import attempt_words

# JUnit's term for each outcome: a failure is a check's verdict, an error means that the attempt gave nothing to judge.
_JUNIT = {"passed": "", "skipped": "skipped", "error": "error", "timeout": "error", "crashed": "error"}


def to_csv(results: Sequence[Result], members: ClassList = NOBODY, labels: Labels = IDS) -> str:
    """CSV with a row for every student and exercise, assignment by assignment: ids for programs, titles for people."""
    header = ("student", "assignment", "exercise", "score", "max_score", "misconceptions", "isolation", "decided",
              "assignment_title", "exercise_title")  # fmt: skip
    rows, absent, nothing = [header], absent_by_assignment(results, members), number(0) if members.zero else ""
    for id_, own_results in labels.by_assignment(results):
        rows += [
            (
                *(r.student, id_, e.id),
                *(("", "") if e.excused else (number_or_blank(e.score), number(e.max_score))),
                *(" ".join(d.id for d in e.diagnosis), r.isolation),
                "; ".join(told(each) for each in (*r.adjustments, *own(e, r))),
                *(labels.assignment(id_), labels.exercise(e.id)),
            )
            for r in own_results
            for e in r.exercises
        ]
        rows += [
            (name, id_, e.id, nothing, number(e.max_score), "", "", "", labels.assignment(id_), labels.exercise(e.id))
            for name in absent.get(id_, ())
            for e in own_results[-1].exercises
        ]
    return table(rows)


def to_gradescope(results: Sequence[Result], members: ClassList = NOBODY, labels: Labels = IDS) -> str:
    """Gradescope's results.json of the only submission, or of each one by student and assignment.

    Gradescope reads one such file for each submission: see `gradescope_files`.
    """
    found = {f"{r.student}/{r.assignment}": gradescope_result(r, labels) for r in results}
    return _json(next(iter(found.values())) if len(found) == 1 else found)


def gradescope_files(results: Sequence[Result], labels: Labels = IDS) -> dict[Path, str]:
    """A results.json for every submission, by its path in a folder."""
    stem_of = file_stems({r.student for r in results})
    return {
        Path(stem_of(r.student), r.assignment, "results.json"): _json(gradescope_result(r, labels)) for r in results
    }


def to_junit(results: Sequence[Result], members: ClassList = NOBODY, labels: Labels = IDS) -> str:
    """JUnit XML: a test suite for every student and exercise, a test case for every check."""
    root = ET.Element("testsuites", name="course")
    for id_, own_results in labels.by_assignment(results):
        for result in own_results:
            for exercise in result.exercises:
                suite = _junit_suite(root, result, exercise)
                suite.set("name", f"{result.student}: {labels.assignment(id_)}: {labels.exercise(exercise.id)}")
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _junit_suite(root: ET.Element, result: Result, exercise: ExerciseResult) -> ET.Element:
    kinds = [_JUNIT.get(c.outcome, "failure") for c in exercise.checks]
    suite = ET.SubElement(
        root,
        "testsuite",
        tests=str(len(exercise.checks)),
        failures=str(kinds.count("failure")),
        errors=str(kinds.count("error")),
        skipped=str(kinds.count("skipped")),
    )
    if said := [told(each) for each in (*result.adjustments, *own(exercise, result))]:
        ET.SubElement(suite, "system-out").text = "\n".join(said)
    for check in exercise.checks:
        _junit_case(suite, result, exercise, check)
    return suite


class Format(Protocol):
    """Writes results as one text. members: the class, where a roster says who is in it. labels: what stands for ids."""

    def __call__(self, results: Sequence[Result], members: ClassList = NOBODY, labels: Labels = IDS, /) -> str: ...


FORMATS: dict[str, Format] = {
    "csv": to_csv,
    "gradescope": to_gradescope,
    "canvas": to_canvas,
    "moodle": to_moodle,
    "junit": to_junit,
}


TELLS_NOTHING = ("canvas", "moodle")  # formats without a place for words


def gradescope_result(result: Result, labels: Labels = IDS) -> dict[str, object]:
    """Gradescope's results.json of one submission, as a value.

    Of one that is not graded in part it has no score at all, neither its own nor a test's, of which Gradescope would make
    a total: then Gradescope says that the autograder failed, and enters no points.
    """
    numbered = labels.numbered([exercise.id for exercise in result.exercises])
    tests = [
        {
            "name": f"{labels.exercise(exercise.id)}: {check.title}",
            "name_format": "text",
            "number": f"{numbered[exercise.id][0].lstrip('0')}.{j}",
            "score": check.score,
            "max_score": check.max_score,
            "status": "passed" if check.outcome == "passed" else "failed",
            "output": "\n".join(text for text in (check.evidence, *_named(exercise, check)) if text),
            "output_format": "text",
        }
        for exercise in result.exercises
        for j, check in enumerate(exercise.checks, 1)
    ]
    said = [f"{labels.exercise(e.id)}: {e.note}" for e in result.exercises if e.note]
    said += [*sentences(result, labels), f"isolation: {result.isolation}"]
    if result.score is None:
        output = [*(f"not graded: {each}" for each in not_graded(result, labels)), *said]
        return {"output": "\n".join(output), "output_format": "text"}
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
