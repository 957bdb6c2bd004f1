"""The benchmark's commands run without an activated environment, and one that fails shows why."""

import os
import sys
from pathlib import Path

import pytest

from bench.graders import Nbgrader, run_into_log
from bench.six_checks import RIGHT


@pytest.fixture
def bare_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """A PATH on which no program of the environment stands."""
    scripts = Path(sys.executable).parent
    folders = os.environ["PATH"].split(os.pathsep)
    monkeypatch.setenv(
        "PATH", os.pathsep.join(folder for folder in folders if Path(folder) != scripts)
    )


@pytest.mark.usefixtures("bare_path")
def test_nbgraders_class_is_laid_out_without_an_activated_environment(tmp_path: Path) -> None:
    pytest.importorskip("nbgrader")
    laid_out = Nbgrader.laid_out(tmp_path, {"ada": RIGHT})
    assert (tmp_path / "gradebook.db").exists()
    assert laid_out.students == ("ada",)


def test_a_command_that_fails_shows_its_last_lines(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "raise RuntimeError('no such table')"]
    with (
        (tmp_path / "log.txt").open("wb") as log,
        pytest.raises(SystemExit, match=r"ended with 1:\n(.|\n)*no such table"),
    ):
        run_into_log(command, tmp_path, log)
