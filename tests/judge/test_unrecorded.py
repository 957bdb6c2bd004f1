"""Where nothing current is recorded of an exercise, that is said once, before anybody is graded, and points are given."""

import json
from pathlib import Path

import pytest

from manyheads.course import load_course
from manyheads.judge.judge_process import tell_unrecorded
from tests.conftest import Run
from tests.make import CLASS, hand_in, replace

SOLUTION = "solutions/averages/01_running_mean.py"
RECORDING = "exercises/averages/fingerprints/01_running_mean.safetensors"
FOUND = "course: no current recording of running_mean: points are given, and no misconception is named"
SAYS = f"{FOUND}. Next: course release running_mean\n"


@pytest.mark.parametrize(("change", "exercises", "says"), [
    pytest.param(lambda folder: None, (), "", id="current"),
    pytest.param(lambda folder: (folder / RECORDING).unlink(), (), SAYS, id="missing"),
    pytest.param(lambda folder: (folder / RECORDING).unlink(), ("another",), "", id="of an exercise that is not graded"),
    pytest.param(lambda folder: (folder / RECORDING).write_bytes(b"x"), (), SAYS, id="damaged"),
    pytest.param(lambda folder: replace(folder / SOLUTION, "at least 1 is needed", "one is needed"), (), SAYS,
        id="made from another reference"),
])  # fmt: skip
def test_it_is_said(tiny_copy, capsys, change, exercises, says):
    change(tiny_copy)
    tell_unrecorded(load_course(tiny_copy), exercises)
    assert capsys.readouterr().err == says


def test_several_judges_say_it_once_and_grading_goes_on(run_course: Run, tiny_copy: Path, tmp_path: Path) -> None:
    (tiny_copy / RECORDING).unlink()
    submitted = hand_in(tmp_path / "submitted", {name: CLASS[name] for name in ("ada", "ben")})
    done = run_course("grade", submitted, "--course", tiny_copy, "--jobs", "2", "--no-lines")
    assert (done.returncode, done.stderr) == (0, SAYS)
    ben = json.loads((tmp_path / "results/ben/averages.json").read_bytes())["exercises"][0]
    assert (ben["score"], ben["diagnosis"], ben["functions"][0]["state"]) == (2, [], "wrong")
