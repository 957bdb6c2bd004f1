"""The bench measures what it says: the same checks for everybody, all of the CPU time, and no run that graded wrongly."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # bench is no part of the installed package

from bench.graders import PlainPytest
from bench.one_file import one_file
from bench.peers.checks import CHECKS, RIGHT, WRONG, WRONG_EARNS
from bench.peers.cost import Cost, NotMeasured, Running
from bench.peers.forms import ALLCLOSE, ASSERT_CLOSE, assignment
from bench.peers.full_class import class_of
from bench.peers.handed_in import HandedIn
from bench.peers.page import rewrite
from bench.peers.spread import in_turn, spread
from bench.places import REPOSITORY, environment
from manyheads.course import load_course
from manyheads.diagnosis import load_bank

pytestmark = pytest.mark.journey  # each grades with a whole command

ORPHAN = """
import os, signal, time

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if os.fork() == 0:
    while time.process_time() < 0.5:
        pass
    os._exit(0)
time.sleep(0.2)
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
"""


def points(attempt: str, agree: str) -> int:
    wanted = assignment(agree)
    names: dict[str, object] = {}
    exec(wanted.setup, names)
    exec(attempt, names)
    earned = 0
    for statements in wanted.checks.values():
        try:
            exec(statements, dict(names))
            earned += 1
        except AssertionError:
            pass
    return earned


@pytest.mark.parametrize("agree", [ALLCLOSE, ASSERT_CLOSE])
def test_both_forms_of_the_checks_give_a_right_attempt_everything_and_a_wrong_one_what_it_earns(agree):
    assert points(RIGHT, agree) == len(CHECKS) == 18
    assert points(WRONG, agree) == WRONG_EARNS


def test_cpu_time_of_a_process_that_nobody_waits_for_is_counted_where_a_control_group_can_be_made(tmp_path):
    running = Running([sys.executable, "-c", ORPHAN], tmp_path, environment(tmp_path, Path(sys.executable).parent))
    cost = running.wait()
    if cost.beside is None:
        pytest.skip("this machine lets us make no control group")
    assert cost.cpu >= 0.5


def test_a_command_that_fails_is_not_measured_and_what_it_said_is_told(tmp_path):
    running = Running([sys.executable, "-c", "raise SystemExit('no such course')"], tmp_path, {})
    with pytest.raises(NotMeasured, match="no such course"):
        running.wait()


def test_a_run_that_gives_another_score_is_not_measured(tmp_path):
    handed_in = HandedIn(PlainPytest(assignment()), tmp_path / "class", {"wrong": (WRONG, 18.0)})
    with pytest.raises(NotMeasured, match=r"'wrong': 15\.0"):
        handed_in.run()


def test_every_other_pair_begins_with_the_other_one():
    began: list[str] = []

    def contestant(name: str) -> types.SimpleNamespace:
        return types.SimpleNamespace(run=lambda: began.append(name) or Cost(len(name), 0))

    pairs = [in_turn(contestant("a"), contestant("bb"), number) for number in (0, 1)]
    assert began == ["a", "bb", "bb", "a"]
    assert [(mine.wall, theirs.wall) for mine, theirs in pairs] == [(1, 2), (1, 2)]


@pytest.mark.parametrize(
    ("values", "words"), [([58, 61.4, 66], "61.4 (58 to 66)"), ([2.0], "2"), ([170, 171, 9999.7], "171 (170 to 10000)")]
)
def test_a_spread_says_the_middle_the_least_and_the_most(values, words):
    assert str(spread(values)) == words


def test_a_new_measurement_takes_the_place_of_the_old_one_and_of_no_other(tmp_path):
    page = tmp_path / "page.md"
    marked = "a\n<!-- measured: x -->\n\n{x}\n\n<!-- end -->\nb\n<!-- measured: y -->\n\nold y\n\n<!-- end -->\n"
    page.write_text(marked.format(x="old x"))
    rewrite("x", r"| new \1 |", page)
    assert page.read_text() == marked.format(x=r"| new \1 |")
    with pytest.raises(LookupError):
        rewrite("z", "", page)


def test_the_page_has_a_place_for_every_measurement():
    page = (REPOSITORY / "docs" / "performance.md").read_text()
    assert [page.count(f"<!-- measured: {name} -->") for name in ("peers", "floor", "flat", "full")] == [1] * 4


def test_a_mutant_is_handed_in_with_all_that_its_bank_shares_with_others():
    for exercise in load_course(REPOSITORY).exercises:
        names: dict[str, object] = {}
        exec(one_file(exercise.misconceptions), names)
        for mutant in load_bank(exercise).mutants[::50]:
            assert mutant.source or names["make"](**mutant.faults).keys() == mutant.namespace.keys()


def test_a_class_of_the_full_course_has_every_exercise_and_as_many_faults_as_asked():
    stems = {path.stem for path in (REPOSITORY / "solutions" / "multi_head_attention").glob("*.py")}
    right = {
        path.read_text().strip()
        for pattern in ("solutions/*/*.py", "grader/right/*/*.py")
        for path in REPOSITORY.glob(pattern)
    }

    def share_of_right(faulty: float) -> float:
        files = [file for _, files in class_of(REPOSITORY, 40, faulty) for file in files.values()]
        return sum(file.text.rpartition("\n\nHANDED_IN_BY")[0].strip() in right for file in files) / len(files)

    (_, one), (_, another) = class_of(REPOSITORY, 2, 0.5)
    assert one.keys() == another.keys() == stems
    assert one != another
    assert [share_of_right(faulty) for faulty in (0, 0.5, 1)] == [1, 0.5, 0]
