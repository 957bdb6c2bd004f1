"""Internal: two private helpers of `release`, whose output is on a terminal or in a wheel.

The `course` command as a user runs it: the exit status is 0, 1 or 2, and messages end with the
command to run next.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from manyheads.cli import options as progress
from manyheads.cli.app import app
from manyheads.cli.author import _steps_shown, _still_to_fill
from manyheads.report.command_name import COMMANDS
from manyheads.result import read_results, write_result
from tests import make
from tests.cli.conftest import one_line_of
from tests.make import REPOSITORY, RIGHT, TINY, WRONG, besides_progress, call_course, hand_in, run

SCRIPT, NOTEBOOK = (
    "exercises/averages/01_running_mean.py",
    "exercises/averages/01_running_mean.ipynb",
)
FINGERPRINTS = "exercises/averages/fingerprints/01_running_mean.safetensors"


def all_commands(command, name="course"):
    """Yield the name of a command and the names of its subcommands."""
    yield name
    for subname, subcommand in getattr(command, "commands", {}).items():
        yield from all_commands(subcommand, f"{name} {subname}")


@pytest.mark.parametrize("command", [*all_commands(typer.main.get_command(app))])
def test_help_of_each_command_shows_an_example(tmp_path, command):
    completed = call_course(*command.split()[1:], "--help", cwd=tmp_path)
    assert (completed.returncode, completed.stderr) == (0, "")
    assert re.search(rf"Example: {command}\b", one_line_of(completed.stdout)), completed.stdout
    # typer renders help as Markdown, where <student> once vanished as an HTML tag
    if command == "course grade":
        text = one_line_of(completed.stdout.replace("│", ""))
        assert "with <student>/<assignment>/ folders" in text


def test_list_of_command_names_for_messages_is_complete():
    assert {*typer.main.get_command(app).commands} == {*COMMANDS}


def test_help_lists_only_student_commands_in_a_students_folder(student_copy):
    student_help, instructor_help = (
        run(*make.COURSE, "--help", cwd=folder).stdout
        for folder in (student_copy / "exercises", TINY)
    )
    panels = ("For students", "To grade a class", "To make a course", "For everybody")
    assert [panel for panel in panels if panel in student_help] == ["For students"]
    for command, is_for_students in (("check", True), ("hint", True), ("release", False)):
        assert (f" {command} " in student_help) is is_for_students
    assert student_help.count("\n") < 24  # it fits on a small terminal
    assert [panel for panel in panels if panel in instructor_help] == [*panels]


def test_errors_on_a_terminal_are_wrapped_with_the_next_command_on_its_own_line(tmp_path):
    pty = pytest.importorskip("pty")
    terminal, stderr = pty.openpty()
    arguments = ["check", "median", "--course", TINY]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "COLUMNS": "60"}
    subprocess.run([*make.COURSE, *arguments], env=environment, stderr=stderr, check=False)
    output = os.read(terminal, 4096).decode()
    stderr_without_terminal = call_course(*arguments, cwd=tmp_path).stderr
    assert max(map(len, output.splitlines())) <= 60
    assert output.split() == stderr_without_terminal.split()
    assert stderr_without_terminal.count("\n") == 1
    assert [line for line in output.splitlines() if "Next:" in line] == ["Next: course status"]


@pytest.mark.parametrize(
    ("command", "message", "next_step"),
    [
        pytest.param(
            "status",
            "no course.yaml in",
            "change to the course's folder, then: course status",
            id="a folder without a course",
        ),
        pytest.param(
            "status --course nowhere",
            "cannot be read",
            "change to the course's folder, then: course status",
            id="a course folder that does not exist",
        ),
        pytest.param(
            f"check median --course {TINY}",
            "there is no exercise 'median'; there are: running_mean",
            "course status",
            id="an unknown exercise",
        ),
        pytest.param(
            f"release running_mean --out class --course {TINY}",
            "a class repository has every exercise",
            "course release --out class",
            id="one exercise for a class repository",
        ),
        pytest.param(
            f"collect nowhere.zip --course {TINY}",
            "nowhere.zip does not exist",
            "course collect DOWNLOAD --out submitted",
            id="a download that does not exist",
        ),
        pytest.param(
            f"collect . --out in --course {TINY}",
            "in is in ., which is read",
            "give --out a folder elsewhere",
            id="an output folder inside the input folder",
        ),
        pytest.param(
            f"collect x.zip --roster none.csv --course {TINY}",
            "none.csv cannot be read (No such file or directory)",
            "put it there, or give another in course.yaml (roster: FILE) or by --roster",
            id="a roster that does not exist",
        ),
        pytest.param(
            f"release --gradescope x.zip --assignment hw9 --course {TINY}",
            "there is no assignment 'hw9'; there are: averages",
            "course status",
            id="an unknown assignment for Gradescope",
        ),
        pytest.param(
            f"release --torch-index https://example.org --course {TINY}",
            "--torch-index is Gradescope's",
            "course release --gradescope OUT.zip with it",
            id="an option that needs --gradescope",
        ),
        pytest.param(
            f"release running_mean --gradescope x.zip --course {TINY}",
            "an autograder has every exercise",
            "course release --gradescope x.zip",
            id="one exercise for Gradescope",
        ),
    ],
)
def test_wrong_usage_exits_with_2_and_suggests_the_next_command(
    tmp_path, command, message, next_step
):
    completed = call_course(*command.split(), cwd=tmp_path)
    assert (completed.returncode, completed.stdout) == (2, "")
    assert completed.stderr.startswith("course: ")
    assert message in completed.stderr
    assert completed.stderr.endswith(f"Next: {next_step}\n")
    assert list(tmp_path.iterdir()) == []


def test_an_internal_error_exits_with_2_and_asks_for_a_bug_report(monkeypatch, tmp_path):
    monkeypatch.setattr("manyheads.cli.app.app", lambda: [][0])
    completed = call_course(cwd=tmp_path)
    assert completed.returncode == 2
    assert "Traceback" in completed.stderr
    assert "course: a fault of the grader's own: IndexError(" in completed.stderr
    assert completed.stderr.endswith("Next: report it with the lines above\n")


@pytest.mark.parametrize("command", ["grade", "grade . --jobs 0", "frobnicate", "status --loud"])
def test_invalid_arguments_exit_with_2_and_point_to_help(tmp_path, command):
    completed = call_course(*command.split(), cwd=tmp_path)
    assert (completed.returncode, completed.stdout) == (2, "")
    assert "--help" in completed.stderr


def test_grade_without_bubblewrap_says_how_to_install_it(run_course, tiny_copy, tmp_path):
    hand_in(tmp_path / "submitted", {"ada": RIGHT})
    completed = run_course("grade", tmp_path / "submitted", cwd=tiny_copy, env={"PATH": ""})
    assert completed.returncode == 2
    assert completed.stderr.splitlines()[-1] == (
        "course: bubblewrap (the command bwrap) is not installed. Next: sudo apt-get install "
        "bubblewrap"
    )
    assert not (tiny_copy / "results").exists()


def test_check_and_status_name_the_first_step_if_nothing_is_started(run_course, student_copy):
    check, status = run_course("check", cwd=student_copy), run_course("status", cwd=student_copy)
    assert (check.returncode, check.stderr) == (0, "")
    welcome, location, *_, next_step = check.stdout.splitlines()
    assert welcome.startswith("Welcome to Averages: one exercise.")
    assert location.startswith(f"Open {SCRIPT} (or the notebook beside it)")
    assert next_step.startswith("Next: course check running_mean")
    assert status.returncode == 0
    assert (
        "Averages · 01 The running mean – / 4 untouched 0 of 1 done, 0 of 4 points"
        in one_line_of(status.stdout)
    )
    assert status.stdout.endswith(
        f"\nFill the stubs of {SCRIPT}.\nNext: course check running_mean\n"
    )


def test_release_writes_identical_files_in_every_process(run_course, tiny_copy):
    paths = [tiny_copy / name for name in (SCRIPT, NOTEBOOK, FINGERPRINTS)]
    original = [path.read_bytes() for path in paths]
    for path in paths:
        path.unlink()
    completed = run_course("release", cwd=tiny_copy, env={"PYTHONHASHSEED": "1"})
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout == (
        f"3 files in {tiny_copy / 'exercises'}: 3 written, 0 left as they were. Next: "
        "course verify\n"
    )
    assert [path.read_bytes() for path in paths] == original
    output = run_course("release", "running_mean", cwd=tiny_copy).stdout
    assert output.endswith(": 0 written, 3 left as they were. Next: course verify running_mean\n")


@pytest.mark.journey
def test_verify_lists_every_claim_and_reports_a_broken_one(run_course, tiny_copy):
    no_command = {"PATH": os.defpath}  # verify must also work if `course` is not on PATH
    assert run_course("release", cwd=tiny_copy).returncode == 0
    sound = run_course("verify", "--seeds", "1", "--pairs", "1", cwd=tiny_copy, env=no_command)
    assert (sound.returncode, sound.stderr) == (0, "")
    *lines, last = sound.stdout.splitlines()
    marks = {line.endswith("nothing to ask"): line[0] for line in lines}
    assert marks == {False: "✓", True: "·"}, "a claim without cases neither holds nor is broken"
    assert last == "Every claim holds."
    (command_claim,) = [line for line in lines if "passes `" in line and "course check` " in line]
    points = next(line for line in lines if line.startswith("✓ points"))
    assert command_claim.index("3 of 3") == points.index("1 of 1"), "the counts are aligned"
    (tiny_copy / SCRIPT).write_text("edited\n")
    broken = run_course("verify", "--seeds", "1", "--pairs", "1", cwd=tiny_copy)
    assert (broken.returncode, broken.stderr) == (1, "")
    assert f"    {SCRIPT} is not what solutions/ yields" in broken.stdout.splitlines()
    assert broken.stdout.splitlines()[-1] == "1 claim does not hold."


@pytest.mark.bwrap
def test_grade_writes_a_result_for_each_student_and_a_table(run_course, tiny_copy, tmp_path):
    submitted = hand_in(tmp_path / "submitted", {"ada": RIGHT, "ben": WRONG, "[bold]c": WRONG})
    (submitted / "d\ne").mkdir()
    (submitted / "eve" / "averages").mkdir(parents=True)
    (submitted / "eve" / "averages" / "running_mean (1).py").write_text(RIGHT)
    out = tmp_path / "[b] out"
    completed = run_course(
        *("grade", submitted, "--out", out, "--jobs", "1", "--seed", "7"), cwd=tiny_copy
    )
    assert (completed.returncode, besides_progress(completed.stderr)) == (1, "")
    output = one_line_of(completed.stdout)
    for message in (
        "'d\\ne': is not graded, for its name begins with a dot, or could break a page",
        "eve/averages/running_mean (1).py: is no part of what is graded",
    ):
        assert f"not graded: {message}" in output
    entries = json.loads((out / "not-graded.json").read_text())
    assert [entry["path"] for entry in entries] == ["'d\\ne'", "eve/averages/running_mean (1).py"]
    results = read_results(out)
    scores = {result.student: result.score for result in results}
    # eve's file has another name, and is not graded
    assert scores == {"ada": 4, "ben": 2, "[bold]c": 2, "eve": None}
    origins = {(result.seed, result.isolation, result.device) for result in results}
    assert origins == {(7, "namespaces", "cpu")}
    lines = completed.stdout.replace("│", " ").splitlines()
    assert [one_line_of(line) for line in lines if "/4" in line] == [
        "[bold]c 2 2/4 01: You divided by the length of x everywhere.",
        "ada 4 4/4",
        "ben 2 2/4 01: You divided by the length of x everywhere.",
        "eve ? ?/4",
    ]
    assert f"isolation: namespaces. Results: {out}/" in output
    assert completed.stdout.endswith(f"\nNext: course report '{out}'\n")
    assert (tiny_copy / ".course" / "secret").stat().st_mode & 0o777 == 0o600


def test_a_missing_package_is_reported_with_the_command_that_installs_it(
    run_course, student_copy, tmp_path
):
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "typer.py").write_text(
        "raise ModuleNotFoundError('x', name='typer.main')"
    )
    path = os.pathsep.join([str(tmp_path / "without"), str(Path(__file__).parents[2])])
    completed = run_course("status", cwd=student_copy, env={"PYTHONPATH": path})
    assert (completed.returncode, completed.stdout) == (2, "")
    message = f"course: this Python ({sys.executable}) has no typer, which course needs"
    assert completed.stderr == f"{message} and make check installs. Next: make check\n"


def test_progress_without_a_terminal_is_printed_as_lines_on_stderr(monkeypatch, capsys):
    monkeypatch.setattr(progress, "PLAIN_SECONDS", 0.0)
    with _steps_shown(2) as finish_step, _steps_shown(0):  # nothing is printed for 0 steps
        finish_step()
        finish_step()
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.partition(",")[0] for line in err.splitlines()] == [
        "recording: 2 exercises",
        "recording: 1 of 2 exercises",
        "recording: 2 of 2 exercises",
    ]


def test_placeholders_left_in_student_files_are_reported():
    script = b"# The lesson\n# FILL: the lesson, in a few lines\n# FILL: a question\n"
    released_files = {
        "course.yaml": b"title: Averages\n",
        "exercises/averages/02_mean.py": script,
        "engine.whl": b"FILL:",  # not a file that students read
    }
    assert _still_to_fill(released_files) == (
        "Students will read FILL: in 2 lines, the first in exercises/averages/02_mean.py. "
        "Next: course verify, which lists what is to be filled"
    )
    assert _still_to_fill({"course.yaml": b"title: Averages\n", "engine.whl": b"FILL:"}) == ""


def test_release_does_not_print_warnings_raised_by_mutants(run_course, tiny_copy):
    solution = tiny_copy / "solutions" / "averages" / "01_running_mean.py"
    bank = tiny_copy / "grader" / "misconceptions" / "running_mean.py"
    # in the mutant the divisor is 0, for which numpy prints a warning
    division = "    numpy.ones(1) / numpy.array([1.0])\n"
    make.replace(solution, "    return x.cumsum(0)", f"{division}    return x.cumsum(0)")
    make.replace(solution, "import torch\n", "import numpy\nimport torch\n")
    edits = '{COUNTS: "len(x)", "array([1.0])": "array([0.0])"}'
    make.replace(bank, '"len(x)", replacing=COUNTS', edits)
    completed = run_course("release", cwd=tiny_copy)
    assert (completed.returncode, "Warning" in completed.stderr) == (0, False), completed.stderr


MEAN = "def running_mean(x):\n    return x\n"
# a reader with a pipe of 4 KiB that ends after one line
READ_ONE_LINE = (
    f"| {sys.executable} -c 'import fcntl; fcntl.fcntl(0, fcntl.F_SETPIPE_SZ, 4096); input()'"
)


@pytest.fixture
def two_submissions(tmp_path: Path) -> Path:
    """Write the submissions of two students; return the folder."""
    return hand_in(tmp_path / "in", dict.fromkeys(("ada", "bela"), MEAN))


def grade_in_a_shell(
    tiny: Path, submitted: Path, out: Path, prefix: str = "", after: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run `course grade` in a shell.

    prefix and after: text of the command line before and after `course grade`.
    """
    options = f"--out {out} --jobs 1 --no-lines --seed 0"
    line = f"{prefix}{sys.executable} -m manyheads grade {submitted} {options} {after}"
    return run("bash", "-o", "pipefail", "-c", line, cwd=tiny)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 8 KiB, which has room for one result and not for two."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("only root mounts a small file system, and not on every machine")
    yield disk
    subprocess.run(["umount", disk], check=True)


def test_grade_on_a_full_disk_reports_it_and_leaves_no_partial_file(
    tiny_copy, two_submissions, small_disk, tmp_path
):
    completed = grade_in_a_shell(tiny_copy, two_submissions, small_disk)
    assert completed.returncode == 2
    (message,) = [line for line in completed.stderr.splitlines() if line.startswith("course: ")]
    assert message.startswith(f"course: {small_disk}/")
    assert message.endswith(
        "No space left on device: make room there, and run the same command again: what is "
        "written is whole. Next: df -h ."
    )
    for path in small_disk.rglob("*"):
        assert path.suffix != ".partial"
        if path.suffix == ".json":
            json.loads(path.read_text())
    subprocess.run(["mount", "-o", "remount,size=1m", small_disk], check=True)
    assert grade_in_a_shell(tiny_copy, two_submissions, small_disk).returncode == 0
    assert grade_in_a_shell(tiny_copy, two_submissions, tmp_path / "roomy").returncode == 0
    for name in ("ada/averages.json", "bela/averages.json"):
        assert (small_disk / name).read_bytes() == (tmp_path / "roomy" / name).read_bytes()


@pytest.mark.parametrize(
    ("after", "message"),
    [
        (
            ">&-",
            (
                "course: standard output is closed. Next: the same command, with its output to a "
                "file or to /dev/null"
            ),
        ),
        (
            "> /dev/full",
            (
                "course: standard output: No space left on device: make room there, and run the "
                "same command again: what is written is whole. Next: df -h ."
            ),
        ),
    ],
)
def test_grade_reports_a_closed_or_full_standard_output(
    tiny_copy, two_submissions, tmp_path, after, message
):
    completed = grade_in_a_shell(tiny_copy, two_submissions, tmp_path / "out", after=after)
    assert (completed.returncode, completed.stderr.splitlines()[-1]) == (2, message)


@pytest.mark.bwrap
@pytest.mark.parametrize(
    "after", ["| true", READ_ONE_LINE], ids=["reads nothing", "reads one line"]
)
def test_grade_ends_silently_if_nothing_reads_its_output(tiny_copy, tmp_path, after):
    """The output of 200 students is longer than the pipe, so grade still writes when the reader
    ends.
    """
    students = (f"{number:_>60}" for number in range(200))
    submitted = hand_in(tmp_path / "in", dict.fromkeys(students, MEAN))
    completed = grade_in_a_shell(tiny_copy, submitted, tmp_path / "out", after=after)
    assert completed.returncode == 141  # 128 + SIGPIPE
    assert "course: " not in completed.stderr
    assert "Traceback" not in completed.stderr


@pytest.mark.parametrize("options", ["", "--json", "--format lines"])
def test_check_ends_silently_if_nothing_reads_its_output(student_copy, options):
    (student_copy / "exercises" / "averages" / "01_running_mean.py").write_text(MEAN)
    line = f"{sys.executable} -m manyheads check {options} | true"
    completed = run("bash", "-o", "pipefail", "-c", line, cwd=student_copy)
    assert (completed.returncode, completed.stdout, completed.stderr) == (141, "", "")


def test_grade_reports_a_file_where_a_folder_is_needed(tiny_copy, two_submissions, tmp_path):
    (tmp_path / "file").write_text("")
    completed = grade_in_a_shell(tiny_copy, two_submissions, tmp_path / "file" / "out")
    message = (
        f"course: {tmp_path}/file/out: Not a directory: move it elsewhere, or name another "
        "place. Next: ls -l\n"
    )
    assert (completed.returncode, completed.stderr) == (2, message)


@pytest.mark.skipif(shutil.which("unshare") is None, reason="unshare is not installed")
def test_grade_refuses_to_run_as_the_only_user_of_a_namespace(tiny_copy, two_submissions, tmp_path):
    if subprocess.run(["unshare", "-r", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no user namespaces can be made here")
    completed = grade_in_a_shell(tiny_copy, two_submissions, tmp_path / "out", prefix="unshare -r ")
    assert completed.returncode == 2
    assert completed.stderr == (
        "course: root is the only user of this user namespace, and an attempt has to be another "
        "one. Next: the same command outside of it, as an ordinary user\n"
    )


@pytest.mark.parametrize(
    ("export_format", "path_in_out"), [("csv", ""), ("gradescope", "ada/averages/results.json")]
)
def test_export_to_a_full_disk_keeps_the_previous_file(
    small_disk, tmp_path, export_format, path_in_out
):
    exercise = make.exercise("running_mean", score=1, max_score=4)
    write_result(make.result("ada", exercise), tmp_path / "results")
    previous = small_disk / "grades" / path_in_out
    previous.parent.mkdir(parents=True, exist_ok=True)
    previous.write_text("previous\n")
    (small_disk / "filler").write_bytes(bytes(4096))
    options = ("--format", export_format, "--out", small_disk / "grades")
    completed = call_course("export", "results", *options, cwd=tmp_path)
    assert (completed.returncode, previous.read_text()) == (2, "previous\n")
    assert (
        "cannot be written (No space left on device). Next: give --out another path"
    ) in completed.stderr
