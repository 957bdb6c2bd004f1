"""What these tests share: nbgrader's commands as a person runs them, and a class whose notebooks set nbgrader's traps.

nbgrader takes seconds to start. So the class is graded once, for all tests and all workers.
"""

import importlib.util
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from manyheads.platforms.github import Collected, PullRequest
from manyheads.result import Diagnosed, Outcome, Result
from tests import make
from tests.make import REPOSITORY, TINY
from tests.warm import run_warm
from tests.workflows.hosted.service import Service

if importlib.util.find_spec("nbgrader") is None:  # to import it takes every worker of pytest's a second
    pytest.skip("nbgrader is not installed", allow_module_level=True)


STEM = "01_running_mean"
RIGHT = "def running_mean(x):\n    assert len(x)\n    return x.cumsum(0) / x.new_ones(len(x)).cumsum(0)\n"
WRONG = RIGHT.replace("x.new_ones(len(x)).cumsum(0)", "len(x)")

RULE = '''
from nbgrader.plugins import BasePlugin


class TenthPerDay(BasePlugin):
    """A tenth of the score for each day that has begun; nothing is left after ten."""

    def late_submission_penalty(self, student_id, score, total_seconds_late):
        days = -(-total_seconds_late // 86400)
        return score * min(1.0, days / 10)


c.AssignLatePenalties.plugin_class = TenthPerDay
'''

Done = subprocess.CompletedProcess[str]
Nbgrader = Callable[..., Done]


@pytest.fixture(scope="session")
def nbgrader(tmp_path_factory: pytest.TempPathFactory) -> Nbgrader:
    """Run an nbgrader command in a folder. Nothing of this machine's own Jupyter is read, and no environment is active."""
    home = tmp_path_factory.mktemp("home")

    def run(folder: Path, *arguments: str | Path, check: bool = True) -> Done:
        ours = {"HOME": str(home), "PATH": os.defpath, "PYTHONPATH": str(REPOSITORY), "COLUMNS": "200"}
        done = run_warm("nbgrader", [str(each) for each in arguments], folder, {**os.environ, **ours})
        if check:
            assert done.returncode == 0, done.stdout + done.stderr
        return done

    return run


@pytest.fixture(scope="session")
def trap_class(once: Callable[..., Path], nbgrader: Nbgrader) -> Path:
    """The class of `hand_in`, through nbgrader's own commands from beginning to end. To look at: other workers do, too."""

    def make(folder: Path) -> None:
        copy_for_nbgrader(TINY, folder)
        hand_in(folder / "submitted")
        before = digest_of(folder / "submitted")
        (folder / "released").mkdir()
        shutil.copytree(folder / "exercises", folder / "released", dirs_exist_ok=True)
        with (folder / "nbgrader_config.py").open("a") as config:
            config.write(RULE)
        nbgrader(folder, "generate_assignment", "averages", "--force")
        nbgrader(folder, "db", "assignment", "add", "averages", "--duedate", "2026-01-01 12:00:00 UTC")
        (folder / "autograde.log").write_text(nbgrader(folder, "autograde", "averages").stderr)
        nbgrader(folder, "generate_feedback", "averages")
        assert digest_of(folder / "submitted") == before  # what students handed in is theirs

    return once("trap_class", make)


@pytest.fixture
def own_class(trap_class: Path, tmp_path: Path) -> Path:
    """A copy of it to run commands in."""
    return shutil.copytree(trap_class, tmp_path / "own_class")


def copy_for_nbgrader(source: Path, target: Path) -> Path:
    """Copy a course as an instructor has it, nbgrader's configuration among it."""
    wanted = ("course.yaml", "solutions", "exercises", "grader")
    for name in wanted:
        copy = shutil.copytree if (source / name).is_dir() else shutil.copy
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        copy(source / name, target / name)
    for cache in [*target.rglob("__pycache__")]:
        shutil.rmtree(cache)
    shutil.copy(REPOSITORY / "nbgrader_config.py", target)
    return target


def digest_of(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def filled(source: str) -> dict:
    """The released notebook with this in its solution cell."""
    notebook = json.loads((TINY / "exercises" / "averages" / f"{STEM}.ipynb").read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("solution"):
            cell["source"] = source
    return notebook


def graded(notebook: dict) -> list[dict]:
    return [c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("points")]


def edited() -> dict:
    notebook = filled(RIGHT)
    for cell in graded(notebook):
        cell["source"], cell["metadata"]["editable"] = "mine = 'now'", True
    return notebook


def without_graded() -> dict:
    notebook = filled(RIGHT)
    return {**notebook, "cells": [cell for cell in notebook["cells"] if cell not in graded(notebook)]}


def tampered() -> dict:
    """Graded cells copied, dearer, of fewer checks, with full marks as outputs, and cells that are not to run."""
    notebook = filled(WRONG)
    for cell in notebook["cells"]:
        cell["metadata"]["tags"] = ["skip-execution", "raises-exception"]
    for cell in graded(notebook):
        cell["metadata"]["nbgrader"]["points"] = 100
        cell["metadata"]["manyheads"] = {"checks": ["shape"]}
        full = {"data": {"text/plain": "1.0"}, "metadata": {}, "execution_count": 1}
        cell["outputs"] = [{"output_type": "execute_result", **full}]
    copies = json.loads(json.dumps(graded(notebook)))
    return {**notebook, "cells": [copies[0], *notebook["cells"], *copies]}


def mislabelled() -> dict:
    notebook = filled(RIGHT)
    kinds = [{"schema_version": 99}, {"grade_id": 7}, {"locked": False, "solution": True}, {"points": "many"}]
    for cell, change in zip(graded(notebook), kinds, strict=True):
        cell["metadata"]["nbgrader"].update(change)
    notebook["cells"][0]["metadata"]["nbgrader"] = "mine"
    notebook["metadata"] = {"kernelspec": {"name": "bash", "language": "bash", "display_name": "Bash"}}
    return notebook


def torn() -> dict:
    """Half of a surrogate pair, as JSON can hold it and no file."""
    notebook = filled(RIGHT)
    notebook["cells"].append({"cell_type": "markdown", "metadata": {}, "source": "cut \ud83d here"})
    return notebook


def scripted() -> dict:
    notebook = filled('def running_mean(x):\n    raise KeyError("<script>alert(1)</script>")\n')
    texts = ["<script>alert(2)</script>", "[click](javascript:alert(3))", "![x](https://example.org/seen.png)", FENCES]
    notebook["cells"][:0] = [{"cell_type": "markdown", "metadata": {}, "source": text} for text in texts]
    return notebook


FENCES = "My note:\n```python\nif a < b: pass\n```\n[again](javascript:alert(4))"


NOISE = "import sys, warnings\n\nprint('to stderr', file=sys.stderr)\nwarnings.warn('careful')\n\n\n"
NOISY = NOISE + RIGHT.replace("    assert", "    print('called', file=sys.stderr)\n    assert")
STUB = (TINY / "exercises" / "averages" / f"{STEM}.py").read_text(encoding="utf-8")

# student → (points, the files that were handed in)
CLASS: dict[str, tuple[float, dict[str, object]]] = {
    "right_script": (4, {f"{STEM}.py": RIGHT, "notes.md": "mine", "nested/helper.py": "x = 1\n"}),
    "wrong_notebook": (2, {f"{STEM}.ipynb": filled(WRONG)}),
    "notebook_that_is_not_json": (0, {f"{STEM}.ipynb": "{'cells': ["}),
    "noise_on_stderr": (4, {f"{STEM}.ipynb": filled(NOISY)}),
    "graded_cells_edited": (4, {f"{STEM}.ipynb": edited()}),
    "graded_cells_deleted": (4, {f"{STEM}.ipynb": without_graded()}),
    "graded_cells_tampered_with": (2, {f"{STEM}.ipynb": tampered()}),
    "metadata_of_another_world": (4, {f"{STEM}.ipynb": mislabelled()}),
    "stub_and_notebook": (4, {f"{STEM}.py": STUB, f"{STEM}.ipynb": filled(RIGHT)}),
    "script_and_notebook": (2, {f"{STEM}.py": WRONG, f"{STEM}.ipynb": filled(RIGHT)}),
    "late": (4, {f"{STEM}.py": RIGHT, "timestamp.txt": "2026-01-02 12:00:00 UTC"}),
    "late_they_say": (4, {f"{STEM}.py": RIGHT, "timestamp.txt": "the dog ate it"}),
    "nothing_handed_in": (0, {"notes.md": "sorry"}),
    "half_a_smiley": (4, {f"{STEM}.ipynb": torn()}),
    "exits": (0, {f"{STEM}.py": "import os\n\nos._exit(0)\n"}),
    "html_in_every_text": (0, {f"{STEM}.ipynb": scripted()}),
}


def hand_in(submitted: Path) -> None:
    for student, (_, files) in CLASS.items():
        for name, content in files.items():
            path = submitted / student / "averages" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


@pytest.fixture(scope="session")
def points() -> dict[str, float]:
    """What each student of the class earns, of 4."""
    return {student: earned for student, (earned, _) in CLASS.items()}


@pytest.fixture(scope="session")
def fill() -> Callable[[str], dict]:
    """The tiny course's released notebook with this in its solution cell."""
    return filled


@pytest.fixture(scope="session")
def for_nbgrader() -> Callable[[Path, Path], Path]:
    """Copy a course to where nbgrader is to work."""
    return copy_for_nbgrader


@pytest.fixture(scope="session")
def right() -> str:
    """A right answer to the tiny course's exercise."""
    return RIGHT


@pytest.fixture(scope="session")
def wrong() -> str:
    """An answer that shows one misconception."""
    return WRONG


MakeResult = Callable[..., Result]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """The hosting service, with no repository yet."""
    with Service(tmp_path / "repositories") as opened:
        yield opened


@pytest.fixture
def asked() -> PullRequest:
    """The pull request of a run."""
    return PullRequest(repository="school/class", number=7, head="a" * 40, student="ada")


@pytest.fixture
def collected() -> Collected:
    """What was collected from it."""
    return Collected(repository="school/class", student="ada", number=7, head="a" * 40, refused=())


@pytest.fixture
def submitted(collected: Collected, tmp_path: Path) -> Path:
    """What `course ci collect` writes, with an attempt that is started."""
    folder = tmp_path / "submitted"
    (folder / "ada" / "averages").mkdir(parents=True)
    (folder / "ada" / "averages" / "01_running_mean.py").write_text("x = 1\n")
    (folder / "collected.json").write_text(collected.model_dump_json())
    return folder


@pytest.fixture
def make_result() -> MakeResult:
    """A result of the tiny course's four checks, a point each."""

    def of(
        *outcomes: Outcome,
        evidence: str = "",
        hint: str = "Think.",
        diagnosis: tuple[Diagnosed, ...] = (),
        note: str = "",
    ) -> Result:
        chosen = (outcomes or ("passed",)) + ("passed",) * (4 - len(outcomes or ("passed",)))
        told = {"evidence": evidence, "hint": hint}
        checks = [
            make.check(f"c{i}", end == "passed", 1, end, title=f"does thing {i}", **({} if end == "passed" else told))
            for i, end in enumerate(chosen)
        ]
        score = None if "skipped" in outcomes else sum(c.score for c in checks)
        exercise = make.exercise("running_mean", *checks, score=score, diagnosis=diagnosis, note=note)
        return make.result("ada", exercise, versions={"torch": "2.13.0"})

    return of
