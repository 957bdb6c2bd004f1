"""A course of one's own: from an empty folder to a class report, with the installed wheel alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from manyheads.authoring.init import init_course
from manyheads.authoring.templates import HERE
from manyheads.authoring.wheel import engine_wheel
from manyheads.course import CourseError
from tests.progress_lines import besides_progress

REPOSITORY = Path(__file__).parents[2]
TINY = REPOSITORY / "tests" / "tiny_course"
Run = Callable[..., subprocess.CompletedProcess[str]]


def sources(folder: Path) -> dict[str, bytes]:
    """What an author writes of a course."""
    files = (path for name in ("solutions", "grader") for path in (folder / name).rglob("*"))
    kept = (p for p in files if p.is_file() and not {"__pycache__", "tables"} & set(p.parts))
    return {"course.yaml": (folder / "course.yaml").read_bytes()} | {
        str(p.relative_to(folder)): p.read_bytes() for p in kept
    }


def test_the_course_that_these_tests_use_is_the_one_that_init_makes() -> None:
    assert sources(TINY) == sources(HERE / "course")


@pytest.mark.parametrize("there", ["a file", "its course"])
def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path, there: str) -> None:
    (tmp_path / there).write_text("mine")
    with pytest.raises(
        CourseError, match=r"is not empty: nothing is written\. Next: course init with a new folder's name"
    ):
        init_course(tmp_path, "T")
    assert [path.name for path in tmp_path.iterdir()] == [there]


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
        assert f"Next: cd {folder / 'mine'} && course release" in said.stdout
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
    dry = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", "verify"], cwd=mine, capture_output=True, text=True, check=True
    )
    assert dry.stdout.splitlines()[-1] == ".venv/bin/course verify"


def test_it_keeps_every_promise_untouched(course: Run, mine: Path) -> None:
    verified = course(mine, "verify", "--seeds", "1", "--pairs", "1")
    assert (verified.returncode, verified.stderr) == (0, ""), verified.stdout


def test_it_goes_on_to_a_class_report(course: Run, mine: Path) -> None:
    graded = course(mine, "grade", "examples/submitted", "--out", "results")
    assert (graded.returncode, besides_progress(graded.stderr)) == (0, ""), graded.stdout
    reported = course(mine, "report", "results")
    assert reported.returncode == 0, reported.stderr
    assert (
        "You divided by the length of x everywhere."
        in (mine / "results" / "report" / "students" / "ben.html").read_text()
    )


def test_it_hands_out_a_class_repository(made: Path) -> None:
    assert (made / "class" / "exercises" / "averages" / "01_running_mean.py").is_file()
    assert not (made / "class" / "solutions").exists()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("sums/scaled", id="a new assignment"),
        pytest.param("averages/scaled", id="an assignment that is there", marks=pytest.mark.soak),
    ],
)
def test_a_new_exercise_says_what_to_fill_and_then_keeps_every_promise(
    run_course: Run, tiny_copy: Path, name: str
) -> None:
    made = run_course("new", name, cwd=tiny_copy)
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout.splitlines()[-1] == (
        "Next: fill what says FILL: there, then course release scaled and course verify scaled"
    )
    run_course("release", cwd=tiny_copy)
    unfilled = run_course("verify", "scaled", cwd=tiny_copy)
    assert unfilled.returncode == 1
    number = 2 if name.startswith("averages") else 1
    assert f"solutions/{name.partition('/')[0]}/0{number}_scaled.py:4 says: FILL: the lesson" in unfilled.stdout
    for path in (*tiny_copy.rglob("*.py"), *tiny_copy.rglob("*.yaml")):
        if "FILL:" in (text := path.read_text()):
            path.write_text(text.replace("FILL:", "Written."))
    run_course("release", cwd=tiny_copy)
    filled = run_course("verify", "--seeds", "1", "--pairs", "1", cwd=tiny_copy)
    assert (filled.returncode, filled.stderr) == (0, ""), filled.stdout


@pytest.mark.parametrize(
    ("name", "says"),
    [
        pytest.param("scaled", "'scaled' names no assignment. Next: course new averages/scaled", id="no assignment"),
        pytest.param(
            "averages/Scaled", "'Scaled' is not an id: use lower case letters, digits and underscores", id="no id"
        ),
        pytest.param("averages/running_mean", "the exercise running_mean exists already", id="one that is there"),
    ],
)
def test_what_cannot_be_added_is_refused_in_one_sentence(
    run_course: Run, tiny_copy: Path, name: str, says: str
) -> None:
    before = sources(tiny_copy)
    done = run_course("new", name, cwd=tiny_copy)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert sources(tiny_copy) == before


def test_remarks_in_course_yaml_stay_where_they_are(run_course: Run, tiny_copy: Path) -> None:
    path = tiny_copy / "course.yaml"
    text = path.read_text().replace("limits:", "# how long\nlimits:") + "\n# the end\n"
    path.write_text(text)
    assert run_course("new", "averages/scaled", cwd=tiny_copy).returncode == 0
    changed = path.read_text()
    row = changed[changed.index("      - id: scaled") : changed.index("\n# the end")]
    assert changed.replace(row, "") == text
