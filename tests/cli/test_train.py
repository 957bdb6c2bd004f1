"""`course train`: in a folder as a student has it, a few steps of the real thing."""

import re
import shutil
from pathlib import Path

import pytest

from manyheads.box.process import ProcessBox
from manyheads.cli.app import app
from manyheads.cli.learn import train
from manyheads.errors import CourseFault
from tests.conftest import Run
from tests.student.real import REPOSITORY, exercise_of, solution

ID = "fused_qkv"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The course as a student has it, who has done one exercise."""
    exercises = Path("exercises/multi_head_attention")
    shutil.copy(REPOSITORY / "course.yaml", tmp_path)
    (tmp_path / exercises / "fingerprints").mkdir(parents=True)
    for path in (REPOSITORY / exercises / "fingerprints").glob("0[27]_*"):
        shutil.copy(path, tmp_path / exercises / "fingerprints")
    script = exercise_of(ID).script.relative_to(REPOSITORY)
    (tmp_path / script).write_text(solution(ID), encoding="utf-8")
    return tmp_path


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, for a command that runs in this process: which has computed, so it may not be forked."""
    monkeypatch.setattr("manyheads.box.forked.open_own_box", lambda meta=False: ProcessBox())
    monkeypatch.chdir(folder)
    return folder


def test_it_learns_and_writes(run_course: Run, folder: Path) -> None:
    done = run_course("train", ID, "--steps", "100", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    step, means, heading, *writes, following = done.stdout.splitlines()
    loss = re.fullmatch(r"step  100, loss (\d\.\d\d): Alice .*", step)
    assert loss
    assert 2 < float(loss[1]) < 4
    assert re.fullmatch(
        rf"A loss of {loss[1]} means being as unsure as among [\d.]+ equally likely characters; at first it was [\d.]+\.",
        means,
    )
    assert heading == "It writes:"
    assert writes[0].startswith("  Alice ")
    assert following == f"Next: course check {ID}"


def test_what_stops_it_is_one_sentence(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = next((here / "exercises" / "multi_head_attention").glob("07_*.py"))
    script.write_text("import nowhere\n", encoding="utf-8")
    assert app(["train", ID], standalone_mode=False) == 1
    first, following = capsys.readouterr().out.splitlines()
    assert first.startswith("✗ Your code raised ModuleNotFoundError on line 1")
    assert following == f"Next: course check {ID}"


def test_an_exercise_without_a_module_is_told_which_has_one(here: Path) -> None:
    with pytest.raises(CourseFault, match=r"^causal_mask has no module to train\. Next: course train weight_split$"):
        train("causal_mask")
