"""An exercise that was renamed: what was handed in by its earlier name is collected and graded."""

import json
import zipfile
from pathlib import Path

import pytest

from tests.conftest import Run

RIGHT = "right/running_mean/loop.py"


@pytest.fixture
def renamed(tiny_copy: Path) -> Path:
    settings = tiny_copy / "course.yaml"
    text = settings.read_text(encoding="utf-8")
    assert text.count("- id: running_mean\n") == 1
    new = "- id: running_mean\n        was: [mean_so_far, 03_means]\n"
    settings.write_text(text.replace("- id: running_mean\n", new), encoding="utf-8")
    return tiny_copy


@pytest.mark.parametrize("name", ["01_mean_so_far.py", "03_means.py"])
def test_an_old_name_is_graded_and_the_result_says_so(run_course, renamed, tmp_path, name):
    handed_in = tmp_path / "submitted" / "ada" / "averages" / name
    handed_in.parent.mkdir(parents=True)
    handed_in.write_bytes((renamed / "grader" / RIGHT).read_bytes())
    done = run_course("grade", tmp_path / "submitted", "--course", renamed, "--out", tmp_path / "results")
    assert (done.returncode, done.stderr) == (0, "")
    assert "not graded" not in done.stdout
    result = json.loads((tmp_path / "results" / "ada" / "averages.json").read_text(encoding="utf-8"))
    assert result["score"] == result["max_score"]
    assert result["exercises"][0]["note"] == f"Graded from {name}: this exercise is called 01_running_mean now."


def test_an_old_name_is_collected_under_the_new_one(run_course: Run, renamed: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "submissions.zip", "w") as archive:
        archive.writestr("lovelaceada_12345_678901_01_mean_so_far.py", (renamed / "grader" / RIGHT).read_text())
    done = run_course("collect", tmp_path / "submissions.zip", "--course", renamed, "--out", tmp_path / "submitted")
    assert done.returncode == 0, done.stdout + done.stderr
    assert [path.name for path in (tmp_path / "submitted").glob("*/averages/*.py")] == ["01_running_mean.py"]
