"""`course train`: in a folder as a student has it, a few steps of the real thing."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.box.process import ProcessBox
from manyheads.cli.app import app
from manyheads.cli.train import train
from manyheads.errors import CourseFault
from tests.student.real import REPOSITORY, exercise_of, solution

Run = Callable[..., subprocess.CompletedProcess[str]]
ID = "fused_qkv"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The course as a student has it, who has done one exercise."""
    exercises = Path("exercises/multi_head_attention")
    shutil.copy(REPOSITORY / "course.yaml", tmp_path)
    for place in ("curves", "fingerprints"):
        (tmp_path / exercises / place).mkdir(parents=True)
        for path in (REPOSITORY / exercises / place).glob("0[27]_*"):
            shutil.copy(path, tmp_path / exercises / place)
    script = exercise_of(ID).script.relative_to(REPOSITORY)
    (tmp_path / script).write_text(solution(ID), encoding="utf-8")
    return tmp_path


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, for a command that runs in this process: which has computed, so it may not be forked."""
    monkeypatch.setattr("manyheads.box.forked.open_own_box", ProcessBox)
    monkeypatch.chdir(folder)
    return folder


def test_a_right_attempt_learns_as_the_reference_does(run_course: Run, folder: Path) -> None:
    done = run_course("train", ID, "--steps", "50", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    _, yours, reference, mark, _, *writes, where, following = done.stdout.splitlines()
    assert yours.split()[1:] == reference.split()[1:]
    assert mark == "✓ Yours learns as the reference does: the two curves are one."
    assert writes[0] == "It writes:"
    assert writes[1].startswith("  Alice ")
    assert where == f"Drawn in {folder / 'plots' / f'{ID}_training.png'}"
    assert (folder / "plots" / f"{ID}_training.png").read_bytes().startswith(b"\x89PNG")
    assert following == f"Next: course check {ID}"


def test_a_page_shows_ones_own_heads_the_curve_and_the_text(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app(["train", ID, "--steps", "1", "--page"], standalone_mode=False) is None
    assert capsys.readouterr().out.endswith(f"Next: open plots/{ID}_training.html in your browser\n")
    page = (here / "plots" / f"{ID}_training.html").read_text(encoding="utf-8")
    assert page.count("<svg ") == 1 + 2 * 4
    assert "your heads, as the reference" in page
    assert "<script" not in page


def test_a_wrong_attempt_is_told_so_and_gives_status_1(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = next((here / "exercises" / "multi_head_attention").glob("07_*.py"))
    script.write_text(script.read_text(encoding="utf-8").replace("/ math.sqrt(self.head_dim)", ""), encoding="utf-8")
    assert app(["train", ID, "--steps", "2", "--out", "mine.png"], standalone_mode=False) == 1
    said = capsys.readouterr().out
    assert "✗ Yours begins elsewhere than the reference, with the same weights: it computes something else." in said
    assert (here / "mine.png").exists()


def test_what_stops_it_is_one_sentence(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = next((here / "exercises" / "multi_head_attention").glob("07_*.py"))
    script.write_text("import nowhere\n", encoding="utf-8")
    assert app(["train", ID], standalone_mode=False) == 1
    first, following = capsys.readouterr().out.splitlines()
    assert first.startswith("✗ Your code raised ModuleNotFoundError on line 1")
    assert following == f"Next: course check {ID}"


def test_without_matplotlib_there_is_no_picture_and_all_else(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> None:
        raise CourseFault("pictures need matplotlib. Next: pip install it")

    monkeypatch.setattr("manyheads.report.figures.need_matplotlib", missing)
    app(["train", ID, "--steps", "1"], standalone_mode=False)
    said = capsys.readouterr().out
    assert "No picture: pictures need matplotlib. Next: pip install it" in said
    assert "Drawn" not in said


def test_an_exercise_without_a_module_is_told_which_has_one(here: Path) -> None:
    with pytest.raises(CourseFault, match=r"^causal_mask has no module to train\. Next: course train weight_split$"):
        train("causal_mask")
