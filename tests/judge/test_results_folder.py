"""A folder of results is one run's at a time; what is written there; what a run says before anybody
is graded.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from manyheads.course import Assignment, load_course
from manyheads.course.course_yaml_schema import AssignmentRow, ExerciseRow
from manyheads.files import CourseFault
from manyheads.judge import results_folder
from manyheads.judge.judge_process import report_unrecorded
from manyheads.judge.results_folder import (
    finish_changed_points,
    merge_results,
    note_points,
    read_changed_points,
    seed_of_run,
)
from manyheads.result import Adjustment, Result
from tests import make
from tests.conftest import Run
from tests.make import CLASS, hand_in, replace


def result_of(student: str = "ada", **scores: float | None) -> Result:
    exercises = [make.exercise(id_, score=score, max_score=9) for id_, score in scores.items()]
    return make.result(student, *exercises, assignment="heads", seed=7)


def test_other_points_are_noted_and_the_same_are_not(tmp_path: Path) -> None:
    note_points(tmp_path, result_of(mask=3, dance=1), result_of(mask=5, dance=1))
    note_points(tmp_path, result_of("ben", mask=3), result_of("ben", mask=3))
    note_points(tmp_path, result_of("cat", mask=3), result_of("cat", mask=None))
    adjusted = {"adjustments": (Adjustment(rule="score", words="5 by hand"),)}
    by_hand = result_of("dan", mask=5).model_copy(update=adjusted)
    note_points(tmp_path, result_of("dan", mask=4), by_hand)
    assert read_changed_points(tmp_path) == [], "the run has not ended"
    changed = [("ada", "heads", 4, 6), ("cat", "heads", 3, None)]
    assert finish_changed_points(tmp_path) == changed
    assert read_changed_points(tmp_path) == changed


def test_an_exercise_that_only_one_of_both_has_changes_nothing(tmp_path: Path) -> None:
    note_points(tmp_path, result_of(mask=3), result_of(mask=3, dance=2))
    assert finish_changed_points(tmp_path) == []


def test_the_next_run_says_its_own(tmp_path: Path) -> None:
    note_points(tmp_path, result_of(mask=3), result_of(mask=5))
    finish_changed_points(tmp_path)
    assert finish_changed_points(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_was_stopped_and_goes_on_is_one(tmp_path: Path) -> None:
    note_points(tmp_path, result_of(mask=3), result_of(mask=5))
    note_points(tmp_path, result_of("ben", mask=3), result_of("ben", mask=5))
    with (tmp_path / results_folder.CHANGING).open("a") as file:
        file.write('\n["cat", "he')  # the power went
    note_points(tmp_path, result_of(mask=5), result_of(mask=4))
    note_points(tmp_path, result_of("ben", mask=5), result_of("ben", mask=3))
    assert finish_changed_points(tmp_path) == [("ada", "heads", 3, 4)], "ben has what he had"


ROWS = tuple(ExerciseRow(id=id_, title=id_, points=2, hint="?") for id_ in ("one", "two", "old"))
ASSIGNMENT = Assignment(Path("course"), AssignmentRow(id="a", title="A", exercises=ROWS))


def result(isolation: str = "namespaces", **scores: float) -> Result:
    exercises = [make.exercise(id_, make.check("c", score, 2)) for id_, score in scores.items()]
    return make.result("ada", *exercises, assignment="a", isolation=isolation)


def test_the_other_exercises_stay_in_the_courses_order() -> None:
    combined = merge_results(result(two=2), result(one=1, two=0, old=2), ASSIGNMENT)
    assert [(e.id, e.score) for e in combined.exercises] == [("one", 1), ("two", 2), ("old", 2)]
    assert (combined.score, combined.max_score) == (5, 6)


def test_an_exercise_that_the_course_has_no_more_goes() -> None:
    assert [e.id for e in merge_results(result(two=2), result(gone=1), ASSIGNMENT).exercises] == [
        "two"
    ]


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(None, id="there is none"),
        pytest.param(result("process", one=2), id="another level"),
    ],
)
def test_nothing_is_taken_from_where_nothing_fits(before: Result | None) -> None:
    new = result(two=1)
    assert merge_results(new, before, ASSIGNMENT) == new


NEW = 123_456


@pytest.fixture(autouse=True)
def fixed_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A seed that is drawn is this one."""
    monkeypatch.setattr(results_folder.secrets, "randbelow", lambda below: NEW)


def results(folder: Path, *seeds: object, assignment: str = "sums") -> Path:
    """Results with these seeds."""
    for i, seed in enumerate(seeds):
        path = folder / f"student{i}" / f"{assignment}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'{{"seed": {seed}}}' if seed is not None else "half a fi")
    return folder


@pytest.mark.parametrize(
    ("before", "given", "seed"),
    [
        pytest.param((), None, NEW, id="a first run draws one"),
        pytest.param((), 0, 0, id="it takes the one that is given, also 0"),
        pytest.param((7, 7), None, 7, id="a run goes on with that of its results"),
        pytest.param((0, 0), None, 0, id="also with 0"),
        pytest.param((3, 7, 7), None, 7, id="of several it takes the most frequent"),
        pytest.param((None, 7), None, 7, id="what is no result has none"),
        pytest.param((7, 7), 3, 3, id="one that is given goes before that of results"),
    ],
)
def test_a_seed(tmp_path: Path, before: tuple[object, ...], given: int | None, seed: int) -> None:
    assert seed_of_run(results(tmp_path, *before), ["sums"], given, in_part=False) == seed


def test_results_of_another_assignment_are_no_matter(tmp_path: Path) -> None:
    results(tmp_path, 7, assignment="means")
    assert seed_of_run(tmp_path, ["sums"], None, in_part=False) == NEW


@pytest.mark.parametrize("given", [None, 7], ids=["not said", "said"])
def test_where_other_exercises_stay_their_seed_stays(tmp_path: Path, given: int | None) -> None:
    assert seed_of_run(results(tmp_path, 7, 7), ["sums"], given, in_part=True) == 7


@pytest.mark.parametrize(("before", "given"), [((7, 7), 3), ((3, 7), None), ((3, 7), 7)])
def test_where_they_have_another_one_that_is_said(
    tmp_path: Path, before: tuple[int, ...], given: int | None
) -> None:
    with pytest.raises(CourseFault, match=r"states one seed\. Next: "):
        seed_of_run(results(tmp_path, *before), ["sums"], given, in_part=True)


def test_without_results_there_is_nothing_to_keep(tmp_path: Path) -> None:
    assert seed_of_run(tmp_path, ["sums"], None, in_part=True) == NEW
    assert seed_of_run(tmp_path, ["sums"], 3, in_part=True) == 3


MEAN = "def running_mean(x):\n    return x\n"
HOLD = """
import sys, time
from pathlib import Path
from manyheads.judge.results_folder import lock_results
with lock_results(Path(sys.argv[1]), []):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def submissions_folder(tmp_path: Path) -> Path:
    return hand_in(tmp_path / "submitted", dict.fromkeys(("ada", "bela"), MEAN))


@pytest.fixture
def grade(run_course, tiny_copy, submissions_folder, tmp_path):
    out = tmp_path / "out"
    return lambda: run_course(
        "grade", submissions_folder, "--out", out, "--jobs", "1", "--no-lines", cwd=tiny_copy
    )


@pytest.fixture
def other(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the folder."""
    holding = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "out")], stdout=subprocess.PIPE, text=True
    )
    assert holding.stdout.readline() == "held\n"
    yield holding
    holding.kill()
    holding.wait()


def test_the_second_run_into_a_folder_says_so_and_one_that_died_holds_nothing(
    grade, other, tmp_path
):
    completed = grade()
    assert (completed.returncode, completed.stdout) == (2, "")
    message = (
        f"course: another course grade (process {other.pid}) is writing to {tmp_path / 'out'}. "
    )
    assert completed.stderr == f"{message}Next: wait for its end, or give --out another folder\n"
    assert [path.name for path in (tmp_path / "out").iterdir()] == [".lock"]
    other.kill()
    other.wait()
    assert grade().returncode == 0


@pytest.mark.parametrize(
    "name",
    ["bela", "bela/averages.json", ".journal", ".lock", "not-graded.json", ".points-changed"],
)
@pytest.mark.parametrize("is_link", [True, False], ids=["a link", "a folder"])
def test_links_and_folders_in_place_of_files_are_refused_before_anybody_is_graded(
    grade, tmp_path, name, is_link
):
    path, elsewhere = tmp_path / "out" / name, tmp_path / "elsewhere"
    path.parent.mkdir(parents=True)
    then = "is to be written. Next: move it elsewhere, or give --out another folder"
    if is_link:
        path.symlink_to(elsewhere)
        message = f"{path} is a link, and nothing is written through it. Next: remove it"
    elif name == "bela":
        path.write_text("")
        message = f"{path} is a file, where a folder {then}"
    else:
        path.mkdir()
        message = f"{path} is a folder, where a file {then}"
    completed = grade()
    assert (completed.returncode, completed.stdout, completed.stderr) == (
        2,
        "",
        f"course: {message}\n",
    )
    assert not elsewhere.exists()
    assert not (tmp_path / "out" / "ada").exists()


def test_what_is_written_whole_follows_no_link_that_waits_for_it(tmp_path: Path) -> None:
    from manyheads.files import write_whole

    (tmp_path / f"a.json.{os.getpid()}.partial").symlink_to(tmp_path / "elsewhere")
    write_whole(tmp_path / "a.json", b"1")
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
    assert (tmp_path / "a.json").read_bytes() == b"1"


SOLUTION = "solutions/averages/01_running_mean.py"
RECORDING = "exercises/averages/fingerprints/01_running_mean.safetensors"
FOUND = (
    "course: no current recording of running_mean: points are given, and no misconception is named"
)
SAYS = f"{FOUND}. Next: course release running_mean\n"


@pytest.mark.parametrize(
    ("change", "exercises", "says"),
    [
        pytest.param(lambda folder: None, (), "", id="current"),
        pytest.param(lambda folder: (folder / RECORDING).unlink(), (), SAYS, id="missing"),
        pytest.param(
            lambda folder: (folder / RECORDING).unlink(),
            ("another",),
            "",
            id="of an exercise that is not graded",
        ),
        pytest.param(lambda folder: (folder / RECORDING).write_bytes(b"x"), (), SAYS, id="damaged"),
        pytest.param(
            lambda folder: replace(folder / SOLUTION, "at least 1 is needed", "one is needed"),
            (),
            SAYS,
            id="made from another reference",
        ),
    ],
)
def test_it_is_said(tiny_copy, capsys, change, exercises, says):
    change(tiny_copy)
    report_unrecorded(load_course(tiny_copy), exercises)
    assert capsys.readouterr().err == says


def test_several_judges_say_it_once_and_grading_goes_on(
    run_course: Run, tiny_copy: Path, tmp_path: Path
) -> None:
    (tiny_copy / RECORDING).unlink()
    submitted = hand_in(tmp_path / "submitted", {name: CLASS[name] for name in ("ada", "ben")})
    completed = run_course("grade", submitted, "--course", tiny_copy, "--jobs", "2", "--no-lines")
    assert (completed.returncode, completed.stderr) == (0, SAYS), completed.stderr
    ben = json.loads((tmp_path / "results/ben/averages.json").read_bytes())["exercises"][0]
    assert (ben["score"], ben["diagnosis"], ben["functions"][0]["state"]) == (2, [], "wrong")
