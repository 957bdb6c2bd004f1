"""`course report` as an instructor runs it."""

import shutil
from pathlib import Path

import pytest

from manyheads.result import Diagnosed, write_result
from tests import make
from tests.conftest import Run
from tests.make import TINY


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """The results of ada, who is right, and ben, who is not."""
    shutil.copy(TINY / "course.yaml", tmp_path)
    for student, score in (("ada", 2.0), ("ben", 0.0)):
        check = make.check("mean", score, 2, title="averages")
        write_result(make.result(student, make.exercise("running_mean", check)), tmp_path / "results")
    return tmp_path / "results"


def test_report_shows_the_class_and_says_where_the_pages_are(run_course: Run, results: Path) -> None:
    done = run_course("report", "results")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Averages\n01 The running mean                       2 attempts, 1 full, mean 1.00 / 2" in done.stdout
    assert done.stdout.endswith("2 submissions, isolation: namespaces\nPages: results/report/index.html\n")
    assert sorted(path.name for path in (results / "report" / "students").iterdir()) == ["ada.html", "ben.html"]


def test_students_adds_a_line_for_each_and_pages_go_where_html_says(run_course, results, tmp_path):
    shown = [run_course("report", "results", *more).stdout for more in ([], ["--students", "--html", "web/heads"])]
    lines = [[line.split() for line in each.splitlines()] for each in shown]
    assert [["ben", "0", "0/2"] in each for each in lines] == [False, True]
    assert shown[1].endswith("Pages: web/heads/index.html\n")
    assert (tmp_path / "web" / "heads" / "students" / "ada.html").is_file()


def test_a_result_that_cannot_be_read_is_named_and_the_report_is_made_from_the_others(run_course, results):
    (results / "ben" / "averages.json").write_text('{"student": "ben", ')
    done = run_course("report", "results")
    assert done.returncode == 2
    assert (
        done.stderr
        == "course: results/ben/averages.json is no result of this version. Next: course grade again, or remove it\n"
    )
    assert "1 submission, isolation: namespaces" in done.stdout
    page = (results / "report" / "index.html").read_text()
    assert "results/ben/averages.json is no result of this version." in page
    assert not (results / "report" / "students" / "ben.html").exists()
    (results / "ada" / "averages.json").write_text("")
    assert run_course("report", "results", "--html", "web").stdout == "", "where none can be read no page is written"
    assert not (results.parent / "web").exists()


def test_a_folder_that_cannot_be_written_is_status_2_after_the_view(run_course, results, tmp_path):
    (tmp_path / "taken").write_text("")
    done = run_course("report", "results", "--html", "taken/here")
    assert done.returncode == 2
    assert "2 submissions" in done.stdout
    assert done.stderr.endswith("Next: course report --html ANOTHER_FOLDER\n")


def test_submitted_draws_wrong_answers_beside_the_expected_ones(run_course, results, tmp_path, tiny_copy):
    for student, divided_by in (("ada", "torch.arange(1, len(x) + 1)"), ("ben", "len(x)")):
        folder = tmp_path / "handed in" / student / "averages"
        folder.mkdir(parents=True)
        source = f"import torch\ndef running_mean(x):\n    return x.cumsum(0) / {divided_by}\n"
        (folder / "01_running_mean.py").write_text(source)
    done = run_course("report", "results", "--submitted", "handed in", "--course", tiny_copy)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\n1 of 1 wrong attempt has pictures, drawn in " in done.stdout
    page = (results / "report" / "students" / "ben.html").read_text(encoding="utf-8")
    assert "running_mean(x): the largest difference is " in page
    assert "<svg" not in (results / "report" / "students" / "ada.html").read_text(encoding="utf-8")


def test_a_folder_that_holds_nobody_of_these_results_is_named(run_course: Run, results: Path, tiny_copy: Path) -> None:
    submitted = tiny_copy / "handed in"
    (submitted / "zoe" / "averages").mkdir(parents=True)
    done = run_course("report", results, "--submitted", submitted, "--course", tiny_copy)
    assert done.returncode == 2
    assert f"course: {submitted} has no submission of these results. Next: course report " in done.stderr
    assert not (results / "report").exists()


def test_a_misconception_that_comes_back_is_told_on_the_terminal_and_on_the_class_page(run_course, results):
    named = (Diagnosed(id="axis", title="You averaged over the wrong axis.", hint="Which one?"),)
    check = make.check("mean", 0, 2, title="averages")
    exercises = [make.exercise(id_, check, diagnosis=named) for id_ in ("running_mean", "later")]
    write_result(make.result("ben", *exercises), results)
    done = run_course("report", "results")
    assert "Came back for 1, in later after 01 The running mean: You averaged over the wrong axis." in done.stdout
    page = (results / "report" / "index.html").read_text()
    assert "Misconceptions that came back" in page
    assert "<td>01 The running mean</td><td>later</td>" in page
