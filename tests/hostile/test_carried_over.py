"""An attempt that keeps what it is asked, and puts it into the message of a later exception: no hidden number comes out."""

import pytest

from manyheads.box.level import Box
from manyheads.course import Course, Exercise
from manyheads.judge.grade_submission import Judge, Settings
from manyheads.result import ExerciseResult
from manyheads.submission import AttemptSource

# The first number that it met is in a global, in torch, in every folder that can be written to, and in the environment.
KEEPS = """
import os, sys, torch

PLACES = ["/tmp/kept", "/dev/shm/kept", "/var/tmp/kept", os.path.join(os.getcwd(), "kept"), os.path.join(os.path.dirname(torch.__file__), "kept")]

def first(number):
    for where in (*PLACES, None):
        try:
            number = open(where).read() if where else getattr(torch, "kept", os.environ.get("KEPT", number))
            break
        except OSError:
            pass
    torch.kept = sys.kept = os.environ["KEPT"] = number
    for where in PLACES:
        try:
            open(where, "x").write(number)
        except OSError:
            pass
    return number

def running_mean(x):
    raise RuntimeError("met " + first(str(float(x.double().sum()))))
"""


def graded(course: Course, box: Box, exercise: Exercise, secret: bytes) -> ExerciseResult:
    judge = Judge(course, box, Settings(secret, lines=False))
    return judge.grade_attempt("student", exercise, AttemptSource("01_running_mean.py", KEEPS))


@pytest.mark.parametrize("before", [b"", b"another run"], ids=["alone", "after a run with other inputs"])
def test_what_a_hidden_call_was_given_is_in_no_message(tiny, box, running_mean, before):
    if before:
        graded(tiny, box, running_mean, before)
    one, other = (graded(tiny, box, running_mean, secret) for secret in (b"one", b"other"))
    assert one == other, "the inputs differ, and nothing else"
    assert one.functions[0].evidence == "raised RuntimeError on line 22"
    assert "met " not in one.model_dump_json(), "neither what it met in hidden calls nor in public ones is told"
