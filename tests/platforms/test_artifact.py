"""What one job hands to another is read as if anybody had written it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from manyheads.box.names import Device
from manyheads.course import Course
from manyheads.platforms.github import Collected
from manyheads.platforms.grade_pull_request import Artifact, ArtifactError, read_artifact, write_artifact
from manyheads.result import ProvedLine, Result

MakeResult = Callable[..., Result]
Forge = Callable[[Path], object]
STARTED = {("averages", "running_mean"): "01_running_mean.py"}


@pytest.fixture
def folder(collected: Collected, make_result: MakeResult, tmp_path: Path) -> Path:
    """The artifact of a graded pull request."""
    write_artifact(
        tmp_path / "results", collected, Device.CPU, Artifact([make_result("failed", evidence="no")], STARTED)
    )
    return tmp_path / "results"


def test_what_was_written_is_read(tiny: Course, collected: Collected, make_result: MakeResult, folder: Path) -> None:
    assert read_artifact(folder, tiny, collected) == Artifact([make_result("failed", evidence="no")], STARTED)


def test_it_tells_lines_and_never_the_edits_that_prove_them(tiny, collected, make_result, tmp_path):
    graded = with_lines(make_result("failed"), ProvedLine(line=7, edit="secret → edit"), ProvedLine(line=9))
    write_artifact(tmp_path / "results", collected, Device.CPU, Artifact([graded], STARTED))
    assert b"secret" not in b"".join(path.read_bytes() for path in (tmp_path / "results").rglob("*.json"))
    (read,) = read_artifact(tmp_path / "results", tiny, collected).results
    assert read == with_lines(graded, ProvedLine(line=7), ProvedLine(line=9))


def with_lines(result: Result, *lines: ProvedLine) -> Result:
    exercises = tuple(exercise.model_copy(update={"lines": lines}) for exercise in result.exercises)
    return result.model_copy(update={"exercises": exercises})


def test_what_is_not_graded_is_read_as_that_and_nothing_started_is_an_artifact_too(
    tiny, collected, make_result, tmp_path
):
    write_artifact(tmp_path / "results", collected, Device.CPU, Artifact([make_result("skipped")], STARTED))
    (read,) = read_artifact(tmp_path / "results", tiny, collected).results
    assert (read.score, read.not_graded) == (None, ("running_mean",))
    write_artifact(tmp_path / "results", collected, Device.CPU, Artifact([], {}))
    assert read_artifact(tmp_path / "results", tiny, collected) == Artifact([], {})


def test_a_gpu_may_be_asked_for_more_than_the_course_gives_points_for(tiny, collected, make_result, tmp_path):
    asked = make_result()
    (exercise,) = asked.exercises
    more = exercise.checks[0].model_copy(update={"id": "autocast", "score": 2.0, "max_score": 2.0})
    exercise = exercise.model_copy(update={"checks": (*exercise.checks, more), "score": 6.0, "max_score": 6.0})
    asked = asked.model_copy(update={"exercises": (exercise,), "score": 6.0, "max_score": 6.0, "device": "cuda"})
    write_artifact(tmp_path / "results", collected, Device.CUDA, Artifact([asked], STARTED))
    assert read_artifact(tmp_path / "results", tiny, collected).results == [asked]


def result(change: Callable[[dict[str, Any]], object]) -> Forge:
    return in_json("ada/averages.json", change)


def about(change: Callable[[dict[str, Any]], object]) -> Forge:
    return in_json("about.json", change)


def in_json(name: str, change: Callable[[dict[str, Any]], object]) -> Forge:
    def forge(folder: Path) -> None:
        data = json.loads((folder / name).read_text())
        change(data)
        (folder / name).write_text(json.dumps(data))

    return forge


def full_marks(data: dict[str, Any]) -> None:
    data["score"] = data["exercises"][0]["score"] = 4


def a_link(folder: Path) -> None:
    path = folder / "ada" / "averages.json"
    path.rename(folder / "real.json")
    path.symlink_to(folder / "real.json")


@pytest.mark.parametrize(("forge", "says"), [
    pytest.param(result(full_marks), "averages.json", id="a score that its checks do not add up to"),
    pytest.param(result(lambda r: r["exercises"][0]["checks"][0].update(score=1)), "its points in running_mean", id="points for a check that failed"),
    pytest.param(result(lambda r: (full_marks(r), r["exercises"][0]["checks"][0].update(score=1))), "its points in running_mean", id="full marks, and a check that failed"),
    pytest.param(result(lambda r: r["exercises"][0]["checks"][1].update(score=0)), "its points in running_mean", id="a check that passed without its points"),
    pytest.param(result(lambda r: (r.update(score=2.5), r["exercises"][0].update(score=2.5), r["exercises"][0]["checks"][1].update(score=0.5))), "its points in running_mean", id="a part of a check's points"),
    pytest.param(result(lambda r: (r.update(score=39, max_score=40), r["exercises"][0].update(score=39, max_score=40), r["exercises"][0]["checks"][1].update(score=37, max_score=37))), "its points in running_mean", id="more points than the course gives"),
    pytest.param(result(lambda r: (r.update(score=None), r["exercises"][0].update(score=None))), "its points in running_mean", id="no score where every check ran"),
    pytest.param(result(lambda r: r.update(score=None)), "its points", id="no total where every exercise has points"),
    pytest.param(result(lambda r: r["exercises"][0]["checks"][0].update(outcome="skipped")), "its points in running_mean", id="points where a check was not run"),
    pytest.param(result(lambda r: r.update(score=1e400)), "its points", id="an endless score"),
    pytest.param(result(lambda r: r.update(score=float("nan"))), "schema", id="no number"),
    pytest.param(result(lambda r: r.update(student="ben")), "of another submission", id="another student's"),
    pytest.param(result(lambda r: r.update(assignment="medians")), "of another submission", id="another assignment's"),
    pytest.param(result(lambda r: r.update(device="cuda")), "of another submission", id="another device's"),
    pytest.param(result(lambda r: r.update(isolation="process")), "not graded in the box", id="graded without a box"),
    pytest.param(result(lambda r: r["exercises"].append(r["exercises"][0])), "its exercises", id="an exercise twice"),
    pytest.param(result(lambda r: r["exercises"].clear()), "its exercises", id="no exercise"),
    pytest.param(result(lambda r: r["exercises"][0].update(checks=r["exercises"][0]["checks"] + [{**r["exercises"][0]["checks"][0], "max_score": 0}] * 300)), "its points", id="three hundred checks"),
    pytest.param(result(lambda r: r.update(more=1)), "schema", id="a field that no result has"),
    pytest.param(result(lambda r: r["exercises"][0]["checks"][0].update(outcome="great")), "schema", id="an outcome that none is"),
    pytest.param(result(lambda r: r["exercises"][0].update(lines=[{"line": 1, "edit": "a → b"}])), "its lines", id="a line with its edit"),
    pytest.param(result(lambda r: r["exercises"][0].update(lines=[{"line": n} for n in (1, 2, 3)])), "its lines", id="three lines"),
    pytest.param(result(lambda r: r["exercises"][0].update(lines=[{"line": 10**7}])), "its lines", id="a line that no file has"),
    pytest.param(result(lambda r: r["exercises"][0].update(lines=[{"line": 0}])), "schema", id="line 0 told"),
    pytest.param(result(lambda r: r["exercises"][0].update(note="x" * 2**20)), "too large", id="a megabyte of text"),
    pytest.param(lambda f: (f / "ada" / "averages.json").write_text("[" * 10**5), "schema", id="brackets that never close"),
    pytest.param(lambda f: (f / "ada" / "averages.json").write_bytes(b"\xff\0"), "schema", id="bytes that are no text"),
    pytest.param(lambda f: (f / "ada" / "averages.json").unlink(), "missing", id="a result that is not there"),
    pytest.param(a_link, "no regular file", id="a link"),
    pytest.param(about(lambda a: a.update(head="b" * 40)), "of another commit", id="another commit's"),
    pytest.param(about(lambda a: a.update(student="../ben")), "of another commit", id="a path in place of a student"),
    pytest.param(about(lambda a: a.update(assignments=["averages", "averages"])), "its assignments", id="an assignment twice"),
    pytest.param(about(lambda a: a.update(assignments=["../../etc/passwd"])), "its assignments", id="a path in place of an assignment"),
    pytest.param(about(lambda a: a.update(started=[["averages", "running_mean", "../../../etc/passwd"]])), "what is started", id="a path in place of an attempt"),
    pytest.param(about(lambda a: a.update(started=[["averages", "medians", "01_running_mean.py"]])), "what is started", id="another exercise started"),
    pytest.param(about(lambda a: a.update(device="quantum")), "schema", id="a device that none is"),
    pytest.param(lambda f: (f / "about.json").unlink(), "missing", id="nothing that says what it is"),
])  # fmt: skip
def test_a_forged_artifact_is_refused(tiny, collected, folder, forge, says):
    forge(folder)
    with pytest.raises(ArtifactError, match="is not what grading writes") as error:
        read_artifact(folder, tiny, collected)
    assert says in str(error.value)
