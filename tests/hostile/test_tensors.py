"""Tensors that are not what they seem, and things that are no tensors."""

from pathlib import Path

import pytest

# trick: (points of 4, what a lost check says, why that many)
EARNS = {
    "aliased": (0, r"values differ", "zeros of the right shape"),
    "class_in_place_of_a_function": (0, r"yours returned an object of another type", "not a tensor"),
    "complex": (0, r"yours returned a strided complex128 tensor", "not numbers on a line"),
    "empty_and_enormous": (0, r"something that is not an answer: a tensor's shape is out of bounds", "no numbers"),
    "float32_for_float64": (4, r"", "right to rounding, and the dtype is no check of this exercise"),
    "float64_for_float32": (4, r"", "right, and the dtype is no check of this exercise"),
    "float8": (0, r"not an answer|yours returned", "eight bits are read by no check"),
    "refusal_in_half_a_letter": (4, r"", "right: what no encoding can write is a text like any other"),
    "generator": (0, r"yours returned a generator", "not a tensor"),
    "huge_integer": (0, r"raised OverflowError", "not a float"),
    "list_of_right_numbers": (0, r"yours returned a list", "not a tensor"),
    "many_axes": (0, r"should have shape|values differ", "one number in sixty axes"),
    "meta": (0, r"on the meta device, without numbers", "no numbers"),
    "nan_and_inf": (0, r"values differ.*the most at", "NaN agrees with nothing; the shape is right"),
    "nested": (0, r"raised RuntimeError|yours returned", "not a plain tensor"),
    "nothing": (0, r"yours returned None", "not a tensor"),
    "numpy_array": (0, r"yours returned an? ndarray", "not a tensor"),
    "parameter": (3, r"no gradient reaches the first argument", "right but for the gradient"),
    "quantised": (0, r"yours returned a strided qint8 tensor", "not plain numbers"),
    "sparse": (0, r"yours returned a sparse_coo float64 tensor", "not a plain tensor"),
    "subclassed": (4, r"", "it holds the right numbers"),
    "tuple_of_tensors": (0, r"yours returned a tuple", "not a tensor"),
    "type_that_lies": (0, r"raised AttributeError|yours returned", "not a tensor"),
    "zero_stride": (0, r"more memory was asked for|ended its own process|SIGKILL", "more than memory holds"),
}


@pytest.fixture(scope="module")
def run(classes):
    """The whole section, graded."""
    return classes.section("tensors+cheats")


def test_every_trick_stands_in_the_table():
    assert {path.stem for path in (Path(__file__).parent / "attempts" / "tensors").glob("*.py")} == set(EARNS)


@pytest.mark.parametrize(("trick", "most", "says"), [(t, *row[:2]) for t, row in EARNS.items()], ids=EARNS)
def test_earns_what_its_tensors_earn(run, trick, most, says):
    run.assert_earned(trick, most, says)


def test_neighbours_and_the_world_are_as_if_nobody_was_hostile(run, classes):
    classes.assert_untouched(run)


def test_the_run_ends_by_itself_and_finds_no_fault_in_the_grader(run):
    assert run.status == 0, run.text
