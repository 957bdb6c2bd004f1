"""A mutant as an edit of the reference: which text is replaced."""

import pytest

from manyheads.checks.edit import EditError, edit

LESSON = "# divide by / len(x)\n"
SOLUTION = "### BEGIN SOLUTION\ny = x / len(x)\n### END SOLUTION\n"


def test_a_text_that_the_lesson_has_too_is_replaced_in_the_solution() -> None:
    edited = edit("/ len(x)", "").apply(LESSON + SOLUTION)
    assert edited == LESSON + SOLUTION.replace(" / len(x)", " ")


def test_a_text_that_stands_once_is_replaced_wherever_it_is() -> None:
    assert edit("divide", "share").apply(LESSON + SOLUTION) == LESSON.replace("divide", "share") + SOLUTION


@pytest.mark.parametrize("source", [LESSON, LESSON * 2, SOLUTION * 2, LESSON + 2 * SOLUTION])
def test_a_text_that_stands_nowhere_or_in_several_places_is_refused(source: str) -> None:
    with pytest.raises(EditError, match="needs it exactly once"):
        edit("/ len(x)" if source != LESSON else "* len(x)", "").apply(source)
