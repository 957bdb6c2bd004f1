"""A judge and several students: equal texts are judged once, and results are independent."""

from functools import partial
from unittest.mock import Mock

import pytest

from manyheads.course import load_course
from manyheads.judge import attribution, grade_submission
from manyheads.judge.grade_submission import Judge, Settings
from manyheads.submission import Source
from tests.make import BY_SUMS as RIGHT

WRONG = "def running_mean(x):\n    return x.cumsum(0) / len(x)\n"


@pytest.fixture
def counted_box(box):
    """Return the box, wrapped so that the processes it starts are counted."""
    return Mock(wraps=box, level=box.level)


@pytest.fixture
def new_judge(tiny, counted_box):
    return partial(Judge, tiny, counted_box, Settings(secret=b"secret", lines=False))


def grade_texts(judge, exercise, *texts):
    """Return the results of several students, one text each."""
    return [
        judge.grade_attempt(f"student {i}", exercise, Source("a.py", text))
        for i, text in enumerate(texts)
    ]


def test_equal_texts_are_judged_once(new_judge, counted_box, running_mean):
    wrong, right, again = grade_texts(new_judge(), running_mean, WRONG, RIGHT, WRONG)
    assert wrong == again != right
    # a wrong attempt starts a second process, for the public calls
    assert counted_box.attempt.call_count == 3


def test_a_text_is_judged_again_for_another_seed(new_judge, counted_box, running_mean):
    judge = new_judge()
    for seed in (1, 2, 1):
        judge.grade_attempt("student", running_mean, Source("a.py", RIGHT), seed)
    assert counted_box.attempt.call_count == 2


def test_a_text_that_ended_its_process_is_judged_again(new_judge, counted_box, running_mean):
    judge, dies = new_judge(), "import os\nos._exit(3)\n"
    counts = []
    for _ in range(2):
        (result,) = grade_texts(judge, running_mean, dies)
        assert result.score == 0
        counts.append(counted_box.attempt.call_count)
    assert counts[1] == 2 * counts[0]


def test_a_result_does_not_depend_on_the_texts_before(new_judge, running_mean):
    texts = [RIGHT, WRONG, RIGHT + "# mine\n", WRONG.replace("len(x)", "2"), WRONG + "# mine\n"]
    alone = [grade_texts(new_judge(), running_mean, text)[0] for text in texts]
    assert grade_texts(new_judge(), running_mean, *texts) == alone
    assert grade_texts(new_judge(), running_mean, *texts[::-1]) == alone[::-1]
    assert len({result.score for result in alone}) > 1


def test_results_tell_missing_files_empty_files_and_notes_apart(new_judge, running_mean):
    judge = new_judge()
    for is_missing, outcome in ((True, "missing"), (False, "error")):
        result = judge.grade_attempt("s", running_mean, Source("a.py", missing=is_missing))
        assert {check.outcome for check in result.checks} == {outcome}
    for note in ("A notebook lies here, too.", ""):
        source = Source("a.py", RIGHT, note=note)
        assert judge.grade_attempt("s", running_mean, source).note == note


def test_the_total_size_of_all_caches_is_bounded(repository, box, monkeypatch):
    """Above the limit the largest cache is emptied; results stay the same."""
    course = load_course(repository)
    first, second = course.assignments[0].exercises[:2]
    texts = [exercise.solution.read_text(encoding="utf-8") for exercise in (first, second)]
    judge = Judge(course, box, Settings(secret=b"secret", lines=False))
    (result,) = grade_texts(judge, first, texts[0])
    cache_size = judge._caches[first.id, 0].size
    monkeypatch.setattr("manyheads.judge.grade_submission.MAX_CACHE_BYTES", 1)
    grade_texts(judge, second, texts[1])
    assert judge._caches[first.id, 0].size == 0 < cache_size
    assert grade_texts(judge, first, texts[0] + "# mine\n")[0].score == result.score


@pytest.mark.parametrize("step", ["ask_public_calls", "name_misconceptions", "attribute"])
def test_points_stay_if_a_step_of_the_explanation_fails(new_judge, running_mean, monkeypatch, step):
    (expected,) = grade_texts(new_judge(), running_mean, WRONG)
    module = attribution if step == "attribute" else grade_submission
    monkeypatch.setattr(module, step, Mock(side_effect=RuntimeError("a bug of ours")))
    judge = new_judge()
    (result,) = grade_texts(judge, running_mean, WRONG)
    assert (result.score, result.checks) == (expected.score, expected.checks)
    assert (bool(expected.diagnosis), bool(result.diagnosis)) == (True, False)
    (fault,) = judge.faults
    assert fault.endswith("RuntimeError: a bug of ours")
