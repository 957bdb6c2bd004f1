"""The folder of results: its lock, its seed, changed points, and refused links."""

import json
import os
import re
from pathlib import Path

import pytest

from manyheads.course import Assignment, load_course
from manyheads.course.course_yaml_schema import AssignmentRow, ExerciseRow
from manyheads.files import CourseFault, write_whole
from manyheads.judge import results_folder
from manyheads.judge.judge_process import report_unrecorded
from manyheads.judge.results_folder import (
    finish_changed_points,
    lock_results,
    merge_results,
    note_points,
    read_changed_points,
    seed_of_run,
)
from manyheads.result import Adjustment
from manyheads.submission import Submission
from tests import make
from tests.make import CLASS, cases, hand_in


def scored_result(student, isolation="namespaces", **scores):
    """Return a result with these scores (exercise=score)."""
    exercises = [make.exercise(id_, score=score, max_score=9) for id_, score in scores.items()]
    return make.result(student, *exercises, assignment="sums", isolation=isolation)


BY_HAND = {"adjustments": (Adjustment(rule="score", words="5 by hand"),)}


@cases(
    "before, after, changed",
    {
        "other points": ({"one": 3, "two": 1}, {"one": 5, "two": 1}, [(4, 6)]),
        "the same points": ({"one": 3}, {"one": 3}, []),
        "an exercise that is no longer graded": ({"one": 3}, {"one": None}, [(3, None)]),
        "an exercise that is new": ({"one": 3}, {"one": 3, "two": 2}, []),
    },
)
def test_changed_points_are_reported_once_at_the_end(tmp_path, before, after, changed):
    note_points(tmp_path, scored_result("ada", **before), scored_result("ada", **after))
    assert read_changed_points(tmp_path) == []
    reports = [("ada", "sums", *points) for points in changed]
    assert finish_changed_points(tmp_path) == read_changed_points(tmp_path) == reports
    assert finish_changed_points(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_points_set_by_hand_are_not_reported_as_changed(tmp_path):
    by_hand = scored_result("ada", one=5).model_copy(update=BY_HAND)
    note_points(tmp_path, scored_result("ada", one=4), by_hand)
    assert finish_changed_points(tmp_path) == []


def test_a_continued_run_reports_changes_from_before_it_was_stopped(tmp_path):
    note_points(tmp_path, scored_result("ada", one=3), scored_result("ada", one=5))
    note_points(tmp_path, scored_result("ben", one=3), scored_result("ben", one=5))
    with (tmp_path / results_folder.CHANGING).open("a") as file:
        file.write('\n["cat", "he')  # the power went
    note_points(tmp_path, scored_result("ada", one=5), scored_result("ada", one=4))
    note_points(tmp_path, scored_result("ben", one=5), scored_result("ben", one=3))
    assert finish_changed_points(tmp_path) == [("ada", "sums", 3, 4)], "ben has what he had"


ROWS = tuple(ExerciseRow(id=id_, title=id_, points=9, hint="?") for id_ in ("one", "two", "old"))
ASSIGNMENT = Assignment(Path("course"), AssignmentRow(id="sums", title="Sums", exercises=ROWS))


@cases(
    "before, scores",
    {
        "exercises that are not graded now": (
            scored_result("ada", one=1, two=0, old=2),
            {"one": 1, "two": 2, "old": 2},
        ),
        "an exercise that the course no longer has": (scored_result("ada", gone=1), {"two": 2}),
        "another level of isolation": (scored_result("ada", "process", one=2), {"two": 2}),
        "no result": (None, {"two": 2}),
    },
)
def test_a_merged_result_keeps_exercises_that_were_not_graded_again(before, scores):
    merged = merge_results(scored_result("ada", two=2), before, ASSIGNMENT)
    assert {exercise.id: exercise.score for exercise in merged.exercises} == scores
    assert [*scores] == [exercise.id for exercise in merged.exercises]
    assert (merged.score, merged.max_score) == (sum(scores.values()), 9 * len(scores))


NEW_SEED = 123_456


def write_seeds(folder, *seeds, assignment="sums"):
    """Write a result with each of these seeds, and a broken one for None."""
    for number, seed in enumerate(seeds):
        path = folder / f"student{number}" / f"{assignment}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("half a fi" if seed is None else f'{{"seed": {seed}}}')


@cases(
    "before, given, in_part, seed",
    {
        "a first run draws a seed": ((), None, False, NEW_SEED),
        "a first run takes the option": ((), 0, False, 0),
        "the seed of earlier results": ((7, 7), None, False, 7),
        "a seed of 0 in earlier results": ((0, 0), None, False, 0),
        "the most frequent seed of earlier results": ((3, 7, 7), None, False, 7),
        "a broken result is ignored": ((None, 7), None, False, 7),
        "the option goes before earlier results": ((7, 7), 3, False, 3),
        "some exercises, one earlier seed": ((7, 7), None, True, 7),
        "some exercises, no earlier result": ((), 3, True, 3),
        "some exercises, another seed in the option": ((7, 7), 3, True, None),
        "some exercises, several earlier seeds": ((3, 7), None, True, None),
        "some exercises, several earlier seeds and the option": ((3, 7), 7, True, None),
    },
)
def test_a_run_takes_its_seed_from_the_option_or_from_earlier_results(
    tmp_path, monkeypatch, before, given, in_part, seed
):
    """`before` are the seeds of earlier results, and None is a broken result.

    `given` is the option --seed; `in_part` means that only some exercises are graded.
    """
    monkeypatch.setattr(results_folder.secrets, "randbelow", lambda below: NEW_SEED)
    write_seeds(tmp_path, *before)
    write_seeds(tmp_path, 5, 5, 5, assignment="means")
    if seed is None:
        with pytest.raises(CourseFault, match=r"states one seed\. Next: "):
            seed_of_run(tmp_path, ["sums"], given, in_part=in_part)
    else:
        assert seed_of_run(tmp_path, ["sums"], given, in_part=in_part) == seed


def test_a_second_run_into_a_folder_is_refused_until_the_first_has_ended(
    run_course, tiny_copy, tmp_path
):
    out = tmp_path / "out"
    submitted = hand_in(tmp_path / "submitted", {"bela": "def running_mean(x):\n    return x\n"})
    grading = ("grade", submitted, "--out", out, "--jobs", "1", "--no-lines")
    with lock_results(out, []):
        completed = run_course(*grading, cwd=tiny_copy)
        assert [path.name for path in out.iterdir()] == [".lock"]
    assert (completed.returncode, completed.stdout, completed.stderr) == (
        2,
        "",
        f"course: another course grade (process {os.getpid()}) is writing to {out}. "
        "Next: wait for its end, or give --out another folder\n",
    )
    assert run_course(*grading, cwd=tiny_copy).returncode == 0


REPLACED = "{} is a {}, where a {} is to be written. Next: move it elsewhere, or give --out another"


@pytest.mark.parametrize(
    "name", ["bela", "bela/sums.json", ".journal", ".lock", "not-graded.json", ".points-changed"]
)
@pytest.mark.parametrize("is_link", [True, False], ids=["a link", "a file or folder"])
def test_a_run_is_refused_if_something_else_has_the_name_of_its_output(tmp_path, name, is_link):
    path = tmp_path / "out" / name
    path.parent.mkdir(parents=True)
    if is_link:
        path.symlink_to(tmp_path / "elsewhere")
        message = f"{path} is a link, and nothing is written through it. Next: remove it"
    elif name == "bela":
        path.write_text("")
        message = REPLACED.format(path, "file", "folder")
    else:
        path.mkdir()
        message = REPLACED.format(path, "folder", "file")
    submission = Submission("bela", ASSIGNMENT, tmp_path / "submitted")
    with pytest.raises(CourseFault, match=re.escape(message)):
        lock_results(tmp_path / "out", [submission])
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_is_not_written_through_a_link_at_its_temporary_name(tmp_path):
    (tmp_path / f"a.json.{os.getpid()}.partial").symlink_to(tmp_path / "elsewhere")
    write_whole(tmp_path / "a.json", b"1")
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
    assert (tmp_path / "a.json").read_bytes() == b"1"


RECORDING = "exercises/averages/fingerprints/01_running_mean.safetensors"
UNRECORDED = (
    "course: no current recording of running_mean: points are given, and no misconception is "
    "named. Next: course release running_mean\n"
)


def remove_recording(folder):
    (folder / RECORDING).unlink()


@cases(
    "change, exercises, message",
    {
        "a current recording": (lambda folder: None, (), ""),
        "a missing recording": (remove_recording, (), UNRECORDED),
        "a missing recording of an exercise that is not graded": (
            remove_recording,
            ("another",),
            "",
        ),
        "a damaged recording": (make.write(RECORDING, "x"), (), UNRECORDED),
        "a recording of another reference": (
            make.edit("solutions/averages/01_running_mean.py", "at least 1 is", "one is"),
            (),
            UNRECORDED,
        ),
    },
)
def test_a_missing_or_outdated_recording_is_reported(tiny_copy, capsys, change, exercises, message):
    change(tiny_copy)
    report_unrecorded(load_course(tiny_copy), exercises)
    assert capsys.readouterr().err == message


@pytest.mark.bwrap
def test_without_a_recording_points_are_given_and_one_message_is_printed(
    run_course, tiny_copy, tmp_path
):
    remove_recording(tiny_copy)
    submitted = hand_in(tmp_path / "submitted", {name: CLASS[name] for name in ("ada", "ben")})
    completed = run_course("grade", submitted, "--course", tiny_copy, "--jobs", "2", "--no-lines")
    assert (completed.returncode, completed.stderr) == (0, UNRECORDED)
    ben = json.loads((tmp_path / "results/ben/averages.json").read_bytes())["exercises"][0]
    assert (ben["score"], ben["diagnosis"], ben["functions"][0]["state"]) == (2, [], "wrong")
