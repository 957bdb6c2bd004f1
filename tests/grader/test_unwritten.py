"""At the real course: who has written nothing is told just that, by the grader and on the student's own machine."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from manyheads.box.level import Box
from manyheads.course import Course, Exercise, load_course
from manyheads.diagnosis.recording_file import read
from manyheads.judge.grade_submission import Judge
from manyheads.student.run_attempt import check_source
from manyheads.submission import AttemptSource

EXERCISES = load_course(Path(__file__).parents[2]).exercises


def emptied(exercise: Exercise, classes: bool) -> AttemptSource:
    """The solution with a docstring in place of each body, of a class or of its methods."""
    tree = ast.parse(exercise.solution.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) or (classes and isinstance(node, ast.ClassDef)):
            node.body = ast.parse('"""Later."""').body
    return AttemptSource("attempt.py", ast.unparse(tree))


@pytest.mark.parametrize("classes", [True, False], ids=["empty classes", "empty methods"])
@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)
def test_nothing_written_is_named_and_nothing_else_is(judge, box, course, exercise, classes):
    source = emptied(exercise, classes)
    graded = judge.grade_attempt("somebody", exercise, source)
    assert (graded.score, [d.id for d in graded.diagnosis]) == (0, ["stub_untouched"])
    limits = course.limits.for_worker()
    checked = check_source(read(exercise.fingerprints), source, box, limits)
    assert [(d.id, d.title) for d in checked.diagnosis] == [("stub_untouched", graded.diagnosis[0].title)]
    assert checked.diagnosis[0].hint


@pytest.mark.parametrize("text", ["", "# Later.\n"], ids=["an empty file", "a remark"])
def test_a_file_without_any_code_is_told_the_same(judge: Judge, box: Box, course: Course, text: str) -> None:
    exercise, source = EXERCISES[0], AttemptSource("attempt.py", text)
    graded = judge.grade_attempt("somebody", exercise, source)
    checked = check_source(read(exercise.fingerprints), source, box, course.limits.for_worker())
    assert [[d.id for d in result.diagnosis] for result in (graded, checked)] == [["stub_untouched"]] * 2
