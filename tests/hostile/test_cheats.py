"""Cheats that machine learning code invites: the right answer to another question."""

from pathlib import Path

import pytest

# trick: (points of 4, what a lost check says, why that many)
EARNS = {
    "answers_by_hash": (0, r"should have shape|values differ", "inputs are drawn afresh"),
    "answers_by_seed": (0, r"should have shape|values differ",
        "the seed is made from a secret, the student and the attempt"),
    "answers_by_shape": (0, r"should have shape|values differ", "seven numbers, as the first check asks"),
    "cached_by_data_ptr": (2, r"should have shape|values differ", "the shape, and the refusal"),
    "changed_defaults": (4, r"", "right; its defaults end with its process"),
    "graph_of_the_argument_cut_and_forged": (3, r"no gradient reaches the first argument",
        "right but for the gradient"),
    "patched_functions": (0, r"values differ", "zeros of the right shape; the reference is in another process"),
    "right_the_first_time_only": (1, r"should have shape|values differ", "right in the first check"),
    "tells_grading_from_practice": (0, r"should have shape|values differ", "a number alone"),
    "work_left_for_later": (1, r"values differ", "zeros of the right shape: what was sent is what was there"),
    "zeroes_the_inputs": (0, r"values differ", "zeros of the right shape: the judge keeps its inputs to itself"),
}  # fmt: skip


@pytest.fixture(scope="module")
def run(classes):
    """The whole section, graded."""
    return classes.section("tensors+cheats")


def test_every_trick_stands_in_the_table():
    assert {path.stem for path in (Path(__file__).parent / "attempts" / "cheats").glob("*.py")} == set(EARNS)


@pytest.mark.parametrize(("trick", "most", "says"), [(t, *row[:2]) for t, row in EARNS.items()], ids=EARNS)
def test_earns_what_its_tensors_earn(run, trick, most, says):
    run.assert_earned(trick, most, says)


def test_neighbours_and_the_world_are_as_if_nobody_was_hostile(run, classes):
    classes.assert_untouched(run)


def test_the_run_ends_by_itself_and_finds_no_fault_in_the_grader(run):
    assert run.status == 0, run.text
