"""At the real course: a NotImplementedError in what is written is no stub, and a misspelt name is told with the one meant."""

from __future__ import annotations

from manyheads.diagnosis.recording_file import read
from manyheads.student.check_attempt import check_source
from manyheads.submission import AttemptSource
from tests.grader.changes import NO_SEARCH
from tests.grader.test_where_code_stands import ABOVE, ATTEND, heads


def names(course, judge, box, source: AttemptSource, id_: str) -> list[list[str]]:
    """The misconceptions that are named at home and graded."""
    exercise = next(each for each in course.exercises if each.id == id_)
    at_home = check_source(read(exercise.fingerprints), source, box, course.limits.for_worker(), NO_SEARCH)
    return [[d.id for d in r.diagnosis] for r in (at_home, judge.grade_attempt("s", exercise, source))]


def test_a_case_that_is_left_open_is_told_and_is_no_stub(course, judge, box) -> None:
    solution = next(e for e in course.exercises if e.id == "kv_cache").solution.read_text(encoding="utf-8")
    at = solution.index("### BEGIN SOLUTION", solution.index("def forward("))
    left = 'if cache is not None:\n            y = x\n            raise NotImplementedError("TODO")\n        '
    source = AttemptSource("a.py", solution[:at] + left + solution[at:])
    for told in heads(course, judge, box, source, "kv_cache"):
        assert "the case that comes to this line is not written yet" in told[0]
    assert names(course, judge, box, source, "kv_cache") == [[], []]


def test_a_raise_that_is_left_below_the_code_is_told_with_its_line(course, judge, box) -> None:
    attend = "def attend(q, k, v):\n    weights = attention_weights(attention_scores(q, k))\n    raise NotImplementedError()\n"
    source = AttemptSource("a.py", ABOVE + attend)
    for told in heads(course, judge, box, source):
        assert "the stub's raise on line 7 still stands below code of yours: take that line out" in told[3]
    assert names(course, judge, box, source, "attention_scores") == [[], []]


def test_a_misspelt_method_is_told_with_the_one_that_is_meant(course, judge, box) -> None:
    source = AttemptSource("a.py", ABOVE.replace("k.mT", "k.trasnpose(-2, -1)") + ATTEND)
    for told in heads(course, judge, box, source):
        assert "Did you mean transpose, where it says trasnpose?" in told[1]
