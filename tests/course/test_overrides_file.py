"""overrides.yaml: what is right is read; what is wrong is one sentence with its line, and what to run next."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
import yaml

from manyheads.course import load_course
from manyheads.course.decisions import NAME, Decisions
from manyheads.errors import CourseFault
from manyheads.schemas import SCHEMAS

Decide = Callable[..., Decisions]
GOOD = "- {student: ada, exercise: mean, score: 4}\n"


@pytest.mark.parametrize(("row", "line", "says"), [
    pytest.param("student: ada, exercise: meen, score: 1", 3, "there is no exercise 'meen'; did you mean mean?", id="an exercise"),
    pytest.param("student: ada, assignment: average, excused: true", 3, "there is no assignment 'average'; did you mean averages?", id="an assignment"),
    pytest.param("student: ada, assignment: spread, exercise: mean, score: 1", 3, "there is no exercise 'mean'; there are: variance", id="of another assignment"),
    pytest.param("student: ada, excused: true", 3, "of which assignment? There are: averages, spread", id="no assignment"),
    pytest.param("student: ada, exercise: mean, score: 40", 3, "score 40 is more than the 4 points of mean. Next", id="too many points"),
    pytest.param("student: ada, exercise: mean, score: .nan", 3, "finite number", id="no number"),
    pytest.param("student: ada, exercise: mean, score: !!int ''", 3, "cannot be read as int", id="an empty int"),
    pytest.param("student: ada, exercise: mean", 3, "a row has one of score, due, excused; this one has none", id="nothing"),
    pytest.param("student: ada, exercise: mean, score: 1, excused: true", 3, "this one has score and excused", id="two decisions"),
    pytest.param("student: 007, exercise: mean, score: 1", 3, "student: Input should be a valid string (input: 7)", id="a number as a name"),
    pytest.param("student: ada, exercise: mean, due: 2026-12-03 18:00", 3, "due is of all exercises", id="an extension of one exercise"),
    pytest.param("student: ada, assignment: averages, due: 9999-12-31 23:58:20 -14:00", 3, "is no date and time of 1990 to 2100", id="the end of the calendar"),
    pytest.param("student: ada, assignment: spread, due: 2026-12-03 18:00", 3, "spread has no due date to extend", id="nothing to extend"),
    pytest.param("student: ada, exercise: mean, score: 3", 3, "a second score of the same; the first is in line 2", id="twice"),
    pytest.param("exercise: mean, score: 3", 3, "a row names a student", id="nobody"),
    pytest.param("answers: 3f2a, exercise: mean", 3, "a row with answers has an exercise and a comment", id="no comment"),
    pytest.param("student: ada, assignment: averages, score: 11", 3, "score 11 is more than the 10 points of averages", id="more than all"),
])  # fmt: skip
def test_what_is_wrong_is_one_sentence_with_its_line(decide: Decide, row: str, line: int, says: str) -> None:
    with pytest.raises(CourseFault) as raised:
        decide(f"# mine\n{GOOD}- {{{row}}}\n")
    said = str(raised.value)
    assert f"{NAME}:{line}: " in said
    assert says in said
    assert "Next: " in said
    assert "\n" not in said


def test_without_a_file_nothing_is_decided(course: Path) -> None:
    assert Decisions.of_course(load_course(course)).rows == ()


def test_an_unknown_student_is_named_with_the_line_and_what_may_be_meant(decide: Decide) -> None:
    known = decide("- {student: adda, exercise: mean, score: 4}\n")
    (said,) = known.of_nobody({"ada"}, {"averages"})
    assert ":1: there is no student 'adda' (is 'ada' meant?). Next: mend that line, or give --roster" in said
    assert known.of_nobody({"ada"}, {"spread"}) == []


def blocks(page: str) -> list[str]:
    """What is indented there, without its indent."""
    return [re.sub(r"(?m)^    ", "", each) for each in re.findall(r"(?m)(?:^    .*\n)+", page)]


def test_the_example_is_read_and_names_what_there_is(repository: Path, tmp_path: Path) -> None:
    _, dates, rows, *_ = blocks((repository / "docs" / "decisions.md").read_text(encoding="utf-8"))
    top, _, due = dates.partition("assignments:\n")
    text = (repository / "course.yaml").read_text(encoding="utf-8")
    line = "  - id: multi_head_attention\n"
    assert due.startswith(line)
    (tmp_path / "course.yaml").write_text(text.replace(line, due) + top, encoding="utf-8")
    (tmp_path / NAME).write_text(rows, encoding="utf-8")
    schema = json.loads(next(path for path in SCHEMAS if path.name == "overrides.schema.json").read_text("utf-8"))
    jsonschema.validate(yaml.safe_load(rows), schema)
    course = load_course(tmp_path)
    decisions = Decisions.of_course(course)
    assert [each.override.kind for each in decisions.rows] == ["due", "score", "excused", "score"]
    assert decisions.dates["multi_head_attention"].due.isoformat() == "2026-12-01T17:00:00+00:00"
