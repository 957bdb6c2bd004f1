"""`python -m tests.second_device.judged BUILD` judges right attempts and mutants on the second device, each against the reference
on the CPU, with all the checks that a GPU has. Prints JSON: {"right": {name: [what failed]}, "mutants": {name: [...]}}.
"""

import contextlib
import io
import json
import sys
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

from manyheads.checks.implementation import LocalRunner
from manyheads.checks.local import LocalRecordingRunner, namespace_of
from manyheads.course import Course, Exercise, load_course
from manyheads.diagnosis.bank import load_bank
from manyheads.judge.run_checks import CheckRun, HiddenChecks
from tests.second_device import NAME, start

STRANDED = ("hard_coded_device", "mask_not_moved")  # what only another device shows


def main() -> None:
    """Judge them all."""
    start(Path(sys.argv[1]))
    course = load_course(Path(__file__).parents[2])
    found: dict[str, dict[str, list[str]]] = {"right": {}, "mutants": {}}
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for exercise in course.assignments[0].exercises:
            for kind, name, attempt in _attempts(course, exercise):
                found[kind][f"{exercise.id}/{name}"] = _failed(course, exercise, attempt)
    print(json.dumps(found))


def _attempts(course: Course, exercise: Exercise) -> Iterator[tuple[str, str, Mapping[str, object]]]:
    yield "right", "reference", namespace_of(exercise.solution)
    for path in exercise.right_attempts():
        yield "right", path.stem, namespace_of(path)
    for mutant in load_bank(exercise).mutants:
        if mutant.id in STRANDED:
            yield "mutants", f"{mutant.id} {mutant.faults}", mutant.namespace


def _failed(course: Course, exercise: Exercise, attempt: Mapping[str, object]) -> list[str]:
    checks = exercise.checks
    reference = LocalRunner(namespace_of(exercise.solution))
    run = CheckRun(LocalRecordingRunner(attempt, NAME), reference, b"secret", (exercise.id,), forms=exercise.forms)
    outcomes = HiddenChecks([checks], "cuda").run(checks, run)
    return [f"{o.id}: {o.evidence or o.outcome}" for o in outcomes if o.outcome != "passed"]


if __name__ == "__main__":
    main()
