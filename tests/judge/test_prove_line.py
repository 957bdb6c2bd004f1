"""The line at which an attempt goes wrong, proved in the box."""

from unittest.mock import Mock

import pytest

from manyheads.box.connection import Box
from manyheads.course import Course, Exercise
from manyheads.judge.edit_search import Bounds
from manyheads.judge.grade_submission import Judge, Settings
from manyheads.result import ExerciseResult, ProvedLine
from manyheads.submission import Source
from tests.make import edit_text

NAME = "01_running_mean.py"
RIGHT = """\
import torch


def running_mean(x):
    if x.numel() == 0:
        raise ValueError("no numbers")
    counts = torch.arange(1, len(x) + 1, dtype=x.dtype)
    return x.cumsum(0) / counts
"""
PATIENT = Bounds(seconds=60.0)  # a busy machine finds as much


@pytest.fixture
def judge(tiny: Course, box: Box) -> Judge:
    return Judge(tiny, box, Settings(secret=b"secret", bounds=PATIENT))


def grade_text(
    judge: Judge, exercise: Exercise, text: str, cells: tuple[int, ...] = ()
) -> ExerciseResult:
    return judge.grade_attempt("student", exercise, Source(NAME, text, cells=cells))


def proved_lines(judge: Judge, exercise: Exercise, text: str) -> list[tuple[int, str]]:
    return [(line.line, line.edit) for line in grade_text(judge, exercise, text).lines]


TWO = RIGHT.replace("counts =", "start = 0\n    counts =").replace("arange(1,", "arange(start + 0,")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param(RIGHT, [], id="nothing is wrong"),
        pytest.param(RIGHT.replace("arange(1,", "arange(0,"), [7], id="a number"),
        pytest.param(
            RIGHT.replace("cumsum(0) / counts", "cumsum(0) * counts"), [8], id="an operator"
        ),
        pytest.param(
            RIGHT.replace("x.cumsum(0) /", "x.cumsum(0).detach() /"),
            [8],
            id="a call that cuts the gradient",
        ),
        pytest.param(RIGHT.replace("return x.cumsum", "x.cumsum"), [8], id="a return forgotten"),
        pytest.param(
            RIGHT.replace("== 0", "!= 0"), [5], id="a comparison, which refuses what it should not"
        ),
        pytest.param(RIGHT.replace("cumsum(0)", "cumsum(1)"), [8], id="an axis that is not there"),
        pytest.param(
            RIGHT.replace("cumsum(0)", "cumsum(0).clone().clamp_(9)"),
            [8],
            id="a call that spoils the values",
        ),
        pytest.param(TWO, [7, 8], id="two lines that could be mended"),
        pytest.param(
            TWO.replace("start = 0", "start = 0\n    more = 0").replace(
                "start +", "start + more +"
            ),
            [],
            id="three lines",
        ),
        pytest.param(
            RIGHT.replace("arange(1,", "arange(0,").replace("== 0", "== 9"), [], id="two mistakes"
        ),
    ],
)
def test_the_lines_where_one_edit_mends_all_are_told(judge, running_mean, text, lines):
    assert [line for line, _ in proved_lines(judge, running_mean, text)] == lines


def test_the_instructor_is_told_the_edit(judge: Judge, running_mean: Exercise) -> None:
    assert proved_lines(judge, running_mean, RIGHT.replace("arange(1,", "arange(0,")) == [
        (
            7,
            (
                "counts = torch.arange(0, len(x) + 1, dtype=x.dtype) → counts = torch.arange(1, "
                "len(x) + 1, dtype=x.dtype)"
            ),
        )
    ]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("def running_mean(x):\n    pass\n", id="nothing written"),
        pytest.param(
            RIGHT.replace("return x", "raise NotImplementedError\n    return x"),
            id="something unwritten",
        ),
        pytest.param("import torch\nx = nothing\n" + RIGHT, id="it cannot be imported"),
        pytest.param(
            RIGHT.replace("return x", "import os; os._exit(1)\n    return x"),
            id="it ends its process",
        ),
        pytest.param(RIGHT.replace("arange(1,", "arange(0,") + "x = 1\n" * 400, id="too long"),
    ],
)
def test_nothing_is_searched_where_it_makes_no_sense(
    tiny: Course, box: Box, running_mean: Exercise, text: str
) -> None:
    counted = Mock(wraps=box, level=box.level)
    searching = Judge(tiny, counted, Settings(b"secret", diagnoses=False, bounds=PATIENT))
    assert grade_text(searching, running_mean, text).lines == ()
    attempt_count = counted.attempt.call_count
    grade_text(
        Judge(tiny, counted, Settings(b"secret", diagnoses=False, lines=False)), running_mean, text
    )
    assert counted.attempt.call_count == 2 * attempt_count


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"lines": False}, id="no lines wanted"),
        pytest.param({"bounds": Bounds(seconds=0.0)}, id="no time"),
    ],
)
def test_a_search_that_may_not_be_tells_nothing(tiny, box, running_mean, settings):
    judge = Judge(tiny, box, Settings(secret=b"secret", **settings))
    assert proved_lines(judge, running_mean, RIGHT.replace("arange(1,", "arange(0,")) == []


def test_an_edit_that_never_ends_ends_the_search(
    tiny: Course, box: Box, running_mean: Exercise
) -> None:
    loops = ("counts =", "while len(x) == 0:\n        pass\n    counts =")
    text = edit_text(RIGHT, loops, ("cumsum(0)", "cumsum(0) + 1"))
    judge = Judge(tiny, box, Settings(secret=b"secret", bounds=Bounds(seconds=0.5)))
    result = grade_text(judge, running_mean, text)
    assert (result.lines, result.is_done) == ((), False)


def test_of_a_notebook_the_line_of_its_cell_is_told(judge: Judge, running_mean: Exercise) -> None:
    text = RIGHT.replace("arange(1,", "arange(0,")
    (line,) = grade_text(judge, running_mean, text, cells=(1, 4)).lines
    assert line == ProvedLine(line=7, cell=2, line_in_cell=4, edit=line.edit)


LATE = " + max(0, 20 - len(sys.seen))"


def test_a_look_cannot_be_taken_for_a_proof(judge: Judge, running_mean: Exercise) -> None:
    """It counts how often it is loaded in one process, and answers rightly from the twentieth time
    on, whatever is edited.
    """
    counts = ("import torch\n", "import torch, sys\nsys.seen = [*getattr(sys, 'seen', []), None]\n")
    twice = (
        ("dtype=x.dtype)", f"dtype=x.dtype){LATE}"),
        ("return x.cumsum(0)", f"return (x{LATE}).cumsum(0)"),
    )
    assert proved_lines(judge, running_mean, edit_text(RIGHT, counts, *twice)) == [], (
        "one edit cannot mend both"
    )


def test_a_fault_of_the_search_takes_no_points(judge, running_mean, monkeypatch):
    def raise_bug(*args: object) -> None:
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr("manyheads.judge.prove_line.EditedAttempts.proved_edits", raise_bug)
    result = grade_text(judge, running_mean, RIGHT.replace(".cumsum(0) /", ".cumsum(0).detach() /"))
    assert (result.score, result.lines) == (3, ())
    assert [fault.endswith("RuntimeError: a bug of ours") for fault in judge.faults] == [True]
