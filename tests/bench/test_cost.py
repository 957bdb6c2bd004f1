"""The benchmark measures what it says: the same checks for everybody, and no run that graded otherwise."""

import pytest

from bench.cost import measured
from bench.graders import GRADERS
from bench.mixed_class import class_of
from bench.names import text_of
from bench.six_checks import RIGHT, SETUP, WRONG, WRONG_EARNS, plain
from manyheads.course import load_course
from manyheads.diagnosis import load_bank
from tests.make import REPOSITORY


@pytest.mark.parametrize(("attempt", "points"), [(RIGHT, 18), (WRONG, WRONG_EARNS)], ids=["right", "wrong"])
def test_the_plain_form_of_the_checks_gives_what_is_earned(attempt, points):
    names: dict[str, object] = {}
    exec(SETUP, names)
    exec(attempt, names)
    earned = 0
    for statements in plain().values():
        try:
            exec(statements, dict(names))
            earned += 1
        except AssertionError:
            pass
    assert earned == points


@pytest.mark.journey
@pytest.mark.parametrize("name", GRADERS)
def test_each_grader_tells_a_right_attempt_from_a_wrong_one(name, tmp_path):
    laid_out = GRADERS[name].laid_out(tmp_path, {"right": RIGHT, "wrong": WRONG})
    cost = measured(laid_out.command, tmp_path, 2)
    assert laid_out.scores() == {"right": 18, "wrong": WRONG_EARNS}
    assert cost.wall > 0


def test_a_command_that_fails_is_not_measured_and_what_it_said_is_told(tmp_path):
    with pytest.raises(SystemExit, match="no such course"):
        measured(["sh", "-c", "echo no such course; exit 3"], tmp_path)


@pytest.mark.journey
def test_every_mutant_is_handed_in_with_all_that_its_bank_shares_with_others():
    for exercise in load_course(REPOSITORY).exercises:
        for mutant in load_bank(exercise).mutants[::25]:
            names: dict[str, object] = {}
            exec(text_of(exercise, mutant), names)
            assert mutant.source or names.keys() >= mutant.namespace.keys()


def test_a_class_has_every_exercise_and_as_many_faults_as_asked():
    stems = {path.stem for path in (REPOSITORY / "solutions" / "multi_head_attention").glob("*.py")}
    paths = [*REPOSITORY.glob("solutions/*/*.py"), *REPOSITORY.glob("grader/right/*/*.py")]
    right = {path.read_text().strip() for path in paths}

    def share_of_right(faulty: float) -> float:
        files = [file for _, files in class_of(REPOSITORY, 40, faulty) for file in files.values()]
        return sum(file.text.rpartition("\n\nHANDED_IN_BY")[0].strip() in right for file in files) / len(files)

    (_, one), (_, another) = class_of(REPOSITORY, 2, 0.5)
    assert one.keys() == another.keys() == stems
    assert one != another
    assert [share_of_right(faulty) for faulty in (0, 0.5, 1)] == [1, 0.5, 0]
