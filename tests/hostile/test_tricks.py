"""What each trick earns, what a lost check says of it, that nobody else is touched, and that no
secret comes out.
"""

from pathlib import Path

import pytest

from tests.hostile.conftest import SECRETS, SECTIONS, attempts_of, grade, hands_in, texts_of
from tests.hostile.tricks import TRICKS
from tests.make import TINY

LEAST = {"passes_the_connection_on": 0}  # where chance decides which way it fails


def section_param(section, *values):
    """Attempts that exhaust the machine are a journey: most of them last until somebody ends
    them.
    """
    marks = [pytest.mark.journey] if "exhausting" in section else []
    return pytest.param(section, *values, marks=marks, id=values[0] if values else section)


of_each_section = pytest.mark.parametrize(
    "run", [section_param(section) for section in SECTIONS], indirect=True
)


@pytest.fixture(scope="module")
def run(request, classes):
    """The whole section, graded."""
    return classes.section(request.param)


@pytest.mark.parametrize("kind", TRICKS)
def test_every_trick_stands_in_the_table(kind):
    assert texts_of(kind).keys() == TRICKS[kind].keys()


@pytest.mark.parametrize(
    ("run", "trick", "most", "says"),
    [
        section_param(section, trick, *row[:2])
        for section in SECTIONS
        for category in section.split("+")
        for trick, row in TRICKS[category].items()
    ],
    indirect=["run"],
)
def test_earns_what_its_tensors_earn(run, trick, most, says):
    run.assert_earned(trick, most, says, least=LEAST.get(trick))


@of_each_section
def test_neighbours_and_the_world_are_as_if_nobody_was_hostile(run, classes):
    classes.assert_untouched(run)


@of_each_section
def test_the_run_ends_by_itself_and_finds_no_fault_in_the_grader(run):
    assert run.status == 0, run.text


BETWEEN = Path(__file__).parent / "attempts" / "between"
LEAVES = (BETWEEN / "leaves_everything_behind.py").read_text(encoding="utf-8")
LOOKS = (BETWEEN / "looks_for_what_is_left.py").read_text(encoding="utf-8")
PAIRS = 2


@pytest.fixture(
    scope="module", params=[1, 2], ids=["one judge after the other", "two judges at once"]
)
def in_turns(request, classes):
    """Those who leave and those who look, in turns: with two judges, one of each at any time."""
    texts = {
        f"{i}_{role}": text
        for i in range(PAIRS)
        for role, text in (("leaves", LEAVES), ("looks", LOOKS))
    }
    # the same would be judged once
    students = {name: hands_in(f"{text}# {name}\n") for name, text in texts.items()}
    return classes.tricks(
        f"between_{request.param}_judges", students, jobs=request.param, neighbours=False
    )


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
EXHAUSTING = pytest.param("exhausting", marks=pytest.mark.journey)  # graded there, in a minute
SAYING = ["stealing+forging", EXHAUSTING, "wire", "tensors+cheats", "wrong"]
BROKEN = ("", "raise ValueError('x')", "import manyheads", "x = 1 / 0", "def running_mean(")
# what attempts put beside the hidden inputs, wherever a word of theirs might come out
LEAK = "manyheads_leak"


def lines_of(path: Path) -> set[str]:
    """The lines that are long enough to be told from any other text."""
    return {
        line.strip()
        for line in path.read_text(encoding="utf-8").splitlines()
        if len(line.strip()) > 24
    }


def titles() -> set[str]:
    """What a check says to students is no secret: its docstring."""
    return {
        line.strip()
        for line in CHECKS.read_text(encoding="utf-8").splitlines()
        if line.strip().startswith('"""')
    }


@pytest.fixture(scope="module", params=SAYING)
def output(request, classes):
    """Everything that a run says: to the terminal, and in every result."""
    if request.param == "wrong":
        released = RELEASED.read_text(encoding="utf-8")
        attempts = {path.stem: path.read_text(encoding="utf-8") for path in WRONG.glob("*.py")} | {
            "stub": released
        }
        attempts |= {f"broken_{number}": text for number, text in enumerate(BROKEN)}
        run = classes.tricks(
            "wrong", {name: hands_in(text) for name, text in attempts.items()}, neighbours=False
        )
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
        hidden = lines_of(path) - lines_of(RELEASED) - titles()
        assert hidden
        assert [line for line in hidden if line in text] == []


def test_no_command_for_a_ci_and_no_control_character_comes_out(output):
    run, text = output
    assert "::" not in "".join(run.results.values())
    assert not [c for c in text if c != "\n" and not c.isprintable()]


def test_the_secrets_were_there_to_be_found(classes):
    folder = classes.folder_of(
        "stealing+forging", lambda root: grade(root, attempts_of("stealing+forging"))
    )
    files = (path for path in (folder / "course").rglob("*") if path.is_file())
    planted = "".join(
        path.read_text(encoding="utf-8") for path in files if path.suffix != ".safetensors"
    )
    missing = {name for name, secret in SECRETS.items() if secret not in planted}
    assert missing == {"a token of the environment", "a line of a neighbour's attempt"}
