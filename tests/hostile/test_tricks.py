"""Each trick earns no more than its tensors, touches no other student, and brings no secret out."""

from pathlib import Path

import pytest

from tests.hostile.conftest import SECRETS, SECTIONS, hands_in
from tests.hostile.tricks import ATTEMPTS, TRICKS
from tests.make import TINY

LEAST = {"passes_the_connection_on": 0}  # where chance decides which way it fails


def section_param(section, *values):
    """An attempt that exhausts the machine is a journey: most last until they are ended."""
    marks = [pytest.mark.journey] if "exhausting" in section else []
    return pytest.param(section, *values, marks=marks, id=values[0] if values else section)


of_each_section = pytest.mark.parametrize(
    "graded_section", [section_param(section) for section in SECTIONS], indirect=True
)


@pytest.fixture(scope="module")
def graded_section(request, classes):
    """The whole section, graded."""
    return classes.section(request.param)


def test_no_trick_was_lost():
    assert sum(map(len, TRICKS.values())) == 115


@pytest.mark.parametrize(
    ("graded_section", "name", "trick"),
    [
        section_param(section, name, trick)
        for section in SECTIONS
        for category in section.split("+")
        for name, trick in TRICKS[category].items()
    ],
    indirect=["graded_section"],
)
def test_earns_what_its_tensors_earn(graded_section, name, trick):
    graded_section.assert_earned(name, trick.most_points, trick.says, least=LEAST.get(name))


@of_each_section
def test_neighbours_and_the_world_are_as_if_nobody_was_hostile(graded_section, classes):
    classes.assert_untouched(graded_section)


@of_each_section
def test_the_run_ends_by_itself_and_finds_no_fault_in_the_grader(graded_section):
    assert graded_section.status == 0, graded_section.text


BETWEEN = ATTEMPTS / "between"
LEAVES = (BETWEEN / "leaves_everything_behind.py").read_text(encoding="utf-8")
LOOKS = (BETWEEN / "looks_for_what_is_left.py").read_text(encoding="utf-8")
PAIRS = 2


@pytest.fixture(
    scope="module", params=[1, 2], ids=["one judge after the other", "two judges at once"]
)
def in_turns(request, classes):
    """Those who leave and those who look, in turns: with two judges, one of each at any time."""
    students = {
        # the same text would be judged once
        f"{i}_{role}": hands_in(f"{text}# {i}\n")
        for i in range(PAIRS)
        for role, text in (("leaves", LEAVES), ("looks", LOOKS))
    }
    name = f"between_{request.param}_judges"
    return classes.tricks(name, students, jobs=request.param, interval=0)


@pytest.mark.parametrize("pair", range(PAIRS))
def test_who_looks_sees_nothing_and_answers_and_who_leaves_things_behind_earns_nothing(
    in_turns, pair
):
    """Each thing that could be seen is an exception of its own, and the evidence would name it."""
    in_turns.assert_earned(f"{pair}_looks", 4, "")
    in_turns.assert_earned(f"{pair}_leaves", 0, "No answer within|ended")


def test_nobody_else_is_touched_by_students_in_turns(in_turns, classes):
    assert in_turns.status == 0, in_turns.text
    classes.assert_untouched(in_turns)


SOLUTION = TINY / "solutions" / "averages" / "01_running_mean.py"
CHECKS = TINY / "grader" / "checks" / "test_running_mean.py"
MUTANTS = TINY / "grader" / "misconceptions" / "running_mean.py"
RELEASED = TINY / "exercises" / "averages" / "01_running_mean.py"
WRONG = TINY / "grader" / "wrong" / "running_mean"
SAYING = [*map(section_param, SECTIONS), "wrong"]
BROKEN = ("", "raise ValueError('x')", "import manyheads", "x = 1 / 0", "def running_mean(")
# what attempts put beside the hidden inputs, wherever a word of theirs might come out
LEAK = "manyheads_leak"


def long_lines(path: Path) -> set[str]:
    """Return the lines that are long enough to be told from any other text."""
    lines = map(str.strip, path.read_text(encoding="utf-8").splitlines())
    return {line for line in lines if len(line) > 24}


@pytest.fixture(scope="module", params=SAYING)
def output(request, classes):
    """Everything that a run says: to the terminal, and in every result."""
    if request.param == "wrong":
        paths = [RELEASED, *WRONG.glob("*.py")]
        texts = [*BROKEN, *(path.read_text(encoding="utf-8") for path in paths)]
        students = {f"wrong_{number}": hands_in(text) for number, text in enumerate(texts)}
        run = classes.tricks("wrong", students, interval=0)
    else:
        run = classes.section(request.param)
    return run, "\n".join([run.text, *run.results.values()])


def test_no_planted_secret_no_path_of_the_machine_and_no_hidden_input_comes_out(output):
    run, text = output
    assert [name for name, secret in SECRETS.items() if secret in text] == []
    assert [path for path in run.paths if path in text] == []
    assert LEAK not in text


def test_no_line_of_the_solution_the_hidden_checks_or_the_mutants_comes_out(output):
    _, text = output
    for path in (SOLUTION, CHECKS, MUTANTS):
        hidden = long_lines(path) - long_lines(RELEASED)
        # the docstring of a check is its title, which is no secret
        hidden = {line for line in hidden if path != CHECKS or not line.startswith('"""')}
        assert hidden
        assert [line for line in hidden if line in text] == []


def test_no_command_for_a_ci_and_no_control_character_comes_out(output):
    run, text = output
    assert "::" not in "".join(run.results.values())
    assert not [c for c in text if c != "\n" and not c.isprintable()]


def test_the_secrets_were_there_to_be_found(classes):
    folder = classes.section_folder("stealing+forging")
    planted = b"".join(p.read_bytes() for p in (folder / "course").rglob("*") if p.is_file())
    missing = {name for name, secret in SECRETS.items() if secret.encode() not in planted}
    assert missing == {"a token of the environment", "a line of a neighbour's attempt"}
