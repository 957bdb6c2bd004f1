"""What was handed in and cannot be read: told with the student's id, and without points until somebody has opened it."""

import csv
import io
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.cli.class_results import name_not_graded
from manyheads.cli.options import open_console
from manyheads.report.class_view import NOBODY, ClassView
from manyheads.report.labels import labels_of
from manyheads.submission.lay_out import read_memory
from tests import make
from tests.conftest import Run

MEAN = "def running_mean(x):\n    return x\n"
WORK = "bartokbela_12346_678902_work.rar"


@pytest.fixture
def course(run_course: Run, tiny_copy: Path, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command on what Canvas gives for Ada, Bela, whose archive nobody opens, and Cleo, who handed in nothing."""
    with zipfile.ZipFile(tmp_path / "submissions.zip", "w") as archive:
        archive.writestr("lovelaceada_12345_678901_01_running_mean.py", MEAN)
        archive.writestr(WORK, b"Rar!")
    (tmp_path / "roster.csv").write_text("id,name,canvas_id\nada,Ada,12345\nbela,Bela,12346\ncleo,Cleo,12347\n")
    (tiny_copy / "course.yaml").write_text(f"not_handed_in: zero\n{(tiny_copy / 'course.yaml').read_text()}")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        places = {"IN": tmp_path / "in", "OUT": tmp_path / "out", "ZIP": tmp_path / "submissions.zip"}
        given = [places.get(argument, argument) for argument in arguments]
        return run_course(*given, "--roster", tmp_path / "roster.csv", cwd=tiny_copy)

    return run


def graded(course: Run) -> subprocess.CompletedProcess[str]:
    return course("grade", "IN", "--out", "OUT", "--jobs", "1", "--no-lines", "--seed", "1")


def canvas(course: Run) -> dict[str, str]:
    rows = csv.reader(io.StringIO(course("export", "OUT", "--format", "canvas").stdout))
    return {row[3]: row[-1] for row in rows if row[3]}


def test_nobody_who_reads_results_has_a_zero_for_it(course: Run, tmp_path: Path) -> None:
    course("collect", "ZIP", "--out", "IN")
    done = graded(course)
    assert done.returncode == 1
    assert f"not graded: bela: handed in, not readable: {WORK} (every exercise)" in done.stdout
    assert "Handed in nothing: 1 of 3 on the roster: cleo\n" in done.stdout
    assert canvas(course) == {"SIS Login ID": "Averages", "ada": "0", "bela": "", "cleo": "0"}
    exported = course("export", "OUT")
    assert (exported.returncode, "bela,averages,running_mean,,4" in exported.stdout) == (1, True)
    assert f"not graded: bela: handed in, not readable: {WORK}" in exported.stderr
    assert "There are no points for that: its cells are blank. Next: " in exported.stderr
    assert (
        "There are no points for that. Next: "
        in course("export", "OUT", "--format", "gradescope", "--out", str(tmp_path / "files")).stderr
    )
    assert f"not graded: bela: handed in, not readable: {WORK}" in course("report", "OUT").stdout
    page = (tmp_path / "out" / "report" / "students" / "bela.html").read_text()
    assert "what you handed in cannot be read" in page
    assert "not graded" in page


def test_what_is_put_into_the_folder_by_hand_is_graded_in_its_place(course: Run, tmp_path: Path) -> None:
    course("collect", "ZIP", "--out", "IN")
    shutil.copy(tmp_path / "in" / "ada" / "averages" / "01_running_mean.py", tmp_path / "in" / "bela" / "averages")
    again = course("collect", "ZIP", "--out", "IN")
    assert again.returncode == 0
    assert "what you have laid into bela/averages/ is graded in its place" in again.stdout
    assert graded(course).returncode == 0
    assert canvas(course)["bela"] == "0"


def test_what_a_human_decides_counts(course: Run, tiny_copy: Path, tmp_path: Path) -> None:
    course("collect", "ZIP", "--out", "IN")
    (tiny_copy / "overrides.yaml").write_text("- {student: bela, exercise: running_mean, score: 3}\n")
    assert (graded(course).returncode, canvas(course)["bela"]) == (0, "3")


def test_it_counts_no_more_once_the_student_has_handed_in_a_file(course: Run, tmp_path: Path) -> None:
    course("collect", "ZIP", "--out", "IN")
    with zipfile.ZipFile(tmp_path / "submissions.zip", "w") as archive:
        archive.writestr("bartokbela_12346_678999_01_running_mean.py", MEAN)
    done = course("collect", "ZIP", "--out", "IN")
    assert done.returncode == 0
    assert f"note: bela: {WORK} could not be read, and counts no more" in done.stdout
    assert read_memory(tmp_path / "in").not_readable == {"bela": {"averages": []}}


def test_it_holds_where_the_empty_folder_was_not_copied_along(course: Run, tmp_path: Path) -> None:
    course("collect", "ZIP", "--out", "IN")
    shutil.rmtree(tmp_path / "in" / "bela")
    graded(course)
    assert canvas(course)["bela"] == ""


def test_what_the_grader_failed_at_is_tried_again_whatever_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    failed = make.check("values", outcome="skipped", evidence="A file of the grader is not readable.")
    view = ClassView([make.result("ada", make.exercise("mean", failed, score=None))], NOBODY, labels_of(None))
    assert not name_not_graded(open_console(), view)
    assert "Next: the same course grade again, which tries that alone" in capsys.readouterr().out
