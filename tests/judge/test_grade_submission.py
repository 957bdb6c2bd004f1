"""A judge and its students: what two of them handed in word for word is judged once."""

from unittest.mock import Mock

import pytest

from manyheads.box.connection import Box
from manyheads.course import Course, Exercise, load_course
from manyheads.judge import attribution, grade_submission
from manyheads.judge.grade_submission import Judge, Settings
from manyheads.result import ExerciseResult
from manyheads.submission import Source
from tests.make import BY_SUMS as RIGHT

NAME = "01_running_mean.py"
WRONG = "def running_mean(x):\n    return x.cumsum(0) / len(x)\n"


@pytest.fixture
def judge_and_box(tiny: Course, box: Box) -> tuple[Judge, Mock]:
    counted = Mock(wraps=box, level=box.level)
    return Judge(tiny, counted, Settings(secret=b"secret", lines=False)), counted


def grade_texts(judge: Judge, exercise: Exercise, *texts: str) -> list[ExerciseResult]:
    return [
        judge.grade_attempt(f"student {i}", exercise, Source(NAME, text))
        for i, text in enumerate(texts)
    ]


def test_the_same_text_is_judged_once_and_has_the_same_result(
    judge_and_box, running_mean: Exercise
) -> None:
    judge, box = judge_and_box
    wrong_result, right_result, again = grade_texts(judge, running_mean, WRONG, RIGHT, WRONG)
    assert wrong_result == again != right_result
    # what is wrong is asked the public calls in a process of its own
    assert box.attempt.call_count == 3


def test_a_text_gets_the_result_that_it_gets_alone_whoever_came_before(tiny, box, running_mean):
    texts = [RIGHT, WRONG, RIGHT + "# mine\n", WRONG.replace("len(x)", "2"), WRONG + "# mine\n"]
    alone = [
        grade_texts(Judge(tiny, box, Settings(secret=b"secret")), running_mean, text)[0]
        for text in texts
    ]
    assert grade_texts(Judge(tiny, box, Settings(secret=b"secret")), running_mean, *texts) == alone
    assert (
        grade_texts(Judge(tiny, box, Settings(secret=b"secret")), running_mean, *texts[::-1])
        == alone[::-1]
    )
    assert len({result.score for result in alone}) > 1


def test_who_dies_is_given_another_chance_with_the_next_student(
    judge_and_box, running_mean: Exercise
) -> None:
    judge, box = judge_and_box
    dies = "import os\nos._exit(3)\n"
    assert [result.score for result in grade_texts(judge, running_mean, dies)] == [0]
    once = box.attempt.call_count
    assert [result.score for result in grade_texts(judge, running_mean, dies)] == [0]
    assert box.attempt.call_count == 2 * once


def test_another_seed_is_another_question(judge_and_box, running_mean: Exercise) -> None:
    judge, box = judge_and_box
    for seed in (1, 2, 1):
        judge.grade_attempt("student", running_mean, Source(NAME, RIGHT), seed)
    assert box.attempt.call_count == 2


def test_an_empty_file_is_no_missing_one(judge_and_box, running_mean: Exercise) -> None:
    judge, _ = judge_and_box
    for missing, outcome in ((True, "missing"), (False, "error")):
        result = judge.grade_attempt("s", running_mean, Source(NAME, missing=missing))
        assert {check.outcome for check in result.checks} == {outcome}


def test_a_note_on_a_students_own_folder_stays_that_students(
    judge_and_box, running_mean: Exercise
) -> None:
    judge, _ = judge_and_box
    sources = [Source(NAME, RIGHT, note=note) for note in ("A notebook lies here, too.", "")]
    assert [judge.grade_attempt("s", running_mean, source).note for source in sources] == [
        "A notebook lies here, too.",
        "",
    ]


def test_all_exercises_together_are_remembered_up_to_a_limit(repository, box, monkeypatch):
    """Beyond it the exercise of which most is remembered is forgotten, and the results stay what
    they are.
    """
    course = load_course(repository)
    first, second = course.assignments[0].exercises[:2]
    first_attempt, second_attempt = (
        Source(f"{e.stem}.py", e.solution.read_text(encoding="utf-8")) for e in (first, second)
    )
    judge = Judge(course, box, Settings(secret=b"secret", lines=False))
    result = judge.grade_attempt("s", first, first_attempt)
    memory_size = judge._caches[first.id, 0].size
    monkeypatch.setattr("manyheads.judge.grade_submission.MAX_CACHE_BYTES", 1)
    judge.grade_attempt("s", second, second_attempt)
    assert judge._caches[first.id, 0].size == 0 < memory_size
    again = judge.grade_attempt("t", first, Source("a.py", first_attempt.text + "# mine\n"))
    assert again.score == result.score


@pytest.mark.parametrize("step", ["ask_public_calls", "name_misconceptions", "attribute"])
def test_points_stay_if_a_step_of_the_explanation_fails(
    tiny: Course, box: Box, running_mean: Exercise, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a bug of ours")

    expected = grade_texts(Judge(tiny, box, Settings(b"secret", lines=False)), running_mean, WRONG)[
        0
    ]
    module = attribution if step == "attribute" else grade_submission
    monkeypatch.setattr(module, step, fail)
    judge = Judge(tiny, box, Settings(b"secret", lines=False))
    result = grade_texts(judge, running_mean, WRONG)[0]
    assert (result.score, result.checks) == (expected.score, expected.checks)
    assert expected.diagnosis
    assert not result.diagnosis
    assert [fault.endswith("RuntimeError: a bug of ours") for fault in judge.faults] == [True]
