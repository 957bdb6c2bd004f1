"""What chance decides: every right attempt and every mutant, with the inputs of many runs, and the checks that do not
come out the same each time.

python -m bench.seeds [SEEDS] [EXERCISE ...]

A quarter of an hour for 20 seeds and all exercises. Trusted code alone is run, in this process, without the box.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

from manyheads.checks.local import LocalRecordingRunner, namespace_of
from manyheads.course import Exercise, load_course
from manyheads.diagnosis import load_bank
from manyheads.judge.catalogue import Catalogue

ROOT = Path(__file__).parents[1]
SEEDS = 20


def main() -> None:
    """Print a line for each exercise, and one for each attempt whose checks vary."""
    given = sys.argv[1:]
    seeds = int(given.pop(0)) if given and given[0].isdigit() else SEEDS
    course = load_course(ROOT)
    catalogue = Catalogue(course)
    for exercise in course.exercises:
        if not given or exercise.id in given:
            _exercise(catalogue, exercise, seeds)


def _exercise(catalogue: Catalogue, exercise: Exercise, seeds: int) -> None:
    lost, count = 0, 0
    for _, namespace in _right(exercise):
        outcomes = _outcomes(catalogue, exercise, namespace, seeds)
        lost += sum(not all(passed) for passed in outcomes.values())
        count += 1
    varying = []
    for name, namespace in _mutants(exercise):
        outcomes = _outcomes(catalogue, exercise, namespace, seeds)
        if checks := [check for check, passed in outcomes.items() if any(passed) and not all(passed)]:
            varying.append(f"    {name}: {', '.join(checks)}")
    total = len(load_bank(exercise).mutants)
    print(
        f"{exercise.id}: {count} right attempts lose {lost} checks; {len(varying)} of {total} mutants vary", flush=True
    )
    print("\n".join(varying), end="\n" * bool(varying), flush=True)


def _outcomes(
    catalogue: Catalogue, exercise: Exercise, namespace: Mapping[str, object], seeds: int
) -> dict[str, list[bool]]:
    """Whether each check was passed, seed by seed."""
    found: dict[str, list[bool]] = defaultdict(list)
    reference = catalogue.reference(exercise)
    for seed in range(seeds):
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            outcomes = catalogue.run(
                exercise, LocalRecordingRunner(namespace), reference, b"seed %d" % seed, exercise.id
            )
        for outcome in outcomes:
            found[outcome.id].append(outcome.outcome == "passed")
    return found


def _right(exercise: Exercise) -> Iterator[tuple[str, Mapping[str, object]]]:
    for path in (exercise.solution, *exercise.right_attempts()):
        yield path.name, namespace_of(path)


def _mutants(exercise: Exercise) -> Iterator[tuple[str, Mapping[str, object]]]:
    for mutant in load_bank(exercise).mutants:
        yield f"{mutant.id} {dict(mutant.faults)}", mutant.namespace


if __name__ == "__main__":
    main()
