"""The claim that a check passes only on answers: attempts that never answer earn nothing.

Each such attempt is the reference, with every function and every module's forward replaced by something that does not
answer. It keeps what could earn points by mistake: names, weights, buffers, unchanged arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...box.level import Box
from ...course import Course, Exercise
from ...judge.grade import Judge, Settings
from ...report.words import score_words
from ...submission import AttemptSource
from .claim import SECRET, Claim

WAYS = {
    "raises an error": "raise RuntimeError('no')",
    "refuses everything": "raise ValueError('no')",
    "asks Python to exit": "raise SystemExit(0)",
    "ends its process": "os._exit(0)",
    "never ends": "while True: pass",
    "returns None": "return None",
    "returns a tuple": "return (right(*args, **kwargs),)",
    "returns a list": "return [right(*args, **kwargs)]",
    "returns text": "return 'right'",
    "returns what equals everything": "return Equal()",
    "is a generator": "yield right(*args, **kwargs)",
}
SECONDS_PER_CALL, SECONDS = 0.2, 1.0  # short limits, because some of these attempts never end
EQUAL = """
class Equal:
    def __eq__(self, other):
        return True

    def __getattr__(self, name):
        return self

    def __call__(self, *args, **kwargs):
        return self
"""
_ENDING = """

theirs = dict(globals())

import os

import torch
{helpers}

def instead_of(right):
    def answer(*args, **kwargs):
        {body}

    return answer


for name, value in theirs.items():
    if getattr(value, "__module__", None) != __name__:
        continue
    if isinstance(value, type):
        if "{method}" in vars(value):
            setattr(value, "{method}", instead_of(getattr(value, "{method}")))
    elif callable(value):
        globals()[name] = instead_of(value)
"""


def verify_silent(course: Course, box: Box, exercises: Sequence[Exercise]) -> Iterator[Claim]:
    """The claim about every exercise."""
    limits = course.limits.model_copy(update={"seconds_per_call": SECONDS_PER_CALL, "seconds_per_attempt": SECONDS})
    with_short_limits = replace(course, file=course.file.model_copy(update={"limits": limits}))
    judge = Judge(with_short_limits, box, Settings(SECRET, exercises=tuple(e.id for e in exercises), diagnoses=False))
    for exercise in exercises:
        methods = ("forward", "__init__") if "def forward(" in exercise.solution.read_text("utf-8") else ("forward",)
        tried = [(way, replaced(exercise, body, EQUAL, method)) for method in methods for way, body in WAYS.items()]
        says = f"an attempt that gives no answer passes no check ({len(tried)} ways)"
        ask = "let these checks ask every function for an answer"
        yield earns_nothing(judge, exercise, says, tried, ask)


def replaced(exercise: Exercise, body: str, helpers: str, method: str = "forward") -> str:
    """Return the text of the reference in which `body` stands for every function and every module's `method`.

    The body is given `right`, what it stands for, with `args` and `kwargs`. helpers: what it needs.
    """
    ending = _ENDING.replace("{helpers}", helpers).replace("{body}", body).replace("{method}", method)
    return exercise.solution.read_text("utf-8") + ending


def earns_nothing(judge: Judge, exercise: Exercise, says: str, tried: Sequence[tuple[str, str]], next_: str) -> Claim:
    """Return the claim that none of these attempts, each with its way, passes a check."""
    failures = []
    for way, text in tried:
        result = judge.grade_attempt("silent", exercise, AttemptSource(f"{exercise.id}.py", text))
        if passed := ", ".join(check.id for check in result.checks if check.outcome == "passed"):
            failures.append(f"an attempt that {way} earns {score_words(result.score)} with {passed}")
    return Claim(exercise.id, says, len(tried) - len(failures), len(tried), tuple(failures), next=next_)
