"""The command as a person runs it: exit status 0, 1 or 2, and a message that ends with the command to run next."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jupytext
import pytest
import typer

from manyheads import cli
from manyheads.cli.app import app
from tests import make
from tests.conftest import Run
from tests.make import REPOSITORY, RIGHT, TINY, WRONG, hand_in
from tests.progress_lines import besides_progress

SCRIPT, NOTEBOOK = "exercises/averages/01_running_mean.py", "exercises/averages/01_running_mean.ipynb"
FINGERPRINTS = "exercises/averages/fingerprints/01_running_mean.safetensors"


def words(text: str) -> str:
    return " ".join(text.split())


def all_commands(command: Any, *names: str) -> Iterator[tuple[str, ...]]:
    yield names
    for name, each in getattr(command, "commands", {}).items():
        yield from all_commands(each, *names, name)


@pytest.mark.parametrize(
    "names", list(all_commands(typer.main.get_command(app))), ids=lambda names: " ".join(names) or "course"
)
def test_help_shows_an_example_that_is_a_command(run_course: Run, names: tuple[str, ...]) -> None:
    done = run_course(*names, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(rf"Example: {' '.join(('course', *names))}\b", words(done.stdout)), done.stdout


def test_help_says_how_folders_are_laid_out(run_course: Run) -> None:
    """What stands in angle brackets is HTML to Markdown, and once was not shown."""
    assert "with <student>/<assignment>/ folders" in words(run_course("grade", "--help").stdout.replace("│", ""))


def test_without_arguments_the_commands_are_listed(run_course: Run) -> None:
    listed = words(run_course().stdout + run_course("--help").stdout)
    for name in ("status", "check", "grade", "release", "verify"):
        assert f" {name} " in listed


def test_help_lists_a_students_commands_to_a_student_and_all_to_an_instructor(tmp_path: Path) -> None:
    (tmp_path / "course.yaml").write_bytes((TINY / "course.yaml").read_bytes())
    (tmp_path / "deeper").mkdir()
    student, instructor = (make.run(*make.COURSE, "--help", cwd=at).stdout for at in (tmp_path / "deeper", TINY))
    for shown in ("For students", " check ", " doctor "):
        assert shown in student
    for not_theirs in ("To grade a class", " release "):
        assert not_theirs not in student
    for panel in ("For students", "To grade a class", "To make a course", "For everybody"):
        assert panel in instructor


def test_on_a_terminal_a_refusal_ends_lines_between_words_and_begins_one_with_what_comes_next(run_course: Run) -> None:
    pty = pytest.importorskip("pty")
    terminal, its_end = pty.openpty()
    command = [sys.executable, "-m", "manyheads", "check", "median", "--course", str(TINY)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "COLUMNS": "60"}
    subprocess.run(command, env=environment, stderr=its_end, check=False)
    shown = os.read(terminal, 4096).decode()
    elsewhere = run_course(*command[3:]).stderr
    assert max(map(len, shown.splitlines())) <= 60
    assert [shown.split(), elsewhere.count("\n")] == [elsewhere.split(), 1]
    assert [line for line in shown.splitlines() if "Next:" in line] == ["Next: course status"]


@pytest.mark.parametrize(("arguments", "says", "next_"), [
    pytest.param(["status"], "no course.yaml in", "change to the course's folder, then: course status", id="no course"),
    pytest.param(["status", "--course", "nowhere"], "cannot be read", "pass --course FOLDER", id="no such course"),
    pytest.param(["check", "median", "--course", TINY], "there is no exercise 'median'; there are: running_mean", "course status", id="an unknown exercise to check"),
    pytest.param(["verify", "median", "--course", TINY], "there is no exercise 'median'", "course status", id="an unknown exercise to verify"),
    pytest.param(["grade", ".", "--exercise", "median", "--course", TINY], "there is no exercise 'median'", "course status", id="an unknown exercise to grade"),
    pytest.param(["release", "running_mean", "--out", "class", "--course", TINY], "a class repository has every exercise", "course release --out class", id="one exercise for a class repository"),
    pytest.param(["grade", "nowhere", "--course", TINY], "nowhere is not a folder", "course grade FOLDER, with FOLDER/<student>/<assignment>/", id="a folder that is not there"),
    pytest.param(["grade", ".", "--course", TINY], "holds no submission", "course collect DOWNLOAD --out .", id="an empty folder"),
    pytest.param(["collect", "nowhere.zip", "--course", TINY], "nowhere.zip does not exist", "course collect DOWNLOAD --out submitted", id="no such download"),
    pytest.param(["collect", ".", "--out", "in", "--course", TINY], "in is in ., which is read", "give --out a folder elsewhere", id="a folder that is read"),
    pytest.param(["collect", "x.zip", "--roster", "none.csv", "--course", TINY], "none.csv cannot be read (No such file or directory)", "--roster FILE, or --roster none", id="no such roster"),
    pytest.param(["release", "--gradescope", "x.zip", "--assignment", "hw9", "--course", TINY], "there is no assignment 'hw9'; there are: averages", "the same with --assignment averages", id="no such assignment for Gradescope"),
    pytest.param(["release", "--torch-index", "https://example.org", "--course", TINY], "--torch-index is Gradescope's", "course release --gradescope OUT.zip with it", id="Gradescope's option alone"),
    pytest.param(["release", "running_mean", "--gradescope", "x.zip", "--course", TINY], "an autograder has every exercise", "course release --gradescope x.zip", id="one exercise for Gradescope"),
])  # fmt: skip
def test_wrong_usage_is_status_2_and_a_next_command(run_course, tmp_path, arguments, says, next_):
    (tmp_path / "empty").mkdir()
    done = run_course(*arguments, cwd=tmp_path / "empty")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("course: ")
    assert says in done.stderr
    assert done.stderr.endswith(f"Next: {next_}\n")
    assert list((tmp_path / "empty").iterdir()) == []


def test_results_are_not_written_into_a_file(run_course: Run, tiny_copy: Path, tmp_path: Path) -> None:
    hand_in(tmp_path / "submitted", {"ada": RIGHT})
    done = run_course("grade", tmp_path / "submitted", "--out", tiny_copy / "course.yaml", cwd=tiny_copy)
    assert (done.returncode, done.stdout) == (2, "")
    assert "is a file" in words(done.stderr.replace("│", " "))


def test_a_folder_in_the_way_of_what_is_to_be_written_is_one_sentence(run_course: Run, tiny_copy: Path) -> None:
    (tiny_copy / SCRIPT).unlink()
    (tiny_copy / SCRIPT).mkdir()
    done = run_course("release", cwd=tiny_copy)
    assert (done.returncode, done.stdout) == (2, "")
    said = f"course: {tiny_copy / SCRIPT}: Is a directory. Next: move it elsewhere, or name another place"
    assert done.stderr.splitlines()[-1] == said


def test_a_fault_that_nobody_foresaw_is_status_2_and_not_that_of_a_failed_check(monkeypatch, capsys):
    def fails() -> None:
        raise ValueError("nobody foresaw this")

    monkeypatch.setattr("manyheads.cli.app.app", fails)
    assert cli._run() == 2
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert "course: a fault of the grader's own: ValueError('nobody foresaw this')" in said
    assert said.endswith("Next: report it with the lines above\n")


@pytest.mark.parametrize("command", ["status", "check", "release", "verify", "grade ."])
def test_a_bad_course_file_is_status_2_with_the_line(run_course: Run, tiny_copy: Path, command: str) -> None:
    path = tiny_copy / "course.yaml"
    path.write_text(path.read_text().replace("points: 4", "points: none"))
    done = run_course(*command.split(), cwd=tiny_copy)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"course: {path}:17: points: ")
    assert done.stderr.endswith("Next: mend that line, then course verify\n")


@pytest.mark.parametrize("arguments", [["grade"], ["grade", ".", "--jobs", "0"], ["frobnicate"], ["status", "--loud"]])
def test_what_the_command_line_does_not_know_is_status_2(run_course: Run, arguments: list[str]) -> None:
    done = run_course(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--help" in done.stderr


@pytest.mark.parametrize("command", ["status", "check"])
def test_missing_fingerprints_are_status_2(run_course: Run, student_copy: Path, command: str) -> None:
    (student_copy / FINGERPRINTS).unlink()
    done = run_course(*command.split(), cwd=student_copy)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"course: {student_copy / FINGERPRINTS} cannot be read (No such file or directory). "
        f"As an instructor, make it with course release. Next: git checkout {student_copy / FINGERPRINTS}\n"
    )


@pytest.mark.parametrize("command", ["grade", "verify"])
def test_without_bubblewrap_nothing_runs_and_the_remedy_is_named(run_course, tiny_copy, tmp_path, command):
    hand_in(tmp_path / "submitted", {"ada": RIGHT})
    arguments = ["grade", tmp_path / "submitted"] if command == "grade" else ["verify"]
    done = run_course(*arguments, cwd=tiny_copy, env={"PATH": ""})
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "course: bubblewrap (the command bwrap) is not installed. Next: sudo apt-get install bubblewrap"
    )
    assert not (tiny_copy / "results").exists()


def test_who_has_begun_nothing_is_welcomed_and_told_what_is_next(run_course: Run, student_copy: Path) -> None:
    check, status = run_course("check", cwd=student_copy), run_course("status", cwd=student_copy)
    assert (check.returncode, check.stderr) == (0, "")
    first, where, *_, following = check.stdout.splitlines()
    assert first.startswith("Welcome to Averages: one exercise.")
    assert where.startswith(f"Open {SCRIPT} (or the notebook beside it)")
    assert following.startswith("Next: course check running_mean")
    assert status.returncode == 0
    assert "Averages · 01 The running mean – / 4 untouched 0 of 1 done, 0 of 4 points" in words(status.stdout)
    assert status.stdout.endswith(f"\nFill the stubs of {SCRIPT}.\nNext: course check running_mean\n")


def test_a_mistake_is_named_until_it_is_mended(run_course: Run, student_copy: Path) -> None:
    (student_copy / SCRIPT).write_text(WRONG, encoding="utf-8")
    check = run_course("check", cwd=student_copy)
    assert (check.returncode, check.stderr) == (1, "")
    assert check.stdout.splitlines()[0].split() == [*"✗ 01 The running mean 2 / 4".split()]
    assert "You divided by the length of x everywhere." in check.stdout
    assert "hint: How many numbers are in the mean at position 0?" in check.stdout
    (student_copy / SCRIPT).write_text(RIGHT, encoding="utf-8")
    status = run_course("status", cwd=student_copy / "exercises")
    assert (status.returncode, status.stderr) == (0, "")
    assert words(status.stdout) == (
        "Averages ✓ 01 The running mean 4 / 4 done 1 of 1 done, 4 of 4 points by the visible checks All done."
    )


def test_whoever_works_in_the_notebook_is_checked_there(run_course: Run, student_copy: Path) -> None:
    notebook = jupytext.read(student_copy / NOTEBOOK)
    cell = next(c for c in notebook.cells if "YOUR CODE HERE" in c.source)
    cell.source = f"%matplotlib inline\n{WRONG}"
    jupytext.write(notebook, student_copy / NOTEBOOK)
    status = run_course("status", cwd=student_copy)
    assert (status.returncode, status.stderr) == (0, "")
    assert "2 of 4 checks" in status.stdout


@pytest.mark.parametrize(("spoil", "says"), [
    pytest.param(lambda path: path.write_text("def f(:\n"), "on line 1: this is not valid Python", id="no Python"),
    pytest.param(lambda path: path.write_bytes(b"\xff"), "is not UTF-8 text (line 1)", id="no text"),
])  # fmt: skip
def test_a_file_that_cannot_be_checked_is_status_1_and_says_why(run_course, student_copy, spoil, says):
    (student_copy / NOTEBOOK).unlink()
    spoil(student_copy / SCRIPT)
    done = run_course("check", "running_mean", cwd=student_copy)
    assert (done.returncode, done.stderr) == (1, "")
    assert says in words(done.stdout)


def test_release_writes_the_same_bytes_in_every_process_and_says_what_is_next(run_course: Run, tiny_copy: Path) -> None:
    paths = [tiny_copy / name for name in (SCRIPT, NOTEBOOK, FINGERPRINTS)]
    before = [path.read_bytes() for path in paths]
    for path in paths:
        path.unlink()
    done = run_course("release", cwd=tiny_copy, env={"PYTHONHASHSEED": "1"})
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"3 files in {tiny_copy / 'exercises'}: 3 written, 0 left as they were. Next: course verify\n"
    assert [path.read_bytes() for path in paths] == before


def test_release_of_one_exercise_goes_on_with_that_one(run_course: Run, tiny_copy: Path) -> None:
    done = run_course("release", "running_mean", cwd=tiny_copy)
    assert done.returncode == 0, done.stderr
    assert (
        done.stdout
        == f"3 files in {tiny_copy / 'exercises'}: 0 written, 3 left as they were. Next: course verify running_mean\n"
    )


@pytest.mark.journey
def test_verify_shows_every_claim_and_then_the_one_that_broke(run_course: Run, tiny_copy: Path) -> None:
    elsewhere = {"PATH": os.defpath}  # where the shell does not find the command
    assert run_course("release", cwd=tiny_copy).returncode == 0
    sound = run_course("verify", "--seeds", "1", "--pairs", "1", cwd=tiny_copy, env=elsewhere)
    assert (sound.returncode, sound.stderr) == (0, "")
    marks = {line.endswith("0 of 0"): line[0] for line in sound.stdout.splitlines()[:-1]}
    assert marks == {False: "✓", True: "·"}, "what asked nothing does not hold, nor is it broken"
    assert sound.stdout.splitlines()[-1] == "Every claim holds."
    (called,) = [line for line in sound.stdout.splitlines() if "passes `" in line and "course check` " in line]
    assert called.index("3 of 3") == sound.stdout.splitlines()[0].index("1 of 1"), "one column"
    (tiny_copy / SCRIPT).write_text("edited\n")
    broken = run_course("verify", "--seeds", "1", "--pairs", "1", cwd=tiny_copy)
    assert (broken.returncode, broken.stderr) == (1, "")
    assert f"    {SCRIPT} is not what solutions/ yields" in broken.stdout.splitlines()
    assert broken.stdout.splitlines()[-1] == "1 claim does not hold."


def test_grade_writes_a_result_for_everybody_and_a_table(run_course: Run, tiny_copy: Path, tmp_path: Path) -> None:
    submitted = hand_in(tmp_path / "submitted", {"ada": RIGHT, "ben": WRONG, "[bold]c": WRONG})
    os.mkdir(submitted / "d\ne")
    (submitted / "eve" / "averages").mkdir(parents=True)
    (submitted / "eve" / "averages" / "running_mean (1).py").write_text(RIGHT)
    done = run_course("grade", submitted, "--out", tmp_path / "[b] out", "--jobs", "1", "--seed", "7", cwd=tiny_copy)
    assert (done.returncode, besides_progress(done.stderr)) == (1, "")
    assert "not graded: 'd\\ne': is not graded, for its name begins with a dot, or could break a page" in words(
        done.stdout
    )
    assert "not graded: eve/averages/running_mean (1).py: is no part of what is graded" in words(done.stdout)
    assert [each["path"] for each in json.loads((tmp_path / "[b] out" / "not-graded.json").read_text())] == [
        "'d\\ne'",
        "eve/averages/running_mean (1).py",
    ]
    results = {p.parent.name: json.loads(p.read_text()) for p in (tmp_path / "[b] out").glob("*/averages.json")}
    assert {name: r["score"] for name, r in results.items()} == {"ada": 4, "ben": 2, "[bold]c": 2, "eve": 0}
    assert {(r["seed"], r["isolation"], r["device"]) for r in results.values()} == {(7, "namespaces", "cpu")}
    assert results["ben"]["exercises"][0]["diagnosis"][0]["id"] == "counts_all"
    rows = [line.replace("│", " ").split() for line in done.stdout.splitlines() if "/4" in line]
    assert rows == [
        ["[bold]c", "2", "2/4", "01:", *"You divided by the length of x everywhere.".split()],
        ["ada", "4", "4/4"],
        ["ben", "2", "2/4", "01:", *"You divided by the length of x everywhere.".split()],
        ["eve", "–", "0/4"],
    ]
    assert f"isolation: namespaces. Results: {tmp_path}/[b] out/" in words(done.stdout)
    assert done.stdout.endswith(f"\nNext: course report '{tmp_path}/[b] out'\n")
    assert (tiny_copy / ".course" / "secret").stat().st_mode & 0o777 == 0o600


def test_a_python_without_a_package_is_told_with_what_to_run(run_course, student_copy, tmp_path):
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "typer.py").write_text("raise ModuleNotFoundError('x', name='typer.main')")
    path = os.pathsep.join([str(tmp_path / "without"), str(Path(__file__).parents[2])])
    done = run_course("status", cwd=student_copy, env={"PYTHONPATH": path})
    assert (done.returncode, done.stdout) == (2, "")
    said = f"course: this Python ({sys.executable}) has no typer, which course needs"
    assert done.stderr == f"{said} and make check installs. Next: make check\n"
