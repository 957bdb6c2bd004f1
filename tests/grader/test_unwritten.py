"""At the real course: who has written nothing is told just that, by the grader and on the student's own machine."""

import ast

import pytest

from manyheads.course import Exercise, load_course
from tests.diagnosis.both_sides import Sides, names
from tests.make import REPOSITORY

EXERCISES = load_course(REPOSITORY).exercises


def emptied(exercise: Exercise, classes: bool) -> str:
    """The solution with a docstring in place of each body, of a class or of its methods."""
    tree = ast.parse(exercise.solution.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) or (classes and isinstance(node, ast.ClassDef)):
            node.body = ast.parse('"""Later."""').body
    return ast.unparse(tree)


@pytest.mark.parametrize("classes", [True, False], ids=["empty classes", "empty methods"])
@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)
def test_nothing_written_is_named_and_nothing_else_is(sides: Sides, exercise: Exercise, classes: bool) -> None:
    graded, checked = sides.told(exercise.id, emptied(exercise, classes))
    assert (graded.score, names(graded)) == (0, ["stub_untouched"])
    assert [(d.id, d.title) for d in checked.diagnosis] == [("stub_untouched", graded.diagnosis[0].title)]
    assert checked.diagnosis[0].hint


@pytest.mark.parametrize("text", ["", "# Later.\n"], ids=["an empty file", "a remark"])
def test_a_file_without_any_code_is_told_the_same(sides: Sides, text: str) -> None:
    assert [names(told) for told in sides.told(EXERCISES[0].id, text)] == [["stub_untouched"]] * 2
