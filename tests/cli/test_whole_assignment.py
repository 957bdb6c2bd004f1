"""One notebook with all exercises of an assignment is graded for each of them."""

import json
import zipfile
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.conftest import Run
from tests.make import TINY

FIRST = (TINY / "grader" / "right" / "running_mean" / "loop.py").read_text()
SECOND = FIRST.replace("running_mean", "last_mean")
WRONG = "import torch\n\ndef running_mean(x):\n    raise KeyError('no')\n"


def notebook(*cells: str) -> str:
    found = [nbformat.v4.new_markdown_cell("# My homework"), *map(nbformat.v4.new_code_cell, cells)]
    return nbformat.writes(nbformat.v4.new_notebook(cells=found))


def graded(run_course: Run, two_means: Path, submitted: Path) -> dict[str, Any]:
    done = run_course("grade", submitted, "--out", submitted.parent / "out", "--jobs", "1", "--no-lines", cwd=two_means)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((submitted.parent / "out" / "ada" / "averages.json").read_text())
    return {exercise["id"]: exercise for exercise in result["exercises"]}


@pytest.mark.parametrize("name", ["homework.ipynb", "Averages (2).ipynb"])
def test_it_is_collected_and_each_exercise_says_from_what_it_is_graded(run_course, two_means, tmp_path, name):
    with zipfile.ZipFile(tmp_path / "class.zip", "w") as archive:
        archive.writestr(f"ada/{name}", notebook(FIRST, SECOND))
    done = run_course("collect", tmp_path / "class.zip", "--out", tmp_path / "in", cwd=two_means)
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "in" / "ada" / "averages" / "averages.ipynb").is_file()
    found = graded(run_course, two_means, tmp_path / "in")
    assert {id_: (each["score"], each["note"]) for id_, each in found.items()} == dict.fromkeys(
        found, (4, "Graded from averages.ipynb, which holds the whole assignment.")
    )
    page = run_course("report", tmp_path / "out", cwd=two_means)
    assert page.returncode == 0
    pages = "".join(path.read_text() for path in (tmp_path / "out").rglob("*.html"))
    assert "Graded from averages.ipynb, which holds the whole assignment." in pages


def hand_in(tmp_path: Path, **files: str) -> Path:
    folder = tmp_path / "in" / "ada" / "averages"
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return tmp_path / "in"


def test_an_exercises_own_file_counts_where_it_is_worked_on(run_course: Run, two_means: Path, tmp_path: Path) -> None:
    stub = (two_means / "exercises" / "averages" / "02_last_mean.py").read_text()
    files = {"averages__ipynb": notebook(WRONG, SECOND), "01_running_mean__py": FIRST, "02_last_mean__py": stub}
    found = graded(run_course, two_means, hand_in(tmp_path, **files))
    assert {id_: each["score"] for id_, each in found.items()} == {"running_mean": 4, "last_mean": 4}
    assert found["running_mean"]["note"] == ""


def test_lines_are_those_of_the_notebook_and_what_it_lacks_is_missing(run_course, two_means, tmp_path):
    found = graded(run_course, two_means, hand_in(tmp_path, averages__ipynb=notebook("x = 1", WRONG)))
    said = " ".join(check["evidence"] for check in found["running_mean"]["checks"])
    assert "line 4 of code cell 2" in said
    assert {check["outcome"] for check in found["last_mean"]["checks"]} == {"missing"}
