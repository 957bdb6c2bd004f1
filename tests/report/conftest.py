"""What these tests share: a class made up from the models."""

import random
from collections.abc import Callable

import pytest

from manyheads.result import CheckResult, Diagnosed, ExerciseResult, Outcome, Result
from tests import make


@pytest.fixture(scope="session")
def made_up_class() -> Callable[[int], list[Result]]:
    """So many students with 8 exercises of 15 checks each; about a third of the attempts go wrong,
    in every way.
    """
    return lambda students: [_made_up(f"student{i:04d}", random.Random(i)) for i in range(students)]


def _made_up(student: str, chance: random.Random) -> Result:
    exercises = tuple(_exercise(f"exercise_{i}", chance) for i in range(8))
    return make.result(student, *exercises, assignment="heads", versions={"torch": "2.13.0"})


def _exercise(id_: str, chance: random.Random) -> ExerciseResult:
    is_wrong = chance.random() < 0.35
    outcomes: list[Outcome] = ["failed", "error", "timeout", "crashed", "missing", "skipped"]
    checks, template = (
        list[CheckResult](),
        "editing positions {}…7 changes the output of position 0",
    )
    for i in range(15):
        passed = not (is_wrong and chance.random() < 0.4)
        explanation = (
            {}
            if passed
            else {"evidence": template.format(i), "hint": "Which axis must be unpacked first?"}
        )
        end = "passed" if passed else chance.choices(outcomes, (8, 6, 1, 1, 1, 1))[0]
        checks.append(
            make.check(
                f"check_{i}",
                0.5 * passed,
                0.5,
                end,
                title=f"does what check {i} of {id_} asks for",
                **explanation,
            )
        )
    named = chance.randrange(9) if is_wrong else 8
    diagnosis = (
        Diagnosed(
            id=f"misconception_{named}", title=f"You did number {named}.", hint="Look again."
        ),
    )
    return make.exercise(id_, *checks, diagnosis=diagnosis if named < 8 else ())
