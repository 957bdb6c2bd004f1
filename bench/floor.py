"""The floor: every hidden check of every attempt in one warm process, with nothing around the
attempt.

`python -m bench.floor COURSE SUBMITTED` prints the seconds of one submission as JSON. All attempts
must be right, and are run in this process. The first few, which find it cold, are left out.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import torch

from manyheads.checks.runner import LocalRecordingRunner, namespace_of
from manyheads.course import load_course
from manyheads.judge.run_hidden_checks import Catalogue
from manyheads.submission import Submission, find_submissions

WARM_UP = 3


def main(root: Path, submitted: Path) -> None:
    """Print what a submission costs."""
    torch.set_num_threads(1)
    course = load_course(root)
    catalogue = Catalogue(course)
    seconds: list[tuple[float, float]] = []
    # prints and warnings of attempts say nothing
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        for submission in find_submissions(course, submitted)[0]:
            wall, cpu = time.perf_counter(), time.process_time()
            _judge(catalogue, submission)
            seconds.append((time.perf_counter() - wall, time.process_time() - cpu))
    warm = seconds[WARM_UP:] or seconds
    walls, cpus = zip(*warm, strict=True)
    print(json.dumps({"wall": sum(walls) / len(warm), "cpu": sum(cpus) / len(warm)}))


def _judge(catalogue: Catalogue, submission: Submission) -> None:
    for exercise in submission.assignment.exercises:
        subject = LocalRecordingRunner(namespace_of(submission.folder / f"{exercise.stem}.py"))
        reference = catalogue.reference(exercise)
        outcomes = catalogue.run(
            exercise, subject, reference, b"floor", submission.student, exercise.id
        )
        failed = [o.id for o in outcomes if o.outcome != "passed"]
        if failed:
            raise SystemExit(f"{submission.student}'s {exercise.id} is not right: {failed}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
