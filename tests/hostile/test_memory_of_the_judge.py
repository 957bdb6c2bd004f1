"""A judge process needs less than 1 GiB of memory, even for the largest allowed replies."""

import json
import re
import subprocess
import sys

from tests.make import REPOSITORY

MAX_JUDGE_MIB = 1024  # the most memory that docs/threat-model.md allows
# Replies that the attempt forges: the part that is large, its dtype, and the MiB of each tensor.
LARGE_REPLIES = (
    ("outputs", "bool", 30.0),  # one byte a number, but eight in the judge's float64
    ("outputs", "int8", 3.9),
    ("outputs", "float16", 7.9),
    ("outputs", "float64", 31.0),
    ("both", "float64", 15.0),
    ("both", "int8", 15.0),
    ("gradients", "float32", 14.0),
)
ATTEMPT = """
import dataclasses, sys, torch

worker = sys.modules["manyheads_worker.answer_call"]
honest, where, dtype = worker.execute, {where!r}, torch.{dtype}
large = torch.ones(int({mib} * 2**20) // dtype.itemsize, dtype=dtype)


def execute(*given, **named):
    reply = honest(*given, **named)
    as_outputs = {{"kind": "tensor", "tensor": large, "dtype": {dtype!r}, "device": "cpu", \
"shape": tuple(large.shape)}}
    if where != "gradients":
        reply = dataclasses.replace(reply, outputs=tuple(dataclasses.replace(o, **as_outputs) for \
o in reply.outputs))
    if where != "outputs" and reply.gradients:
        reply = dataclasses.replace(reply, gradients=dict.fromkeys(reply.gradients, large))
    return reply


sys.modules["manyheads_worker.attempt"].execute = execute
"""
JUDGE = """
import json, re, sys
from pathlib import Path
from manyheads.box import open_box
from manyheads.box.level_and_device_names import Level
from manyheads.course import load_course
from manyheads.judge.grade_submission import Judge, Settings
from manyheads.submission import Source

course = load_course(Path(sys.argv[1]))
(exercise,) = course.exercises
right = exercise.solution.read_text(encoding="utf-8")
with open_box(Level.NAMESPACES, course.limits.for_worker(), course.root) as box:
    judge = Judge(course, box, Settings(secret=b"secret"))
    for text in json.load(sys.stdin):
        judge.grade_attempt("s", exercise, Source(f"{exercise.stem}.py", right + text))
assert judge.faults == [], judge.faults
print(re.search(r"VmHWM:.*", Path("/proc/self/status").read_text())[0])
"""


def test_the_largest_replies_take_less_than_1_gib_of_judge_memory(tiny):
    """The judge compares in float64 and holds several copies: bool and int8 once took 1.07 GiB."""
    texts = [
        ATTEMPT.format(where=where, dtype=dtype, mib=mib) for where, dtype, mib in LARGE_REPLIES
    ]
    command = [sys.executable, "-c", JUDGE, str(tiny.root)]
    completed = subprocess.run(
        command,
        cwd=REPOSITORY,
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    peak = re.search(r"VmHWM:\s+(\d+) kB", completed.stdout)
    assert peak is not None
    assert int(peak[1]) / 1024 < MAX_JUDGE_MIB
