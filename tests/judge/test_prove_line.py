"""A line is proved to be the mistake if one small edit of it makes the attempt right in the box."""

from unittest.mock import Mock

import pytest

from manyheads.judge.edit_search import Bounds
from manyheads.judge.grade_submission import Judge, Settings
from manyheads.result import ProvedLine
from manyheads.submission import Source
from tests.make import cases, edit_text

RIGHT = """\
import torch


def running_mean(x):
    if x.numel() == 0:
        raise ValueError("no numbers")
    counts = torch.arange(1, len(x) + 1, dtype=x.dtype)
    return x.cumsum(0) / counts
"""
WRONG = RIGHT.replace("arange(1,", "arange(0,")
TWO_LINES = "counts = → a = 0\n    counts =; arange(1, → arange(a + 0,"
PATIENT = Bounds(seconds=60.0)  # a busy machine finds as much


def judge_with(course, box, **settings):
    """Return a judge with these settings, by default with enough time for a search."""
    return Judge(course, box, Settings(b"secret", **{"bounds": PATIENT, **settings}))


@pytest.fixture(scope="module")
def searching_judge(tiny, box):
    return judge_with(tiny, box)


@pytest.fixture
def grade_with_search(searching_judge, running_mean):
    """Return a function that grades a text, by default with a judge that searches for edits."""

    def grade(text, judge=searching_judge, **fields):
        return judge.grade_attempt(
            "ada", running_mean, Source("01_running_mean.py", text, **fields)
        )

    return grade


@cases(
    "edits, lines",
    {
        "nothing is wrong": ("", []),
        "a number": ("arange(1, → arange(0,", [7]),
        "an operator": ("cumsum(0) / → cumsum(0) *", [8]),
        "a call that cuts the gradient": ("cumsum(0) → cumsum(0).detach()", [8]),
        "a return that is missing": ("return x.cumsum → x.cumsum", [8]),
        "a comparison that refuses what is allowed": ("== 0 → != 0", [5]),
        "an axis that is not there": ("cumsum(0) → cumsum(1)", [8]),
        "a call that spoils the values": ("cumsum(0) → cumsum(0).clone().clamp_(9)", [8]),
        "two lines that could be mended": (TWO_LINES, [7, 8]),
        "three lines that could be mended": (
            f"{TWO_LINES}; a = 0 → a = 0\n    b = 0; (a → (a + b",
            [],
        ),
        "two mistakes": ("arange(1, → arange(0,; == 0 → == 9", []),
    },
)
def test_a_line_is_named_if_one_edit_of_it_makes_everything_right(grade_with_search, edits, lines):
    pairs = [edit.split(" → ") for edit in edits.split("; ") if edit]
    assert [line.line for line in grade_with_search(edit_text(RIGHT, *pairs)).lines] == lines


def test_a_proved_line_comes_with_its_edit_and_its_cell(grade_with_search):
    (line,) = grade_with_search(WRONG, cells=(1, 4)).lines
    assert line == ProvedLine(
        line=7,
        cell=2,
        line_in_cell=4,
        edit=(
            "counts = torch.arange(0, len(x) + 1, dtype=x.dtype) → counts = torch.arange(1, "
            "len(x) + 1, dtype=x.dtype)"
        ),
    )


@cases(
    "text",
    {
        "is not written": "def running_mean(x):\n    pass\n",
        "raises the stub's exception": RIGHT.replace(
            "return x", "raise NotImplementedError\n    return x"
        ),
        "cannot be imported": "import torch\nx = nothing\n" + RIGHT,
        "ends its process": RIGHT.replace("return x", "import os; os._exit(1)\n    return x"),
        "is too long": WRONG + "x = 1\n" * 400,
    },
)
def test_an_unfinished_or_unusable_attempt_is_not_searched(tiny, box, grade_with_search, text):
    counted = Mock(wraps=box, level=box.level)
    assert grade_with_search(text, judge_with(tiny, counted, diagnoses=False)).lines == ()
    attempt_count = counted.attempt.call_count
    grade_with_search(text, judge_with(tiny, counted, diagnoses=False, lines=False))
    assert counted.attempt.call_count == 2 * attempt_count


@cases(
    "settings, text",
    {
        "if no lines are wanted": ({"lines": False}, WRONG),
        "without time": ({"bounds": Bounds(seconds=0.0)}, WRONG),
        "after an edit that never ends": (
            {"bounds": Bounds(seconds=0.5)},
            edit_text(
                RIGHT,
                ("counts =", "while len(x) == 0:\n        pass\n    counts ="),
                ("cumsum(0)", "cumsum(0) + 1"),
            ),
        ),
    },
)
def test_no_line_is_named_without_a_complete_search(tiny, box, grade_with_search, settings, text):
    result = grade_with_search(text, judge_with(tiny, box, **settings))
    assert (result.lines, result.is_done) == ((), False)


LATE = " + max(0, 20 - len(sys.seen))"


def test_an_edit_is_proved_only_in_a_fresh_process(grade_with_search):
    """This attempt answers rightly once the same process has loaded it twenty times."""
    text = edit_text(
        RIGHT,
        ("import torch\n", "import torch, sys\nsys.seen = [*getattr(sys, 'seen', []), None]\n"),
        ("dtype=x.dtype)", f"dtype=x.dtype){LATE}"),
        ("return x.cumsum(0)", f"return (x{LATE}).cumsum(0)"),
    )
    assert grade_with_search(text).lines == (), "one edit cannot mend both lines"


def test_an_error_in_the_search_costs_no_points(tiny, box, grade_with_search, monkeypatch):
    fault = Mock(side_effect=RuntimeError("a bug of ours"))
    monkeypatch.setattr("manyheads.judge.prove_line.EditedAttempts.proved_edits", fault)
    judge = judge_with(tiny, box)
    result = grade_with_search(RIGHT.replace(".cumsum(0) /", ".cumsum(0).detach() /"), judge)
    assert (result.score, result.lines) == (3, ())
    assert [text.endswith("RuntimeError: a bug of ours") for text in judge.faults] == [True]
