"""How many judges `course grade` starts: one for each CPU that it may use, and on a GPU as many as there are GPUs."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
import torch

from manyheads.box import nvidia
from manyheads.box.names import Device
from manyheads.box.nvidia import Driver, Gpu, Places
from manyheads.cli import grade as command
from manyheads.result import Result
from tests.make import hand_in

SCHEMA = Path(__file__).parents[2] / "manyheads" / "result.schema.json"
CPUS = os.sched_getaffinity(0)
ONE = "A GPU takes one attempt at a time: 1 judge at work."


@pytest.fixture
def submitted(tmp_path: Path) -> Path:
    """A class of three."""
    return hand_in(
        tmp_path / "submitted", dict.fromkeys(("ada", "bela", "chen"), "def running_mean(x):\n    return x\n")
    )


@pytest.fixture
def one_cpu() -> Iterator[None]:
    """May be used, of all that this machine has: as taskset or a container's cpuset says."""
    os.sched_setaffinity(0, {min(CPUS)})
    yield
    os.sched_setaffinity(0, CPUS)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_without_a_gpu_nobody_is_graded_and_it_says_so(run_course, tiny_copy, tmp_path, submitted):
    done = run_course("grade", submitted, "--device", "cuda", "--jobs", "3", "--course", tiny_copy)
    assert (done.returncode, done.stdout.splitlines()[0]) == (2, ONE)
    assert done.stderr == (
        "course: this machine has no CUDA device that torch can use. Next: course grade … --device cpu\n"
    )
    assert not list(tmp_path.glob("results/ada/*.json"))


@pytest.mark.parametrize(("device", "gpus", "judges", "says"), [
    pytest.param(Device.CUDA, 1, 1, "1 judge at work", id="on one GPU one works"),
    pytest.param(Device.CUDA, 2, 2, "2 judges at work", id="on two GPUs two"),
    pytest.param(Device.CUDA, 3, 3, "", id="as many as were asked for need no word"),
    pytest.param(Device.CUDA, 4, 3, "", id="nor do fewer"),
    pytest.param(Device.CPU, 1, 3, "", id="a CPU has room for all"),
])  # fmt: skip
def test_of_three_judges_there_are_at_work(monkeypatch, capsys, tiny_copy, submitted, device, gpus, judges, says):
    asked: list[int] = []
    monkeypatch.setattr(command, "grade_all", lambda plan, waiting, jobs, only: asked.append(jobs) or iter(()))
    found = Driver(Places(), tuple(Gpu(f"nvidia{i}", f"GPU-{i}") for i in range(gpus)), "", False)
    monkeypatch.setattr(nvidia, "find_driver", lambda: found)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    command.grade(submitted, submitted.parent / "results", device=device, jobs=3, course=tiny_copy)
    said = capsys.readouterr().out
    assert asked == [judges]
    assert says in said
    assert ("A GPU takes one attempt at a time" in said) is bool(says)


@pytest.mark.skipif(os.cpu_count() == 1, reason="one CPU is all that there is")
@pytest.mark.usefixtures("one_cpu")
def test_where_nobody_says_how_many_there_is_a_judge_for_each_cpu_that_may_be_used(monkeypatch, tiny_copy, submitted):
    asked: list[int] = []
    monkeypatch.setattr(command, "grade_all", lambda plan, waiting, jobs, only: asked.append(jobs) or iter(()))
    command.grade(submitted, submitted.parent / "results", course=tiny_copy)
    assert asked == [1]


@pytest.mark.parametrize(("options", "lines"), [((), [4]), (("--no-lines",), [])], ids=["asked", "not asked"])
def test_the_wrong_line_is_in_the_result_unless_nobody_wants_it(run_course, tiny_copy, tmp_path, options, lines):
    path = tmp_path / "submitted" / "ada" / "averages" / "01_running_mean.py"
    path.parent.mkdir(parents=True)
    path.write_text(WRONG)
    done = run_course("grade", tmp_path / "submitted", *options, "--course", tiny_copy, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    written = (tmp_path / "out" / "ada" / "averages.json").read_bytes()
    jsonschema.validate(json.loads(written), json.loads(SCHEMA.read_text(encoding="utf-8")))
    (exercise,) = Result.model_validate_json(written).exercises
    assert [line.line for line in exercise.lines] == lines


WRONG = """\
import torch
def running_mean(x):
    if len(x) == 0: raise ValueError("no numbers")
    return x.cumsum(0) / torch.arange(2, len(x) + 1, dtype=x.dtype)
"""


def test_one_attempt_alone_is_graded_again_on_the_same_inputs(run_course, tiny_copy, tmp_path, submitted):
    """A student's page has the line to send; the instructor repeats that alone, and what was found of others stays."""
    where = ("--course", tiny_copy, "--out", tmp_path / "out", "--no-lines")
    assert run_course("grade", submitted, *where).returncode == 0
    assert run_course("report", tmp_path / "out", "--course", tiny_copy).returncode == 0
    before = {path: path.read_bytes() for path in tmp_path.glob("out/*/averages.json")}
    noted = (journal := tmp_path / "out" / ".journal").read_text(encoding="utf-8")
    ada = tmp_path / "out" / "ada" / "averages.json"
    first = json.loads(ada.read_text(encoding="utf-8"))
    page = (tmp_path / "out" / "report" / "students" / "ada.html").read_text(encoding="utf-8")
    check = next(c["id"] for c in first["exercises"][0]["checks"] if c["outcome"] != "passed")
    line = f"ada/running_mean, check {check}, seed {first['seed']}, file {first['exercises'][0]['digest']}"
    assert line in page
    done = run_course("grade", submitted, *where, "--only", line.partition(",")[0])
    assert (done.returncode, done.stderr) == (0, "")
    graded = journal.read_text(encoding="utf-8").removeprefix(noted).split("\n")
    assert [json.loads(row)[0] for row in graded if row] == ["ada/averages"]
    assert {path: path.read_bytes() for path in tmp_path.glob("out/*/averages.json")} == before


@pytest.mark.parametrize(("only", "says"), [
    ("ada", "--only ada should be STUDENT/EXERCISE"),
    ("nobody/running_mean", "has nothing of nobody"),
    ("ada/median", "median"),
])  # fmt: skip
def test_what_is_no_attempt_is_one_sentence(run_course, tiny_copy, tmp_path, submitted, only, says):
    done = run_course("grade", submitted, "--course", tiny_copy, "--out", tmp_path / "out", "--only", only)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert "Next: " in done.stderr


def test_whoever_is_absent_stays_known_where_one_attempt_is_graded(run_course, tiny_copy, tmp_path, submitted):
    """A row of overrides.yaml may be about somebody who handed in nothing, and is on the roster."""
    (tiny_copy / "roster.csv").write_text("id,name\nada,A\nbela,B\nchen,C\nmlin,M\n")
    (tiny_copy / "overrides.yaml").write_text(
        "- {student: mlin, assignment: averages, excused: true, by: Dr. X, comment: ill}\n"
    )
    roster = ("--roster", tiny_copy / "roster.csv", "--course", tiny_copy)
    common = (*roster, "--no-lines")
    done = run_course("grade", submitted, *common, "--out", tmp_path / "out")
    assert (done.returncode, done.stderr) == (0, "")
    done = run_course("grade", submitted, *common, "--out", tmp_path / "out", "--only", "ada/running_mean")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Handed in nothing" not in done.stdout
