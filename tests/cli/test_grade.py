"""`course grade`: the number of judges, results and seeds, points, and which files it finds.

A judge is one of the parallel processes that grade attempts.
"""

import csv
import io
import json
import os
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import torch

from manyheads.box import contents
from manyheads.box.contents import Driver, Gpu, Places
from manyheads.result import Result
from tests.conftest import Run
from tests.make import TINY, call_course, hand_in, notebook, replace

SCHEMA = Path(__file__).parents[2] / "manyheads" / "result.schema.json"
CPUS = os.sched_getaffinity(0)
# saves seconds in tests that need neither a second judge nor the search for wrong lines
FAST = ("--jobs", "1", "--no-lines")
ONE_JUDGE = "A GPU takes one attempt at a time: 1 judge at work."


@pytest.fixture
def three_submissions(tmp_path: Path) -> Path:
    """Write the submissions of three students; return the folder."""
    return hand_in(
        tmp_path / "submitted",
        dict.fromkeys(("ada", "bela", "chen"), "def running_mean(x):\n    return x\n"),
    )


@pytest.fixture
def one_cpu() -> Iterator[None]:
    """Restrict this process to one CPU, as taskset or the cpuset of a container does."""
    os.sched_setaffinity(0, {min(CPUS)})
    yield
    os.sched_setaffinity(0, CPUS)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_grade_on_cuda_without_a_gpu_is_an_error(
    run_course, tiny_copy, tmp_path, three_submissions
):
    completed = run_course(
        "grade", three_submissions, "--device", "cuda", "--jobs", "3", "--course", tiny_copy
    )
    assert (completed.returncode, completed.stdout.splitlines()[0]) == (2, ONE_JUDGE)
    assert completed.stderr == (
        "course: this machine has no CUDA device that torch can use. Next: course grade … "
        "--device cpu\n"
    )
    assert not list(tmp_path.glob("results/ada/*.json"))


@pytest.fixture
def job_counts(monkeypatch):
    """Record the number of judges that each `course grade` would start; nothing is graded."""
    counts = []
    monkeypatch.setattr(
        "manyheads.cli.grade.grade_all",
        lambda plan, waiting, jobs, only: counts.append(jobs) or iter(()),
    )
    return counts


@pytest.mark.parametrize(
    ("device", "gpus", "judges", "note"),
    [
        pytest.param("cuda", 1, 1, "1 judge at work", id="one judge on one GPU"),
        pytest.param("cuda", 2, 2, "2 judges at work", id="two judges on two GPUs"),
        pytest.param("cuda", 3, 3, "", id="three judges on three GPUs"),
        pytest.param("cuda", 4, 3, "", id="three judges on four GPUs"),
        pytest.param("cpu", 1, 3, "", id="three judges on the CPU"),
    ],
)
def test_grade_starts_at_most_one_judge_per_gpu(
    monkeypatch, tiny_copy, three_submissions, job_counts, device, gpus, judges, note
):
    driver = Driver(Places(), tuple(Gpu(f"nvidia{i}", f"GPU-{i}") for i in range(gpus)), "", False)
    monkeypatch.setattr(contents, "find_driver", lambda: driver)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    completed = call_course(
        "grade", three_submissions, "--device", device, "--jobs", "3", cwd=tiny_copy
    )
    assert job_counts == [judges]
    assert note in completed.stdout
    assert ("A GPU takes one attempt at a time" in completed.stdout) is bool(note)


@pytest.mark.skipif(os.cpu_count() == 1, reason="one CPU is all that there is")
@pytest.mark.usefixtures("one_cpu")
def test_grade_starts_one_judge_per_usable_cpu_by_default(tiny_copy, three_submissions, job_counts):
    call_course("grade", three_submissions, cwd=tiny_copy)
    assert job_counts == [1]


@pytest.mark.parametrize(
    ("options", "lines"), [(("--jobs", "1"), [4]), (FAST, [])], ids=["with lines", "without lines"]
)
def test_result_names_the_wrong_line_unless_no_lines_is_given(
    run_course, tiny_copy, tmp_path, options, lines
):
    path = tmp_path / "submitted" / "ada" / "averages" / "01_running_mean.py"
    path.parent.mkdir(parents=True)
    path.write_text(STARTS_AT_TWO)
    completed = run_course(
        "grade", tmp_path / "submitted", *options, "--course", tiny_copy, "--out", tmp_path / "out"
    )
    assert completed.returncode == 0, completed.stderr
    result_json = (tmp_path / "out" / "ada" / "averages.json").read_bytes()
    jsonschema.validate(json.loads(result_json), json.loads(SCHEMA.read_text(encoding="utf-8")))
    (exercise,) = Result.model_validate_json(result_json).exercises
    assert [line.line for line in exercise.lines] == lines


# the wrong line 4 divides by 2, 3, … in place of 1, 2, …
STARTS_AT_TWO = """\
import torch
def running_mean(x):
    if len(x) == 0: raise ValueError("no numbers")
    return x.cumsum(0) / torch.arange(2, len(x) + 1, dtype=x.dtype)
"""


def test_only_option_grades_one_attempt_again_on_the_same_inputs(
    run_course, tiny_copy, tmp_path, three_submissions
):
    """A student's page has a line that identifies an attempt. With the first part of that line the
    instructor grades the attempt again. All results stay the same.
    """
    options = ("--course", tiny_copy, "--out", tmp_path / "out", *FAST)
    assert run_course("grade", three_submissions, *options).returncode == 0
    assert run_course("report", tmp_path / "out", "--course", tiny_copy).returncode == 0
    original = {path: path.read_bytes() for path in tmp_path.glob("out/*/averages.json")}
    journal = tmp_path / "out" / ".journal"
    first_entries = journal.read_text(encoding="utf-8")
    ada = tmp_path / "out" / "ada" / "averages.json"
    result = json.loads(ada.read_text(encoding="utf-8"))
    page = (tmp_path / "out" / "report" / "students" / "ada.html").read_text(encoding="utf-8")
    check = next(c["id"] for c in result["exercises"][0]["checks"] if c["outcome"] != "passed")
    attempt_line = (
        f"ada/running_mean, check {check}, seed {result['seed']}, file "
        f"{result['exercises'][0]['digest']}"
    )
    assert attempt_line in page
    completed = run_course(
        "grade", three_submissions, *options, "--only", attempt_line.partition(",")[0]
    )
    assert (completed.returncode, completed.stderr) == (0, "")
    new_entries = journal.read_text(encoding="utf-8").removeprefix(first_entries).split("\n")
    assert [json.loads(row)[0] for row in new_entries if row] == ["ada/averages"]
    assert {path: path.read_bytes() for path in tmp_path.glob("out/*/averages.json")} == original


@pytest.mark.parametrize(
    ("only", "message"),
    [
        ("ada", "--only ada should be STUDENT/EXERCISE"),
        ("nobody/running_mean", "has nothing of nobody"),
        ("ada/median", "median"),
    ],
)
def test_only_option_refuses_an_unknown_attempt(tiny_copy, three_submissions, only, message):
    completed = call_course("grade", three_submissions, "--only", only, cwd=tiny_copy)
    assert (completed.returncode, completed.stdout) == (2, "")
    assert message in completed.stderr
    assert "Next: " in completed.stderr


@pytest.mark.bwrap
def test_only_option_accepts_an_override_for_an_absent_student(
    run_course, tiny_copy, tmp_path, three_submissions
):
    """A student on the roster who handed in nothing may have a row in overrides.yaml."""
    (tiny_copy / "roster.csv").write_text("id,name\nada,A\nbela,B\nchen,C\nmlin,M\n")
    (tiny_copy / "overrides.yaml").write_text(
        "- {student: mlin, assignment: averages, excused: true, by: Dr. X, comment: ill}\n"
    )
    roster = ("--roster", tiny_copy / "roster.csv", "--course", tiny_copy)
    common = (*roster, *FAST)
    completed = run_course("grade", three_submissions, *common, "--out", tmp_path / "out")
    assert (completed.returncode, completed.stderr) == (0, "")
    completed = run_course(
        "grade", three_submissions, *common, "--out", tmp_path / "out", "--only", "ada/running_mean"
    )
    assert (completed.returncode, completed.stderr) == (0, "")
    assert "Handed in nothing" not in completed.stdout


def test_rows_about_several_students_reach_grade_and_export(
    run_course, tiny_copy, tmp_path, three_submissions
):
    replace(
        tiny_copy / "course.yaml",
        "    title: Averages\n",
        "    title: Averages\n    due: 2026-03-01 09:00Z\n    late: {per_day: 50%}\n",
    )
    (tiny_copy / "roster.csv").write_text(
        "id,section,group\nada,A,red\nbela,B,red\nchen,C,\nmlin,A,\n"
    )
    (tiny_copy / "overrides.yaml").write_text(
        "- {section: A, exercise: running_mean, score: 3, by: Dr. X}\n"
        "- {group: red, extra: 2 days, by: Dr. X}\n"
        "- {student: [chen, ada], excused: true}\n"
    )
    for student in ("ada", "bela", "chen"):
        stamp = three_submissions / student / "averages" / "timestamp.txt"
        stamp.write_text("2026-03-03 08:30:00 UTC")
    course = ("--roster", tiny_copy / "roster.csv", "--course", tiny_copy)
    out = tmp_path / "out"
    completed = run_course("grade", three_submissions, *course, *FAST, "--out", out)
    assert (completed.returncode, completed.stderr) == (0, "")
    assert "2 days more, until 2026-03-03 09:00 UTC by Dr. X" in completed.stdout
    assert "score set to 3 by Dr. X" in completed.stdout
    exported = run_course("export", out, "--format", "csv", *course)
    rows = list(csv.DictReader(io.StringIO(exported.stdout)))
    scores = {row["student"]: row["score"] for row in rows}
    assert scores["mlin"] == "3", "the section's score reaches who handed in nothing"
    assert scores["ada"] == scores["chen"] == "", "a list is excused"
    assert "late" not in next(row["decided"] for row in rows if row["student"] == "bela")


# the exercises of two_means, with 4 points each
FIRST, SECOND = "running_mean", "last_mean"
NOBODY_GRADED = "Nobody is graded. Next: course verify running_mean"


@pytest.fixture
def submitted_solutions(two_means: Path, tmp_path: Path) -> Path:
    """Write two students' submissions of the solutions; return the folder."""
    for student in ("ada", "ben"):
        folder = tmp_path / "submitted" / student / "averages"
        folder.mkdir(parents=True)
        for path in (two_means / "solutions" / "averages").glob("*.py"):
            (folder / path.name).write_text(
                f"{path.read_text(encoding='utf-8')}# {student}\n", encoding="utf-8"
            )
    return tmp_path / "submitted"


def checks_file(course: Path) -> Path:
    """Return the path of the hidden checks of running_mean."""
    return course / "grader" / "checks" / "test_running_mean.py"


def rename_a_check(course: Path) -> None:
    """Rename a test function so that pytest does not collect it."""
    replace(checks_file(course), "def test_shape(", "def checks_shape(")


def empty_checks_file(course: Path) -> None:
    """Delete all checks of running_mean."""
    checks_file(course).write_text("", encoding="utf-8")


def raise_in_a_check(course: Path) -> None:
    """Put a division by zero into a check of running_mean."""
    replace(checks_file(course), "    x, g = draw(6), draw(6)", "    x = 1 / 0")


def read_result_file(out: Path, student: str = "ada") -> dict:  # type: ignore[type-arg]
    """Return the result file of a student as a dictionary."""
    text = (out / student / "averages.json").read_text(encoding="utf-8")
    result: dict = json.loads(text)  # type: ignore[type-arg]
    return result


def points_of_student(out: Path, student: str = "ada") -> list[float | None]:
    """Return the total score of a student, and the score of each exercise."""
    result = read_result_file(out, student)
    return [result["score"], *(exercise["score"] for exercise in result["exercises"])]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        pytest.param(
            rename_a_check,
            "its checks give 3 points",
            id="a check that pytest does not collect",
        ),
        pytest.param(
            empty_checks_file,
            "nothing was collected from grader/checks/test_running_mean.py",
            id="no check at all",
        ),
    ],
)
def test_grade_and_verify_refuse_checks_whose_points_do_not_add_up(
    run_course, two_means, submitted_solutions, spoil, message
):
    spoil(two_means)
    completed = run_course("grade", submitted_solutions, "--out", "out", *FAST, cwd=two_means)
    assert (completed.returncode, completed.stderr) == (
        2,
        f"course: {FIRST}: {message}, course.yaml says 4. {NOBODY_GRADED}\n",
    )
    assert not (two_means / "out").exists()
    verified = run_course("verify", FIRST, cwd=two_means)
    assert (verified.returncode, verified.stderr) == (1, "")
    assert "✗ points " in verified.stdout
    assert f"    {FIRST}: {message}, course.yaml says 4\n" in verified.stdout


def test_exercise_option_ignores_wrong_points_of_other_exercises(
    run_course, two_means, submitted_solutions
):
    rename_a_check(two_means)
    completed = run_course("grade", submitted_solutions, "--exercise", SECOND, *FAST, cwd=two_means)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert points_of_student(two_means / "results") == [4, 4]
    assert (
        run_course(
            "grade", submitted_solutions, "--exercise", FIRST, *FAST, cwd=two_means
        ).returncode
        == 2
    )


def test_an_error_in_a_check_leaves_its_exercise_ungraded_until_it_is_fixed(
    run_course, two_means, submitted_solutions
):
    original = checks_file(two_means).read_bytes()
    raise_in_a_check(two_means)
    completed = run_course("grade", submitted_solutions, *FAST, cwd=two_means)
    assert completed.returncode == 2, "an error in a check is the grader's fault"
    assert (
        "not graded: ada, ben: 01 The running mean: the grader itself failed here\n"
        in completed.stdout
    )
    assert "Next: the same course grade again" in completed.stdout
    message = (
        "a fault of the grader's own: gradients: ZeroDivisionError: division by zero "
        "(test_running_mean.py, line 28). Next: course verify"
    )
    assert (
        " ".join(completed.stdout.split()).count("ZeroDivisionError")
        == " ".join(completed.stdout.split()).count(message)
        == 1
    )
    assert points_of_student(two_means / "results") == [None, None, 4]
    exported = run_course("export", "--format", "canvas", cwd=two_means)
    assert exported.returncode == 1
    assert [line.rpartition(",")[2] for line in exported.stdout.splitlines()[1:]] == ["8", "", ""]
    assert (
        exported.stderr.splitlines()[0]
        == "not graded: ada: 01 The running mean: the grader itself failed here"
    )
    reported = run_course("report", "--students", cwd=two_means)
    assert [line.split() for line in reported.stdout.splitlines() if "?/8" in line] == [
        ["ada", "?", "4", "?/8"],
        ["ben", "?", "4", "?/8"],
    ]
    second_run = run_course("grade", submitted_solutions, *FAST, cwd=two_means)
    assert "2 submissions (2 in part)" in second_run.stdout, (
        "only the ungraded exercise is graded again"
    )
    checks_file(two_means).write_bytes(original)
    repaired = run_course("grade", submitted_solutions, *FAST, cwd=two_means)
    assert (repaired.returncode, points_of_student(two_means / "results")) == (0, [8, 4, 4])
    assert run_course("export", "--format", "canvas", cwd=two_means).returncode == 0


def seed_of(completed: subprocess.CompletedProcess[str]) -> int:
    """Return the seed that `course grade` printed."""
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return int(completed.stdout.partition("seed: ")[2].partition(",")[0])


def test_grade_keeps_its_seed_and_the_seed_repeats_the_results(
    run_course, two_means, submitted_solutions
):
    def grade(out: str, *options: str) -> subprocess.CompletedProcess[str]:
        return run_course(
            "grade", submitted_solutions, "--out", out, *FAST, *options, cwd=two_means
        )

    # ben hands in after the first run
    shutil.move(submitted_solutions / "ben", submitted_solutions.parent / "ben")
    seed = seed_of(grade("first"))
    original = (two_means / "first" / "ada" / "averages.json").read_bytes()
    assert read_result_file(two_means / "first")["seed"] == seed
    shutil.move(submitted_solutions.parent / "ben", submitted_solutions / "ben")
    second_run = grade("first")
    assert seed_of(second_run) == seed
    assert "(1 as before)" in second_run.stdout
    assert {
        read_result_file(two_means / "first", student)["seed"] for student in ("ada", "ben")
    } == {seed}
    assert (two_means / "first" / "ada" / "averages.json").read_bytes() == original
    assert seed_of(grade("second", "--seed", str(seed))) == seed
    assert (two_means / "second" / "ada" / "averages.json").read_bytes() == original
    assert seed_of(grade("first", "--seed", "0")) == 0
    assert {
        read_result_file(two_means / "first", student)["seed"] for student in ("ada", "ben")
    } == {0}


RIGHT_ATTEMPT = "right/running_mean/loop.py"  # in grader/


@pytest.fixture
def renamed_course(tiny_copy: Path) -> Path:
    """Write a course whose exercise had two other names before; return its folder."""
    settings = tiny_copy / "course.yaml"
    text = settings.read_text(encoding="utf-8")
    assert text.count("- id: running_mean\n") == 1
    new = "- id: running_mean\n        was: [mean_so_far, 03_means]\n"
    settings.write_text(text.replace("- id: running_mean\n", new), encoding="utf-8")
    return tiny_copy


@pytest.mark.bwrap
@pytest.mark.parametrize("name", ["01_mean_so_far.py", "03_means.py"])
def test_grade_accepts_a_former_exercise_name_and_notes_it(
    run_course, renamed_course, tmp_path, name
):
    handed_in = tmp_path / "submitted" / "ada" / "averages" / name
    handed_in.parent.mkdir(parents=True)
    handed_in.write_bytes((renamed_course / "grader" / RIGHT_ATTEMPT).read_bytes())
    completed = run_course(
        "grade", tmp_path / "submitted", "--course", renamed_course, "--out", tmp_path / "results"
    )
    assert (completed.returncode, completed.stderr) == (0, "")
    assert "not graded" not in completed.stdout
    result = json.loads(
        (tmp_path / "results" / "ada" / "averages.json").read_text(encoding="utf-8")
    )
    assert result["score"] == result["max_score"]
    assert (
        result["exercises"][0]["note"]
        == f"Graded from {name}: this exercise is called 01_running_mean now."
    )


def test_collect_renames_a_file_with_a_former_exercise_name(run_course, renamed_course, tmp_path):
    with zipfile.ZipFile(tmp_path / "submissions.zip", "w") as archive:
        archive.writestr(
            "lovelaceada_12345_678901_01_mean_so_far.py",
            (renamed_course / "grader" / RIGHT_ATTEMPT).read_text(),
        )
    completed = run_course(
        "collect",
        tmp_path / "submissions.zip",
        "--course",
        renamed_course,
        "--out",
        tmp_path / "submitted",
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert [path.name for path in (tmp_path / "submitted").glob("*/averages/*.py")] == [
        "01_running_mean.py"
    ]


MEAN = (TINY / "grader" / "right" / "running_mean" / "loop.py").read_text()
LAST_MEAN = MEAN.replace("running_mean", "last_mean")
# line 4 raises an exception
RAISES = "import torch\n\ndef running_mean(x):\n    raise KeyError('no')\n"


def graded_exercises(run_course: Run, two_means: Path, submitted: Path) -> dict[str, Any]:
    """Grade the submissions, and return ada's exercise results by id."""
    completed = run_course(
        "grade",
        submitted,
        "--out",
        submitted.parent / "out",
        "--jobs",
        "1",
        *FAST,
        cwd=two_means,
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    result = json.loads((submitted.parent / "out" / "ada" / "averages.json").read_text())
    return {exercise["id"]: exercise for exercise in result["exercises"]}


@pytest.mark.parametrize("name", ["homework.ipynb", "Averages (2).ipynb"])
def test_a_notebook_of_the_whole_assignment_is_collected_and_graded(
    run_course, two_means, tmp_path, name
):
    with zipfile.ZipFile(tmp_path / "class.zip", "w") as archive:
        archive.writestr(f"ada/{name}", notebook(MEAN, LAST_MEAN))
    completed = run_course(
        "collect", tmp_path / "class.zip", "--out", tmp_path / "in", cwd=two_means
    )
    assert completed.returncode == 0, completed.stdout
    assert (tmp_path / "in" / "ada" / "averages" / "averages.ipynb").is_file()
    exercises = graded_exercises(run_course, two_means, tmp_path / "in")
    assert {
        id_: (exercise["score"], exercise["note"]) for id_, exercise in exercises.items()
    } == dict.fromkeys(
        exercises, (4, "Graded from averages.ipynb, which holds the whole assignment.")
    )
    page = run_course("report", tmp_path / "out", cwd=two_means)
    assert page.returncode == 0
    pages = "".join(path.read_text() for path in (tmp_path / "out").rglob("*.html"))
    assert "Graded from averages.ipynb, which holds the whole assignment." in pages


def write_files_of_ada(tmp_path: Path, **files: str) -> Path:
    """Write files of one student, and return the folder of submissions.

    files: texts by file name, with "__" in place of the dot.
    """
    folder = tmp_path / "in" / "ada" / "averages"
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return tmp_path / "in"


def test_an_edited_exercise_file_takes_precedence_over_the_assignment_notebook(
    run_course, two_means, tmp_path
):
    stub = (two_means / "exercises" / "averages" / "02_last_mean.py").read_text()
    files = {
        "averages__ipynb": notebook(RAISES, LAST_MEAN),
        "01_running_mean__py": MEAN,
        "02_last_mean__py": stub,
    }
    exercises = graded_exercises(run_course, two_means, write_files_of_ada(tmp_path, **files))
    assert {id_: exercise["score"] for id_, exercise in exercises.items()} == {
        "running_mean": 4,
        "last_mean": 4,
    }
    assert exercises["running_mean"]["note"] == ""


def test_results_name_cells_of_an_assignment_notebook_and_missing_functions(
    run_course, two_means, tmp_path
):
    exercises = graded_exercises(
        run_course,
        two_means,
        write_files_of_ada(tmp_path, averages__ipynb=notebook("x = 1", RAISES)),
    )
    evidence = " ".join(check["evidence"] for check in exercises["running_mean"]["checks"])
    assert "line 4 of code cell 2" in evidence
    assert {check["outcome"] for check in exercises["last_mean"]["checks"]} == {"missing"}
