"""Fixtures: nbgrader's commands as a person runs them, and a class that sets traps for nbgrader.

nbgrader takes seconds to start. So the class is graded once, for all tests and all workers.
"""

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from manyheads.result import Outcome, Result
from tests import make
from tests.make import REPOSITORY, TINY
from tests.platforms.nbgrader_class import copy_for_nbgrader, hand_in_class
from tests.warm import run_warm
from tests.workflows.hosted.service import Service

# to import it takes every worker of pytest's a second
if importlib.util.find_spec("nbgrader") is None:
    pytest.skip("nbgrader is not installed", allow_module_level=True)


Done = subprocess.CompletedProcess[str]
Nbgrader = Callable[..., Done]


@pytest.fixture(scope="session")
def nbgrader(tmp_path_factory: pytest.TempPathFactory) -> Nbgrader:
    """Run an nbgrader command in a folder, without the user's Jupyter or an active environment."""
    home = tmp_path_factory.mktemp("home")

    def run(folder: Path, *arguments: str | Path, check: bool = True) -> Done:
        ours = {
            "HOME": str(home),
            "PATH": os.defpath,
            "PYTHONPATH": str(REPOSITORY),
            "COLUMNS": "200",
        }
        completed = run_warm(
            "nbgrader", [str(argument) for argument in arguments], folder, {**os.environ, **ours}
        )
        if check:
            assert completed.returncode == 0, completed.stdout + completed.stderr
        return completed

    return run


@pytest.fixture(scope="session")
def trap_class(once: Callable[..., Path], nbgrader: Nbgrader) -> Path:
    """The class of `hand_in` after nbgrader's own commands. Read only: all workers share it."""

    def through(folder: Path) -> None:
        copy_for_nbgrader(TINY, folder)
        hand_in_class(folder / "submitted")
        original = make.content(folder / "submitted")
        nbgrader(folder, "generate_assignment", "averages", "--force")
        nbgrader(
            folder, "db", "assignment", "add", "averages", "--duedate", "2026-01-01 12:00:00 UTC"
        )
        (folder / "autograde.log").write_text(nbgrader(folder, "autograde", "averages").stderr)
        nbgrader(folder, "generate_feedback", "averages")
        assert make.content(folder / "submitted") == original  # what students handed in is theirs

    return once("trap_class", through)


@pytest.fixture
def own_class(trap_class: Path, tmp_path: Path) -> Path:
    """A copy of it to run commands in."""
    return shutil.copytree(trap_class, tmp_path / "own_class")


MakeResult = Callable[..., Result]
PASSED: list[Outcome] = ["passed"] * 4


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """The hosting service, with no repository yet."""
    with Service(tmp_path / "repositories") as opened:
        yield opened


@pytest.fixture
def make_result() -> MakeResult:
    """A result of the tiny course's four checks, a point each."""

    def build_result(*outcomes: Outcome, evidence: str = "", **fields: Any) -> Result:
        checks = []
        for i, outcome in enumerate([*outcomes, *PASSED][:4]):
            passed = outcome == "passed"
            texts = {} if passed else {"evidence": evidence, "hint": "Think."}
            checks.append(make.check(f"c{i}", passed, 1, outcome, title=f"does thing {i}", **texts))
        score = None if "skipped" in outcomes else sum(check.score for check in checks)
        graded = make.exercise("running_mean", *checks, score=score, **fields)
        return make.result("ada", graded, versions={"torch": "2.13.0"})

    return build_result
