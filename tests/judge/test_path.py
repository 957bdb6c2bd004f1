"""docs/architecture.md lists the functions that grade a wrong attempt, as a real run calls them."""

import re
import sys
from pathlib import Path

import pytest

from manyheads.judge.grade_submission import Judge, Settings
from manyheads.submission import Source
from tests.make import REPOSITORY, WRONG

ENTRY_MODULE = "manyheads/judge/grade_submission.py"
ROW = re.compile(r"\| `(manyheads/[\w/]+\.py)` \| `([\w.]+)` \|")
MAX_FUNCTIONS, MAX_FILES = 25, 12

Function = tuple[str, str]  # the file and the qualified name


def name_of(frame):
    """Return the function of the engine that a frame runs, or None for other code."""
    if frame is None:
        return None
    path = Path(frame.f_code.co_filename)
    if not path.is_relative_to(REPOSITORY / "manyheads"):
        return None
    return path.relative_to(REPOSITORY).as_posix(), frame.f_code.co_qualname


@pytest.fixture(scope="module")
def callers(tiny, box, running_mean):
    """Return the called functions of the engine, in call order, each with its first caller."""
    callers: dict[Function, Function | None] = {}

    def note(frame, event, _):
        function = name_of(frame)
        if event == "call" and function is not None:
            callers.setdefault(function, name_of(frame.f_back))

    judge = Judge(tiny, box, Settings(secret=b"secret"))
    sys.setprofile(note)
    try:
        judge.grade_attempt("student", running_mean, Source("01_running_mean.py", WRONG))
    finally:
        sys.setprofile(None)
    return callers


def test_the_page_lists_the_functions_in_call_order(callers):
    page = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
    path = ROW.findall(page.partition("## How one attempt is graded")[2])
    start, end = ("Judge.grade_attempt", "assemble")
    names = [name for _, name in path]
    steps = path[names.index(start) : names.index(end) + 1]
    called_steps = [function for function in callers if function in steps]
    assert called_steps == [step for step in steps if step in callers]
    assert {start, "HiddenChecks.run", "ask_public_calls", "name_misconceptions", end} <= {
        name for _, name in called_steps
    }


def test_grade_submission_calls_few_functions_of_other_files(callers):
    functions = {
        function
        for function, caller in callers.items()
        if caller is not None and caller[0] == ENTRY_MODULE != function[0]
    }
    assert 10 < len(functions) <= MAX_FUNCTIONS  # fewer would mean that nothing was recorded
    assert len({file for file, _ in functions}) <= MAX_FILES
