"""Internal: it compares what `check` returns with the lines that a stub hides.

Reports on an attempt contain no line of the solution and no row of expected numbers, whatever the
attempt is.
"""

import re
import shutil
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from manyheads.authoring.make_stub import Lines, _normalised_text, hidden_lines
from manyheads.box.connection import Box
from manyheads.box.without_namespaces import open_own_box
from manyheads.checks.runner import LocalRecordingRunner, namespace_of
from manyheads.cli.student import result_with_hint
from manyheads.course import Course, Exercise, load_course
from manyheads.diagnosis.recording_file import read
from manyheads.report.report_content import without_ids
from manyheads.student.check_and_keep_result import Checks, read_own_attempt
from manyheads.student.choose_example_calls import examples
from manyheads.student.hints import next_hint
from manyheads.student.trace import explain_example, follow
from tests.make import REPOSITORY

DECIMAL_NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]\d+)?")


@cache
def course_and_hidden_lines() -> tuple[Course, Lines]:
    """Return the course with its solutions, and the lines that students may not see."""
    course = load_course(REPOSITORY)
    return course, hidden_lines(course)


@cache
def expected_number_pairs(exercise: Exercise) -> frozenset[tuple[str, str]]:
    """Return all pairs of adjacent numbers in the outputs of the reference for the recorded calls,
    as text with three digits.
    """
    pairs: set[tuple[str, str]] = set()
    runner = LocalRecordingRunner(namespace_of(exercise.solution))
    for call in read(exercise.fingerprints).calls:
        for output in runner.execute(call).outputs:
            if output.tensor is not None and output.tensor.is_floating_point():
                numbers = [f"{number:.3g}" for number in output.tensor.flatten().tolist()]
                pairs.update(pairwise(numbers))
    return frozenset((a, b) for a, b in pairs if "." in a and "." in b)


def strings_in(report: object) -> Iterator[str]:
    """Yield every string in a report, which is nested dictionaries and lists."""
    if isinstance(report, str):
        yield report
    elif isinstance(report, dict | list):
        for inner in report.values() if isinstance(report, dict) else report:
            yield from strings_in(inner)


def given_away(exercise: Exercise, source: str, report: object) -> set[str]:
    """Return the lines of the solution and the pairs of expected numbers in a report.

    Text that is also in the source of the attempt does not count.
    """
    _, hidden = course_and_hidden_lines()
    texts = list(strings_in(report))
    normalised_report = _normalised_text("\n".join(texts))
    normalised_source = _normalised_text(source)
    lines = {
        line
        for normalised_line, (line, _) in hidden.items()
        if normalised_line in normalised_report and normalised_line not in normalised_source
    }
    pairs: set[tuple[str, str]] = set()
    for text in texts:
        if text not in source:
            numbers = [f"{float(number):.3g}" for number in DECIMAL_NUMBER.findall(text)]
            pairs.update(pairwise(numbers))
    return lines | {" ".join(pair) for pair in pairs & expected_number_pairs(exercise)}


def with_solution(exercise: Exercise) -> Exercise:
    """Return the same exercise of the course with solutions."""
    return next(e for e in course_and_hidden_lines()[0].exercises if e.id == exercise.id)


def student_report(course: Course, exercise: Exercise, box: Box) -> list[Any]:
    """Return what `course check --json`, `course hint` and `course trace` say about an attempt.

    It is the saved attempt at this exercise. The third hint is left out: it may nearly give the
    answer.
    """
    attempt = read_own_attempt(course, exercise)
    result = result_with_hint(Checks(course, box), attempt)
    assert result is not None
    # course check --json
    report: list[Any] = [without_ids(result).model_dump(mode="json")]
    # course hint, three times
    hints = [next_hint(attempt, result) for _ in range(3)]
    report += [
        [hint.title, hint.sentence] for hint in hints if not hint.sentence.startswith("Hint 3")
    ]
    # course trace
    example_calls = examples(exercise, read(exercise.fingerprints))
    trace = follow(box, course.limits.for_worker(), attempt.source, example_calls)
    for example, traced in trace.traced_examples:
        call = explain_example(example, traced, attempt.source)
        codes = [getattr(entry, "code", "") for entry in call.entries]
        report.append([call.returned, call.raised, *codes])
    return report


def leaks_of_attempts(
    course: Course, exercise: Exercise, paths: list[Path], box: Box
) -> dict[str, set[str]]:
    """Return what the reports on these attempts give away, by exercise and file."""
    leaks: dict[str, set[str]] = {}
    for path in paths:
        source = path.read_text(encoding="utf-8")
        exercise.script.write_text(source, encoding="utf-8")
        report = student_report(course, exercise, box)
        if leak := given_away(with_solution(exercise), source, report):
            leaks[f"{exercise.id}/{path.name}"] = leak
    return leaks


@pytest.fixture
def class_copy(tmp_path: Path) -> Course:
    """Return a student's copy of the real course, without solutions."""
    shutil.copytree(REPOSITORY / "exercises", tmp_path / "class" / "exercises")
    shutil.copy(REPOSITORY / "course.yaml", tmp_path / "class")
    return load_course(tmp_path / "class")


def test_given_away_detects_solution_lines_and_rows_of_expected_numbers():
    course, hidden = course_and_hidden_lines()
    exercise = course.exercises[0]
    line = next(line for line, _ in hidden.values() if len(line) > 40)
    row = " ".join(next(iter(expected_number_pairs(exercise))))
    for leak in (line, f"expected [{row}]"):
        assert given_away(exercise, "", {"exercises": [{"evidence": leak}]})
    # a line that the student wrote is no leak
    assert not given_away(exercise, line, {"exercises": [{"code": line}]})


def test_reports_on_a_sample_of_wrong_attempts_reveal_no_solution(class_copy):
    with open_own_box(meta=True) as box:
        for exercise in (class_copy.exercises[0], class_copy.exercises[3]):
            paths = with_solution(exercise).wrong_attempts()[:2]
            assert leaks_of_attempts(class_copy, exercise, paths, box) == {}


@pytest.mark.soak
@pytest.mark.journey
@pytest.mark.timeout(1200)
def test_reports_on_all_wrong_attempts_reveal_no_solution(class_copy):
    with open_own_box(meta=True) as box:
        for exercise in class_copy.exercises:
            paths = with_solution(exercise).wrong_attempts()
            assert leaks_of_attempts(class_copy, exercise, paths, box) == {}
