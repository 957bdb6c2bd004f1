"""Fixtures for nbgrader and for pull requests.

The "trap class" contains submissions that are known to cause problems for nbgrader. nbgrader takes
seconds to start. Therefore that class is graded once for all tests and all pytest workers.
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

# importing nbgrader only to check for it would cost every pytest worker a second
if importlib.util.find_spec("nbgrader") is None:
    pytest.skip("nbgrader is not installed", allow_module_level=True)


CompletedRun = subprocess.CompletedProcess[str]
Nbgrader = Callable[..., CompletedRun]


@pytest.fixture(scope="session")
def nbgrader(tmp_path_factory: pytest.TempPathFactory) -> Nbgrader:
    """Return a function that runs an nbgrader command in a folder, without the user's settings."""
    home = tmp_path_factory.mktemp("home")

    def run(folder: Path, *arguments: str | Path, check: bool = True) -> CompletedRun:
        variables = {
            "HOME": str(home),
            "PATH": os.defpath,
            "PYTHONPATH": str(REPOSITORY),
            "COLUMNS": "200",
        }
        completed = run_warm(
            "nbgrader",
            [str(argument) for argument in arguments],
            folder,
            {**os.environ, **variables},
        )
        if check:
            assert completed.returncode == 0, completed.stdout + completed.stderr
        return completed

    return run


@pytest.fixture(scope="session")
def trap_class(once: Callable[..., Path], nbgrader: Nbgrader) -> Path:
    """Return the trap class after autograding and feedback. Read only: all workers share it."""

    def run_nbgrader(folder: Path) -> None:
        copy_for_nbgrader(TINY, folder)
        hand_in_class(folder / "submitted")
        original = make.content(folder / "submitted")
        nbgrader(folder, "generate_assignment", "averages", "--force")
        nbgrader(
            folder, "db", "assignment", "add", "averages", "--duedate", "2026-01-01 12:00:00 UTC"
        )
        (folder / "autograde.log").write_text(nbgrader(folder, "autograde", "averages").stderr)
        nbgrader(folder, "generate_feedback", "averages")
        # nbgrader must not change submissions
        assert make.content(folder / "submitted") == original

    return once("trap_class", run_nbgrader)


@pytest.fixture
def trap_class_copy(trap_class: Path, tmp_path: Path) -> Path:
    """Return a copy of the trap class that a test may change."""
    return shutil.copytree(trap_class, tmp_path / "own_class")


MakeResult = Callable[..., Result]
PASSED: list[Outcome] = ["passed"] * 4


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """Return a running stand-in for the hosting service, without repositories."""
    with Service(tmp_path / "repositories") as opened:
        yield opened


@pytest.fixture
def make_result() -> MakeResult:
    """Return a function that makes a result of four checks, one point each.

    Its arguments are the outcomes of the first checks; the remaining checks pass.
    """

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
