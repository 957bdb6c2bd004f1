"""Forging a score: nothing that runs in the box has a say in what it earns."""

from pathlib import Path

import pytest

# trick: (points of 4, what a lost check says, why that many)
EARNS = {
    "assertion_error_is_a_skip": (0, r"raised BaseException on line 17",
        "a number alone, and an exception that is no refusal"),
    "atexit_handler": (0, r"should have shape|values differ",
        "a number alone; the handler stands in a process that nobody listens to"),
    "daemon_that_rewrites_reports": (0, r"should have shape|values differ", "a number alone; no report is in the box"),
    "eq_that_agrees": (0, r"yours returned an object of another type", "not a tensor"),
    "exception_that_lies_about_itself": (0, r"raised an exception of its own on line|raised ValueError on line",
        "an exception, whatever its class says of itself"),
    "exit_inside_the_exceptions_own_text": (0, r"raised Exception on line 11", "an exception without a text"),
    "hooks_found_through_gc": (0, r"should have shape|values differ", "a number alone; pytest is in another process"),
    "os_exit_0_in_a_call": (0, r"ended its own process \(exit status 0\)", "the process is gone in every check"),
    "os_exit_0_while_importing": (0, r"it ended the whole process", "defines nothing"),
    "own_torch_beside_it": (0, r"raised", "its own modules are not in the box"),
    "patched_clocks": (0, r"No answer within", "the judge has a clock of its own"),
    "patched_comparisons": (0, r"should have shape|values differ", "a number alone; values are compared in the judge"),
    "patched_tolerances": (0, r"should have shape|values differ", "a number alone; values are compared in the judge"),
    "patched_worker": (0, r"should have shape", "the part that patches is left out"),
    "prints_a_report": (0, r"should have shape|values differ", "a number alone; nobody reads what it prints"),
    "pytest_internals": (0, r"should have shape|values differ", "a number alone; pytest is in another process"),
    "refuses_everything": (0, r"raised ValueError on line 5",
        "a refusal counts beside an allowed input that is answered"),
    "subclass_that_lies_about_its_shape": (0, r"should have shape", "a number alone, whatever its class says"),
    "sys_exit_0_in_a_call": (0, r"raised SystemExit on line 6: the code asked Python to exit",
        "an exception like any other"),
    "sys_exit_0_while_importing": (0, r"raised SystemExit", "defines nothing"),
    "torch_function_that_agrees": (0, r"should have shape", "a number alone, whatever its class answers"),
    "trace_function": (0, r"should have shape|values differ|raised TypeError on line",
        "a number alone; it can edit nobody's locals but its own, and from Python 3.13 not even those so"),
}  # fmt: skip


@pytest.fixture(scope="module")
def run(classes):
    """The whole section, graded."""
    return classes.section("stealing+forging")


def test_every_trick_stands_in_the_table():
    assert {path.stem for path in (Path(__file__).parent / "attempts" / "forging").glob("*.py")} == set(EARNS)


@pytest.mark.parametrize(("trick", "most", "says"), [(t, *row[:2]) for t, row in EARNS.items()], ids=EARNS)
def test_earns_what_its_tensors_earn(run, trick, most, says):
    run.assert_earned(trick, most, says)


def test_neighbours_and_the_world_are_as_if_nobody_was_hostile(run, classes):
    classes.assert_untouched(run)


def test_the_run_ends_by_itself_and_finds_no_fault_in_the_grader(run):
    assert run.status == 0, run.text
