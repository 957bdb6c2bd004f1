"""The commands of the benchmark of graders run, and a command that fails shows its error."""

import os
import sys
from pathlib import Path

import pytest

from bench.cost import measure_cost
from bench.graders import GRADERS, run_into_log
from bench.six_checks import RIGHT, WRONG, WRONG_EARNS


@pytest.fixture
def bare_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the programs of the Python environment from PATH."""
    scripts = Path(sys.executable).parent
    folders = os.environ["PATH"].split(os.pathsep)
    monkeypatch.setenv(
        "PATH", os.pathsep.join(folder for folder in folders if Path(folder) != scripts)
    )


@pytest.mark.journey
@pytest.mark.usefixtures("bare_path")
@pytest.mark.parametrize("name", GRADERS)
def test_each_grader_scores_a_right_and_a_wrong_attempt(name, tmp_path):
    """nbgrader is found without an activated environment."""
    course = GRADERS[name].laid_out(tmp_path, {"right": RIGHT, "wrong": WRONG})
    cost = measure_cost(course.command, tmp_path, 2)
    assert course.scores() == {"right": 18, "wrong": WRONG_EARNS}  # 18: all points
    assert cost.wall > 0


def test_a_command_that_fails_is_not_measured(tmp_path):
    with pytest.raises(SystemExit, match="no such course"):
        measure_cost(["sh", "-c", "echo no such course; exit 3"], tmp_path)


def test_a_command_that_fails_shows_its_last_lines(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "raise RuntimeError('no such table')"]
    with (
        (tmp_path / "log.txt").open("wb") as log,
        pytest.raises(SystemExit, match=r"ended with 1:\n(.|\n)*no such table"),
    ):
        run_into_log(command, tmp_path, log)
