"""The benchmark's commands run without an activated environment, and one that fails shows why."""

import os
import sys
from pathlib import Path

import pytest

from bench.cost import measure_cost
from bench.graders import GRADERS, run_into_log
from bench.six_checks import RIGHT, WRONG, WRONG_EARNS


@pytest.fixture
def bare_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """A PATH on which no program of the environment stands."""
    scripts = Path(sys.executable).parent
    folders = os.environ["PATH"].split(os.pathsep)
    monkeypatch.setenv(
        "PATH", os.pathsep.join(folder for folder in folders if Path(folder) != scripts)
    )


@pytest.mark.journey
@pytest.mark.usefixtures("bare_path")
@pytest.mark.parametrize("name", GRADERS)
def test_each_grader_tells_a_right_attempt_from_a_wrong_one(name, tmp_path):
    """Without an activated environment, nbgrader's class is laid out by its own commands."""
    laid_out = GRADERS[name].laid_out(tmp_path, {"right": RIGHT, "wrong": WRONG})
    cost = measure_cost(laid_out.command, tmp_path, 2)
    assert laid_out.scores() == {"right": 18, "wrong": WRONG_EARNS}
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
