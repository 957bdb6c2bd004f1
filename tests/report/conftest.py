"""Shared helpers: results of one exercise, and a generated class."""

import random

import pytest

from manyheads.result import Diagnosed
from tests import make


def dance_exercise(*checks, id_="dance", named=(), **fields):
    """Make the result of one exercise with these checks.

    Args:
        checks: The results of its checks.
        named: The misconceptions of its diagnosis.
        fields: Other fields of the exercise result.
    """
    return make.exercise(id_, *checks, diagnosis=named, **fields)


def heads_result(student, *exercises, **changed):
    """Make a result of the assignment `heads`; `changed` replaces default fields."""
    defaults = {"assignment": "heads", "seed": 3, "versions": {"torch": "2.13.0"}}
    return make.result(student, *exercises, **defaults | changed)


@pytest.fixture(scope="session")
def made_up_class():
    """Return a function that generates the results of a class with the given number of students.

    Each student has 8 exercises with 15 checks. About a third of the attempts is wrong, with
    every outcome that a check can have.
    """
    return lambda students: [
        _random_result(f"student{i:04d}", random.Random(i)) for i in range(students)
    ]


def _random_result(student, chance):
    """Return a result with 8 exercises. chance: the generator of random numbers."""
    exercises = (_random_exercise(f"exercise_{i}", chance) for i in range(8))
    return make.result(student, *exercises, assignment="heads", versions={"torch": "2.13.0"})


def _random_exercise(id_, chance):
    """Return the result of one exercise, which is wrong with a probability of 35%."""
    is_wrong = chance.random() < 0.35
    outcomes = ["failed", "error", "timeout", "crashed", "missing", "skipped"]
    checks = []
    for i in range(15):
        passed = not (is_wrong and chance.random() < 0.4)
        evidence = f"editing positions {i}…7 changes the output of position 0"
        explanation = {"evidence": evidence, "hint": "Which axis must be unpacked first?"}
        outcome = "passed" if passed else chance.choices(outcomes, (8, 6, 1, 1, 1, 1))[0]
        title = f"does what check {i} of {id_} asks for"
        fields = {"title": title} if passed else {"title": title, **explanation}
        checks.append(make.check(f"check_{i}", 0.5 * passed, 0.5, outcome, **fields))
    number = chance.randrange(9) if is_wrong else 8
    named = Diagnosed(
        id=f"misconception_{number}", title=f"You did number {number}.", hint="Look again."
    )
    return make.exercise(id_, *checks, diagnosis=(named,) if number < 8 else ())
