"""overrides.yaml: what is right is read; what is wrong is one sentence with its line, and what to run next."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.course.decisions import NAME, Decisions
from manyheads.errors import CourseFault

Decide = Callable[..., Decisions]
GOOD = "- {student: ada, exercise: mean, score: 4}\n"


@pytest.mark.parametrize(
    ("row", "line", "says"),
    [
        pytest.param("student: ada, exercise: meen, score: 1", 3, "there is no exercise 'meen'; did you mean mean?", id="an exercise"),
        pytest.param("student: ada, assignment: average, excused: true", 3, "there is no assignment 'average'; did you mean averages?", id="an assignment"),
        pytest.param("student: ada, assignment: spread, exercise: mean, score: 1", 3, "there is no exercise 'mean'; there are: variance", id="of another assignment"),
        pytest.param("student: ada, excused: true", 3, "of which assignment? There are: averages, spread", id="no assignment"),
        pytest.param("student: ada, exercise: mean, score: 40", 3, "score 40 is more than the 4 points of mean. Next", id="too many points"),
        pytest.param("student: ada, exercise: mean, score: -1", 3, "at least 0", id="fewer than none"),
        pytest.param("student: ada, exercise: mean, score: .nan", 3, "finite number", id="no number"),
        pytest.param("student: ada, exercise: mean, score: four", 3, "is no number", id="a word"),
        pytest.param("student: ada, exercise: mean, scores: 4", 3, "is no key that is known here", id="a wrong key"),
        pytest.param("student: ada, exercise: mean", 3, "nothing is decided; a row has one of score, due, excused", id="nothing"),
        pytest.param("student: ada, exercise: mean, score: 1, excused: true", 3, "score and excused are two decisions", id="two decisions"),
        pytest.param("exercise: mean, score: 1", 3, "student: is missing, and has to be there", id="nobody's"),
        pytest.param("student: 007, exercise: mean, score: 1", 3, "YAML reads this as 7: put it in quotes", id="a number as a name"),
        pytest.param("student: no, exercise: mean, score: 1", 3, "YAML reads this as False: put it in quotes", id="no as a name"),
        pytest.param("student: '', exercise: mean, score: 1", 3, "student: is empty", id="an empty name"),
        pytest.param("student: ada, score: 1", 3, "of which assignment?", id="a score of nothing"),
        pytest.param("student: ada, exercise: mean, due: 2026-12-03 18:00", 3, "due is of all exercises", id="an extension of one exercise"),
        pytest.param("student: ada, assignment: averages, due: tomorrow", 3, "'tomorrow' is no date and time such as 2026-12-01 18:00", id="no date"),
        pytest.param("student: ada, assignment: averages, due: 2026-12-03", 3, "2026-12-03 has no time of day", id="no time of day"),
        pytest.param("student: ada, assignment: spread, due: 2026-12-03 18:00", 3, "spread has no due date to extend", id="nothing to extend"),
        pytest.param("student: ada, exercise: mean, score: 3", 3, "a second score of the same; the first is in line 2", id="twice"),
        pytest.param("student: ada, assignment: averages, score: 11", 3, "score 11 is more than the 10 points of averages", id="more than all"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_sentence_with_its_line(decide: Decide, row: str, line: int, says: str) -> None:
    with pytest.raises(CourseFault) as raised:
        decide(f"# mine\n{GOOD}- {{{row}}}\n")
    said = str(raised.value)
    assert f"{NAME}:{line}: " in said
    assert says in said
    assert "Next: " in said
    assert "\n" not in said


@pytest.mark.parametrize("text", ["- [", "ada: 4\n", "\xff", "- 7\n", "- {due: 2026-13-45}", "- &a [*a]"])
def test_what_is_no_list_of_rows_is_one_sentence(decide: Decide, text: str) -> None:
    with pytest.raises(CourseFault, match=r"Next: "):
        decide(text)


def test_without_a_file_nothing_is_decided(course: Path) -> None:
    pass


def test_an_unknown_student_is_named_with_the_line_and_what_may_be_meant(decide: Decide) -> None:
    known = decide("- {student: adda, exercise: mean, score: 4}\n")
    (said,) = known.of_nobody({"ada"}, {"averages"})
    assert ":1: there is no student 'adda' (is 'ada' meant?). Next: mend that line, or give --roster" in said
    assert known.of_nobody({"ada"}, {"spread"}) == []
