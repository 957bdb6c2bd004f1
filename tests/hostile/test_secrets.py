"""Nothing that the grader says holds a secret, a path of the machine, or a line of a solution or a hidden check."""

from pathlib import Path

import pytest

from tests.hostile.conftest import SECRETS, attempts_of, grade, hands_in
from tests.make import TINY

SOLUTION = TINY / "solutions" / "averages" / "01_running_mean.py"
CHECKS = TINY / "grader" / "checks" / "test_running_mean.py"
MUTANTS = TINY / "grader" / "misconceptions" / "running_mean.py"
RELEASED = TINY / "exercises" / "averages" / "01_running_mean.py"
WRONG = TINY / "grader" / "wrong" / "running_mean"

EXHAUSTING = pytest.param("exhausting", marks=pytest.mark.journey)  # graded there, in a minute
SECTIONS = ["stealing+forging", EXHAUSTING, "wire", "tensors+cheats", "wrong"]
BROKEN = ("", "raise ValueError('x')", "import manyheads", "x = 1 / 0", "def running_mean(")
LEAK = "manyheads_leak"  # what attempts put beside the hidden inputs, wherever a word of theirs might come out


def lines_of(path: Path) -> set[str]:
    """The lines that are long enough to be told from any other text."""
    return {line.strip() for line in path.read_text(encoding="utf-8").splitlines() if len(line.strip()) > 24}


def titles() -> set[str]:
    """What a check says to students is no secret: its docstring."""
    return {line.strip() for line in CHECKS.read_text(encoding="utf-8").splitlines() if line.strip().startswith('"""')}


@pytest.fixture(scope="module", params=SECTIONS)
def output(request, classes):
    """Everything that a run says: to the terminal, and in every result."""
    if request.param == "wrong":
        released = RELEASED.read_text(encoding="utf-8")
        wrong = {path.stem: path.read_text(encoding="utf-8") for path in WRONG.glob("*.py")} | {"stub": released}
        wrong |= {f"broken_{number}": text for number, text in enumerate(BROKEN)}
        run = classes.tricks("wrong", {name: hands_in(text) for name, text in wrong.items()}, neighbours=False)
    else:
        run = classes.section(request.param)
    return run, "\n".join([run.text, *run.results.values()])


def test_no_planted_secret_no_path_of_the_machine_and_no_hidden_input_comes_out(output):
    run, said = output
    assert [name for name, secret in SECRETS.items() if secret in said] == []
    assert [path for path in run.paths if path in said] == []
    assert LEAK not in said


def test_no_line_of_the_solution_the_hidden_checks_or_the_mutants_comes_out(output):
    _, said = output
    for path in (SOLUTION, CHECKS, MUTANTS):
        hidden = lines_of(path) - lines_of(RELEASED) - titles()
        assert hidden
        assert [line for line in hidden if line in said] == []


def test_no_command_for_a_ci_and_no_control_character_comes_out(output):
    run, said = output
    assert "::" not in "".join(run.results.values())
    assert not [c for c in said if c != "\n" and not c.isprintable()]


def test_the_secrets_were_there_to_be_found(classes):
    folder = classes.folder_of("stealing+forging", lambda root: grade(root, attempts_of("stealing+forging")))
    files = (path for path in (folder / "course").rglob("*") if path.is_file())
    planted = "".join(path.read_text(encoding="utf-8") for path in files if path.suffix != ".safetensors")
    missing = {name for name, secret in SECRETS.items() if secret not in planted}
    assert missing == {"a token of the environment", "a line of a neighbour's attempt"}
