"""Hostile attempts are graded among honest ones.

Each earns at most the points that its comment allows, changes no other student's result, and
reveals no secret.
"""

from pathlib import Path

import pytest

from tests.hostile.conftest import SECRETS, SECTIONS, hands_in
from tests.hostile.tricks import ATTEMPTS, TRICKS
from tests.make import TINY

# the fewest points of a trick, if they differ from the most: here chance decides what fails
FEWEST_POINTS = {"passes_the_connection_on": 0}


def section_param(section, *values):
    """Return a row for `parametrize`.

    Attempts that exhaust the machine run until their time limit, so their rows are marked as
    slow tests (journeys).
    """
    marks = [pytest.mark.journey] if "exhausting" in section else []
    return pytest.param(section, *values, marks=marks, id=values[0] if values else section)


for_each_section = pytest.mark.parametrize(
    "graded_section", [section_param(section) for section in SECTIONS], indirect=True
)


@pytest.fixture(scope="module")
def graded_section(request, classes):
    """Return the grading run of a whole section of hostile attempts."""
    return classes.section(request.param)


def test_all_115_tricks_are_read():
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
def test_a_trick_earns_no_more_than_its_comment_allows(graded_section, name, trick):
    graded_section.assert_earned(
        name, trick.most_points, trick.evidence_pattern, least=FEWEST_POINTS.get(name)
    )


@for_each_section
def test_tricks_change_no_honest_result_and_no_watched_file(graded_section, classes):
    classes.assert_untouched(graded_section)


@for_each_section
def test_grading_a_section_exits_with_status_0(graded_section):
    assert graded_section.status == 0, graded_section.text


BETWEEN = ATTEMPTS / "between"
LEAVING_ATTEMPT = (BETWEEN / "leaves_everything_behind.py").read_text(encoding="utf-8")
LOOKING_ATTEMPT = (BETWEEN / "looks_for_what_is_left.py").read_text(encoding="utf-8")
PAIRS = 2


@pytest.fixture(
    scope="module", params=[1, 2], ids=["one judge after the other", "two judges at once"]
)
def alternating_run(request, classes):
    """Return the run of students who leave data behind and students who look for it, alternating.

    With two judges, one of each kind is graded at the same time.
    """
    students = {
        # the same text would be judged once
        f"{i}_{role}": hands_in(f"{text}# {i}\n")
        for i in range(PAIRS)
        for role, text in (("leaves", LEAVING_ATTEMPT), ("looks", LOOKING_ATTEMPT))
    }
    name = f"between_{request.param}_judges"
    return classes.tricks(name, students, jobs=request.param, interval=0)


@pytest.mark.parametrize("pair", range(PAIRS))
def test_an_attempt_finds_nothing_that_another_attempt_left(alternating_run, pair):
    """If an attempt finds something, it raises an exception, which the evidence would name."""
    alternating_run.assert_earned(f"{pair}_looks", 4, "")
    alternating_run.assert_earned(f"{pair}_leaves", 0, "No answer within|ended")


def test_alternating_students_change_no_honest_result(alternating_run, classes):
    assert alternating_run.status == 0, alternating_run.text
    classes.assert_untouched(alternating_run)


SOLUTION = TINY / "solutions" / "averages" / "01_running_mean.py"
CHECKS = TINY / "grader" / "checks" / "test_running_mean.py"
MUTANTS = TINY / "grader" / "misconceptions" / "running_mean.py"
RELEASED = TINY / "exercises" / "averages" / "01_running_mean.py"
WRONG = TINY / "grader" / "wrong" / "running_mean"
SECTIONS_WITH_OUTPUT = [*map(section_param, SECTIONS), "wrong"]
BROKEN = ("", "raise ValueError('x')", "import manyheads", "x = 1 / 0", "def running_mean(")
# hostile attempts put this word beside each hidden input that they try to smuggle out
LEAK = "manyheads_leak"


def long_lines(path: Path) -> set[str]:
    """Return the lines longer than 24 characters: shorter ones may occur in any text."""
    lines = map(str.strip, path.read_text(encoding="utf-8").splitlines())
    return {line for line in lines if len(line) > 24}


@pytest.fixture(scope="module", params=SECTIONS_WITH_OUTPUT)
def output(request, classes):
    """Return a run, and the text of its terminal output and of all its results."""
    if request.param == "wrong":
        paths = [RELEASED, *WRONG.glob("*.py")]
        texts = [*BROKEN, *(path.read_text(encoding="utf-8") for path in paths)]
        students = {f"wrong_{number}": hands_in(text) for number, text in enumerate(texts)}
        run = classes.tricks("wrong", students, interval=0)
    else:
        run = classes.section(request.param)
    return run, "\n".join([run.text, *run.results.values()])


def test_output_contains_no_secret_machine_path_or_hidden_input(output):
    run, text = output
    assert [name for name, secret in SECRETS.items() if secret in text] == []
    assert [path for path in run.paths if path in text] == []
    assert LEAK not in text


def test_output_contains_no_line_of_solution_checks_or_mutants(output):
    _, text = output
    for path in (SOLUTION, CHECKS, MUTANTS):
        hidden = long_lines(path) - long_lines(RELEASED)
        # the docstring of a check is its title, which is no secret
        hidden = {line for line in hidden if path != CHECKS or not line.startswith('"""')}
        assert hidden
        assert [line for line in hidden if line in text] == []


def test_output_contains_no_ci_command_or_control_character(output):
    run, text = output
    # a line with :: could be a command for GitHub Actions
    assert "::" not in "".join(run.results.values())
    assert not [c for c in text if c != "\n" and not c.isprintable()]


def test_the_course_contains_the_planted_secrets(classes):
    folder = classes.section_folder("stealing+forging")
    course_bytes = b"".join(p.read_bytes() for p in (folder / "course").rglob("*") if p.is_file())
    outside_course = {
        name for name, secret in SECRETS.items() if secret.encode() not in course_bytes
    }
    assert outside_course == {"a token of the environment", "a line of a neighbour's attempt"}
