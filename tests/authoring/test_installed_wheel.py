"""A course of one's own: from an empty folder to a class report, with the installed wheel alone."""

import os
import shutil
import subprocess
import sysconfig
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from manyheads.authoring.packages import engine_wheel
from tests.conftest import Run
from tests.make import REPOSITORY
from tests.progress_lines import besides_progress

pytestmark = pytest.mark.journey


@pytest.fixture(scope="module")
def course(once: Callable[..., Path]) -> Run:
    """The command of a wheel that pip installed, with everything it needs, and nothing of this repository."""

    def install(place: Path) -> None:
        venv.create(place / "venv", with_pip=False)
        schemes = sysconfig.get_paths(vars={"base": str(place / "venv"), "platbase": str(place / "venv")})
        (Path(schemes["purelib"]) / "everything.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
        for name, content in engine_wheel(templates=True).items():
            (place / name).write_bytes(content)
        script = ["sh", str(REPOSITORY / "tools" / "install-engine"), str(place / "venv" / "bin" / "python")]
        subprocess.run(script, cwd=place, check=True)

    place = once("installed", install)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"COLUMNS": "100", "NO_COLOR": "1"}

    def run(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
        command: Sequence[str] = [str(place / "venv" / "bin" / "course"), *map(str, arguments)]
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)

    return run


@pytest.fixture(scope="module")
def made(course: Run, once: Callable[..., Path]) -> Path:
    """A folder with `mine`, a course that init made, and `class`, what its release hands out."""

    def make(folder: Path) -> None:
        folder.mkdir()
        said = course(folder, "init", folder / "mine", "--title", "My course")
        assert (said.returncode, said.stderr) == (0, "")
        assert f"release --course {folder / 'mine'}" in said.stdout
        released = course(folder / "mine", "release", "--out", folder / "class", "--owner", "@ada")
        assert (released.returncode, besides_progress(released.stderr)) == (0, "")

    return once("made", make)


@pytest.fixture
def mine(made: Path, tmp_path: Path) -> Path:
    """A copy of it to run commands in."""
    return shutil.copytree(made / "mine", tmp_path / "mine")


def test_it_has_what_an_instructor_starts_with(mine: Path) -> None:
    assert (mine / "README.md").read_text().startswith("# My course\n")
    assert ".course/" in (mine / ".gitignore").read_text().splitlines()
    for name in ("Makefile", ".github/workflows/grade.yml", "engine.sha256", "constraints.txt", "tools/build-venv"):
        assert (mine / name).is_file(), name
    command = ["make", "--dry-run", "--no-print-directory", "verify"]
    dry = subprocess.run(command, cwd=mine, capture_output=True, text=True, check=True)
    assert dry.stdout.splitlines()[-1] == ".venv/bin/course verify"


def test_it_keeps_every_promise_untouched(course: Run, mine: Path) -> None:
    verified = course(mine, "verify", "--seeds", "1", "--pairs", "1")
    assert (verified.returncode, verified.stderr) == (0, ""), verified.stdout


def test_it_goes_on_to_a_class_report(course: Run, mine: Path) -> None:
    graded = course(mine, "grade", "examples/submitted", "--out", "results")
    assert (graded.returncode, besides_progress(graded.stderr)) == (0, ""), graded.stdout
    reported = course(mine, "report", "results")
    assert reported.returncode == 0, reported.stderr
    page = (mine / "results" / "report" / "students" / "ben.html").read_text()
    assert "You divided by the length of x everywhere." in page


def test_it_hands_out_a_class_repository(made: Path) -> None:
    assert (made / "class" / "exercises" / "averages" / "01_running_mean.py").is_file()
    assert not (made / "class" / "solutions").exists()
