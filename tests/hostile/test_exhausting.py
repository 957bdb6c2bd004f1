"""Exhausting the machine, or whoever waits for an answer."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.journey  # most of them last until somebody ends them

# trick: (points of 4, what a lost check says, why that many)
EARNS = {
    "aborts": (0, r"ended by SIG", "the process is gone"),
    "closes_every_descriptor": (0, r"ended", "the process cannot answer"),
    "daemon_with_setsid": (0, r"ended its own process \(exit status 3\)", "its daemon dies with it"),
    "deep_recursion": (0, r"raised RecursionError on line 5: a function calls itself without end", "an exception"),
    "deep_recursion_in_native_code": (0, r"ended by SIGSEGV|raised RecursionError on line",
        "the process is gone; Python 3.12 bounds such calls apart"),
    "descriptors": (0, r"raised OSError on line 7", "an exception"),
    "dies_at_every_check": (0, r"No answer within",
        "nothing is answered; each death costs a fraction of the one before"),
    "endless_loop": (0, r"No answer within", "nothing is answered"),
    "endless_loop_while_importing": (0, r"Line 4 was left out: it was still at work",
        "nothing stands above or below it"),
    "endless_stdout": (0, r"No answer within", "nothing is answered"),
    "file_larger_than_the_limit": (0, r"raised OSError on line 7", "an exception"),
    "fork_bomb": (0, r"No answer within", "nothing is answered"),
    "full_dev_shm": (0, r"raised OSError on line", "an exception"),
    "full_disk": (0, r"raised OSError on line 10", "an exception"),
    "kills_everybody": (0, r"raised|ended", "there is nobody else to kill"),
    "kills_its_parent": (0, r"raised LookupError", "its parent is out of reach"),
    "kills_itself": (0, r"ended by SIG", "the process is gone"),
    "loop_that_ignores_signals": (0, r"No answer within",
        "nothing is answered; SIGKILL from outside cannot be ignored"),
    "memory_in_many_tensors": (0, r"more memory was asked for than|No answer within|SIGKILL",
        "it gets no more than its limit"),
    "memory_in_memfds": (0, r"raised PermissionError on line 7", "no file stands nowhere"),
    "memory_in_one_tensor": (0, r"more memory was asked for than an attempt may have", "an exception"),
    "memory_that_is_shared": (0, r"raised|No answer within|SIGKILL", "it gets no more than its limit"),
    "reply_of_256_mb": (0, r"ended its own process|No answer within|larger than|SIGKILL",
        "more than memory or a reply may hold"),
    "reply_of_5_mb": (0, r"larger than 4 MiB", "more than a reply may hold"),
    "segmentation_fault": (0, r"ended by SIGSEGV", "the process is gone"),
    "sleeps_to_just_under_each_limit": (0, r"should have shape|values differ" r"|No answer within",
        "a number alone, and the whole attempt has a limit too"),
    "sleeps_while_importing_each_time": (0, r"ended its own process", "the process is gone in every check"),
    "stops_its_parent": (0, r"raised LookupError", "its parent is out of reach, by its number and by its group"),
    "stops_itself": (0, r"No answer within", "nothing is answered"),
    "thread_bomb": (0, r"raised RuntimeError on line|No answer within", "it gets no more threads than its limit"),
}  # fmt: skip


@pytest.fixture(scope="module")
def run(classes):
    """The whole section, graded."""
    return classes.section("exhausting")


def test_every_trick_stands_in_the_table():
    assert {path.stem for path in (Path(__file__).parent / "attempts" / "exhausting").glob("*.py")} == set(EARNS)


@pytest.mark.parametrize(("trick", "most", "says"), [(t, *row[:2]) for t, row in EARNS.items()], ids=EARNS)
def test_earns_what_its_tensors_earn(run, trick, most, says):
    run.assert_earned(trick, most, says)


def test_neighbours_and_the_world_are_as_if_nobody_was_hostile(run, classes):
    classes.assert_untouched(run)


def test_the_run_ends_by_itself_and_finds_no_fault_in_the_grader(run):
    assert run.status == 0, run.text
