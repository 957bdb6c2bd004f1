"""At the real course: code that is not seen is told with the place where it stands, graded and at home alike."""

from __future__ import annotations

import json

import pytest

from manyheads.box.level import Box
from manyheads.course import Course
from manyheads.diagnosis.recording_file import read
from manyheads.judge.grade_submission import Judge
from manyheads.report.words import function_reports
from manyheads.student.run_attempt import check_source
from manyheads.submission import AttemptSource
from manyheads.submission.read import read_notebook
from tests.grader.changes import NO_SEARCH

ABOVE = """import math
def simplified_attention(x): return (x @ x.mT).softmax(-1) @ x
def attention_scores(q, k): return q @ k.mT / math.sqrt(q.shape[-1])
def attention_weights(scores): return scores.softmax(-1)
"""
ATTEND = "def attend(q, k, v): return attention_weights(attention_scores(q, k)) @ v\n"
STANDS = {
    "in a string": (f'"""\n{ATTEND}"""\n', "it stands inside the string that begins on line 5: that is text, not code."),
    "in a class": (f"class Answers:\n    {ATTEND}", "it stands on line 6 inside the `class` on line 5, which keeps it from being seen."),
    "below the main guard": (f'if __name__ == "__main__":\n    {ATTEND}', "it stands on line 6 inside the `if` on line 5"),
    "overwritten": (f"{ATTEND}attend = attend.__doc__\n", "it stands on line 5, and is no function or class once all has run."),
    "in capitals": (ATTEND.replace("attend(", "ATTEND(", 1), "the file has no such name; is ATTEND meant? Capital letters count."),
    "above a stub": (f"{ATTEND}def attend(q, k, v): raise NotImplementedError()\n", "what is written on line 5 is not seen, for the stub on line 6 counts."),
}  # fmt: skip
KINDS = {
    "async": (f"async {ATTEND}", "It is an `async def`, written on line 5, so that a call gives a coroutine: take `async` away"),
    "a class": ("class attend:\n    def __init__(self, q, k, v): self.q = q\n", "It is a class, written on line 5, and a function is asked for"),
    "a generator": (ATTEND.replace("return", "yield"), "A `yield` makes it a generator, written on line 5: return the answer"),
}  # fmt: skip


def heads(
    course: Course, judge: Judge, box: Box, source: AttemptSource, id_: str = "attention_scores"
) -> list[list[str]]:
    """What is said of each function, at home and graded: its line, and what was seen."""
    exercise = next(each for each in course.exercises if each.id == id_)
    at_home = check_source(read(exercise.fingerprints), source, box, course.limits.for_worker(), NO_SEARCH)
    graded = judge.grade_attempt("student", exercise, source)
    return [[f"{r.head} {r.evidence} {r.hint}" for r in function_reports(result)] for result in (at_home, graded)]


@pytest.mark.parametrize(("below", "says"), [pytest.param(*row, id=name) for name, row in STANDS.items()])
def test_of_code_that_is_not_seen_the_place_is_told(course, judge, box, below, says) -> None:
    for told in heads(course, judge, box, AttemptSource("a.py", ABOVE + below)):
        assert told[3].startswith(f"attend: {says}"), told[3]
        assert not [line for line in told if "letter by letter" in line and "ATTEND" not in below]


@pytest.mark.parametrize(("below", "says"), [pytest.param(*row, id=name) for name, row in KINDS.items()])
def test_of_another_kind_than_is_asked_that_is_told(course, judge, box, below, says) -> None:
    for told in heads(course, judge, box, AttemptSource("a.py", ABOVE + below)):
        assert says in told[3]


def test_a_function_where_a_class_is_asked_is_told(course, judge, box) -> None:
    source = "def CausalAttention(d_in, d_out, context_length, dropout=0.0, qkv_bias=False):\n    return d_in\n"
    for told in heads(course, judge, box, AttemptSource("a.py", source), "self_attention"):
        assert "It is a function, written on line 1, and a class is asked for" in told[0]


def test_a_class_in_place_of_a_function_in_a_notebook_has_its_cell(course, judge, box) -> None:
    listed = [{"cell_type": "code", "source": text} for text in (ABOVE, f"async {ATTEND}")]
    found = read_notebook(json.dumps({"cells": listed}))
    for told in heads(course, judge, box, AttemptSource("a.ipynb", found.source, cells=found.cells)):
        assert "written on line 1 of code cell 2" in told[3]
