"""A file's own visible checks and its prints, as `course check` shows them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from manyheads.box.level import Box
from manyheads.course import Course, Exercise
from manyheads.diagnosis.edit_search import Bounds
from manyheads.diagnosis.recording_file import read
from manyheads.result import ExerciseResult, FunctionResult, State
from manyheads.student import own_checks
from manyheads.student.run_attempt import check_source
from manyheads.submission import AttemptSource
from tests.student.hidden import with_hidden

HEAD = """\
import torch


def running_mean(x):
    assert len(x)
    print("as many as", len(x))
    return x.cumsum(0) / torch.arange(1, len(x) + 1, dtype=x.dtype)


"""
FAILS = """\
if __name__ == "__main__":
    assert running_mean(torch.ones(3)).sum() == 4, "three ones have the mean 1, three times"
    print("running_mean: so far")
"""
STOPS = """\
if __name__ == "__main__":
    a_name_of_nothing
"""
Check = Callable[[str], ExerciseResult]


@pytest.fixture
def check(tiny: Course, running_mean: Exercise, box: Box) -> Check:
    fingerprints, limits = read(running_mean.fingerprints), tiny.limits.for_worker()
    return lambda text: check_source(
        fingerprints, AttemptSource("01_running_mean.py", text), box, limits, Bounds(seconds=0.0)
    )


@pytest.mark.parametrize(
    ("hidden", "state"),
    [
        pytest.param("", "right", id="where visible checks see all, a right attempt may fail it"),
        pytest.param("gradients", "wrong", id="where grading asks more, it may have seen that"),
    ],
)
def test_what_a_block_says_is_told_of_its_function_and_costs_no_point(
    tiny: Course, running_mean: Exercise, box: Box, hidden: str, state: str
) -> None:
    source = AttemptSource("01_running_mean.py", HEAD + STOPS + FAILS)
    fingerprints, limits = with_hidden(read(running_mean.fingerprints), hidden), tiny.limits.for_worker()
    result = check_source(fingerprints, source, box, limits, Bounds(seconds=0.0))
    assert (result.score, result.is_done) == (4 - result.unseen, state == "right")
    assert [(f.state, f.own_check) for f in result.functions] == [
        (state, "the file's own check on line 13 says: three ones have the mean 1, three times")
    ]


ABOUT = (
    "def f(x):\n    return x\n\n\ndef g(x):\n    return f(x)\n\n\ndef h(x):\n    return x\n\n\n"
    'if __name__ == "__main__":\n    assert g(1) == 1\n    assert h(1) == 1\n'
)


@pytest.mark.parametrize(
    ("text", "states", "about"),
    [
        pytest.param(ABOUT, ("right", "right", "right"), "h", id="the last of them"),
        pytest.param(ABOUT, ("right", "wrong", "right"), "g", id="one that is wrong"),
        pytest.param(ABOUT, ("wrong", "right", "right"), "", id="not one that uses a wrong one"),
        pytest.param(ABOUT, ("right", "unwritten", "right"), "", id="not one beside what is not written"),
        pytest.param(ABOUT.replace("assert g", "# "), ("wrong", "right", "right"), "h", id="a wrong one elsewhere"),
    ],
)
def test_a_right_function_is_not_blamed_for_another(text: str, states: tuple[State, ...], about: str) -> None:
    functions = [FunctionResult(name=name, state=state) for name, state in zip("fgh", states, strict=True)]
    definitions, (block,) = own_checks._parts(text)
    assert own_checks._about(block, definitions, functions, text) == about


def test_what_was_told_of_a_function_is_not_told_of_one_that_uses_it() -> None:
    functions = [FunctionResult(name="f", state="right", own_check="f"), FunctionResult(name="g", state="right")]
    definitions, (block,) = own_checks._parts(ABOUT)
    assert own_checks._about(block, definitions, functions, ABOUT) == ""


def test_a_notebook_s_line_is_told_by_its_cell(tiny: Course, running_mean: Exercise, box: Box) -> None:
    source = AttemptSource("01_running_mean.ipynb", HEAD + FAILS, cells=(1, HEAD.count("\n") + 1))
    fingerprints, limits = read(running_mean.fingerprints), tiny.limits.for_worker()
    (told,) = check_source(fingerprints, source, box, limits, Bounds(seconds=0.0)).functions
    assert told.own_check.startswith("the notebook's own check on line 2 of code cell 2 says: three ones")


def test_a_form_feed_ends_no_line(check: Check) -> None:
    (told,) = check("# one page\x0canother\x0cand more\u2028of it\n" + HEAD + FAILS).functions
    assert told.own_check.startswith("the file's own check on line 12 says: three ones")


def test_what_the_code_prints_is_shown_and_what_the_checks_print_is_not(check: Check) -> None:
    passes = FAILS.replace("== 4", "== 3")
    assert check(HEAD + passes).printed == ("as many as 3",)
    assert check(HEAD + 'print("at the top")\n').printed == ()  # without a block nothing is run again


def test_the_answer_to_a_prediction_is_for_who_runs_the_file(check: Check) -> None:
    guessed = """\
if __name__ == "__main__":
    try:
        last = running_mean(torch.ones(3))[-1]
    except NotImplementedError:
        print("it waits")
    else:
        print("the last is", last)
"""
    assert check(HEAD + guessed + FAILS).printed == ("as many as 3",)
    assert check(HEAD + guessed.replace("NotImplementedError", "KeyError")).printed[-1].startswith("the last is")


def test_what_a_check_of_the_course_says_is_not_the_students(check: Check) -> None:
    told = 'if __name__ == "__main__":\n    print(f"of {running_mean(torch.ones(3))} the last")\n    print("fits")\n'
    assert check(HEAD + told).printed == ("as many as 3",)


@pytest.mark.parametrize(
    ("printed", "text", "is_own"),
    [
        (("fits",), "fits", True),
        (("fits",), "fits well", False),
        (("of ", " the last"), "of 3 the last", True),
        (("of ", " the last"), "of 3 the last but one", False),
        (("a", "b", "c"), "a1b2c", True),
        (("a", "b", "c"), "a1c2b", False),
        (("ab", "bc"), "abc", False),  # no number of letters serves twice
        (("", *["a"] * 40, "b"), "a" * 4000, False),  # and this takes no time
    ],
)
def test_a_text_is_a_checks_own_where_its_parts_stand_in_order(
    printed: own_checks.Printed, text: str, is_own: bool
) -> None:
    assert (own_checks.printed_lines(text, own=[printed]) == ()) is is_own


def test_many_lines_are_cut(check: Check) -> None:
    many = 'if __name__ == "__main__":\n    for i in range(500):\n        print("line", i)\n'
    assert check(HEAD + many).printed[:: own_checks.LINES] == ("line 0", "… and more")


def test_a_tensor_is_shown_row_by_row_as_often_as_it_has_them_and_once_however_often_it_is_printed() -> None:
    zeros = f"at {torch.zeros(4, 2)}\n"
    rows = ("at tensor([[0., 0.],", *["        [0., 0.],"] * 2, "        [0., 0.]])")
    assert own_checks.printed_lines(zeros * 3 + "done\n", own=[("done",)]) == rows


def test_nothing_is_said_of_a_block_that_does_not_end(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_checks, "SECONDS", 0.2)
    result = check(f'{HEAD}if __name__ == "__main__":\n    while True:\n        pass\n')
    assert (result.is_done, result.printed, result.functions[0].own_check) == (True, (), "")
