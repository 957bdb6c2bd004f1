"""The path of a wrong attempt in docs/architecture.md is the path of a real run."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

import manyheads
from manyheads.box.connection import Box
from manyheads.course import Course, Exercise
from manyheads.judge import grade_submission
from manyheads.judge.grade_submission import Judge, Settings
from manyheads.submission import Source

ROOT = Path(manyheads.__file__).parents[1]
CONTENTS = "manyheads/judge/grade_submission.py"
ROW = re.compile(r"\| `(manyheads/[\w/]+\.py)` \| `([\w.]+)` \|")
WRONG = "def running_mean(x):\n    return x.cumsum(0) / len(x)\n"
MOST_FUNCTIONS, MOST_FILES = 25, 12

Function = tuple[str, str]  # the file and the qualified name
FirstCalls = dict[Function, Function | None]


@contextmanager
def first_calls() -> Iterator[FirstCalls]:
    """Note the functions of the engine that are called, in order, each with its first caller."""
    callers: FirstCalls = {}

    def name_of(frame: FrameType | None) -> Function | None:
        if frame is None or not frame.f_code.co_filename.startswith(str(ROOT / "manyheads")):
            return None
        file = Path(frame.f_code.co_filename).relative_to(ROOT).as_posix()
        return file, frame.f_code.co_qualname

    def note(frame: FrameType, event: str, _: object) -> None:
        function = name_of(frame)
        if event == "call" and function is not None:
            callers.setdefault(function, name_of(frame.f_back))

    sys.setprofile(note)
    try:
        yield callers
    finally:
        sys.setprofile(None)


@pytest.fixture
def calls(tiny: Course, box: Box, running_mean: Exercise) -> FirstCalls:
    judge = Judge(tiny, box, Settings(secret=b"secret"))
    with first_calls() as calls:
        judge.grade_attempt("student", running_mean, Source("01_running_mean.py", WRONG))
    return calls


def test_the_page_names_the_functions_in_the_order_in_which_they_are_called(calls) -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    path = ROW.findall(page.partition("## How one attempt is graded")[2])
    start, end = ("Judge.grade_attempt", "assemble")
    names = [name for _, name in path]
    steps = path[names.index(start) : names.index(end) + 1]
    called_steps = [function for function in calls if function in steps]
    assert called_steps == [step for step in steps if step in calls]
    assert {start, "HiddenChecks.run", "ask_public_calls", "name_misconceptions", end} <= {
        name for _, name in called_steps
    }


def test_the_table_of_contents_calls_few_functions(calls) -> None:
    functions = {
        function
        for function, caller in calls.items()
        if caller is not None and caller[0] == CONTENTS != function[0]
    }
    assert Path(grade_submission.__file__).as_posix().endswith(CONTENTS)
    assert 10 < len(functions) <= MOST_FUNCTIONS
    assert len({file for file, _ in functions}) <= MOST_FILES
