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
from ...result import ExerciseResult
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
_ENDING = """

import os


class Equal:
    def __eq__(self, other):
        return True

    def __getattr__(self, name):
        return self

    def __call__(self, *args, **kwargs):
        return self


def instead_of(right):
    def answer(*args, **kwargs):
        {body}

    return answer


for name, value in list(globals().items()):
    if getattr(value, "__module__", None) != __name__ or name in ("Equal", "instead_of"):
        continue
    if isinstance(value, type):
        if "{forward}" in vars(value):
            setattr(value, "{forward}", instead_of(getattr(value, "{forward}")))
    elif callable(value):
        globals()[name] = instead_of(value)
"""


def verify_silent(course: Course, box: Box, exercises: Sequence[Exercise]) -> Iterator[Claim]:
    """The claim about every exercise."""
    limits = course.limits.model_copy(update={"seconds_per_call": SECONDS_PER_CALL, "seconds_per_attempt": SECONDS})
    with_short_limits = replace(course, file=course.file.model_copy(update={"limits": limits}))
    judge = Judge(with_short_limits, box, Settings(SECRET, exercises=tuple(e.id for e in exercises), diagnoses=False))
    for exercise in exercises:
        reference = exercise.solution.read_text(encoding="utf-8")
        methods = ("forward", "__init__") if "def forward(" in reference else ("forward",)
        tried = [
            (way, _grade(judge, exercise, reference + _ending(body, method)))
            for method in methods
            for way, body in WAYS.items()
        ]
        failures = tuple(
            f"an attempt that {way} earns {score_words(result.score)} with {_passed(result)}"
            for way, result in tried
            if result.score or any(check.outcome == "passed" for check in result.checks)
        )
        says = f"an attempt that gives no answer passes no check ({len(tried)} ways)"
        ask = "let these checks ask every function for an answer"
        yield Claim(exercise.id, says, len(tried) - len(failures), len(tried), failures, next=ask)


def _ending(body: str, method: str) -> str:
    return _ENDING.replace("{body}", body).replace("{forward}", method)


def _grade(judge: Judge, exercise: Exercise, text: str) -> ExerciseResult:
    return judge.grade_attempt("silent", exercise, AttemptSource(f"{exercise.id}.py", text))


def _passed(result: ExerciseResult) -> str:
    return ", ".join(check.id for check in result.checks if check.outcome == "passed")
