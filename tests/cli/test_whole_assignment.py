"""One notebook with all exercises of an assignment is graded for each of them."""

from __future__ import annotations

import json
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.copies import copy_course

Run = Callable[..., subprocess.CompletedProcess[str]]
STREAMS = Path(__file__).parents[1] / "stateful_course"
FIRST = (STREAMS / "grader" / "right" / "mean_and_spread" / "as_lists.py").read_text()
SECOND = (STREAMS / "grader" / "right" / "running_mean" / "keeps_tokens.py").read_text()
WRONG = "import torch\n\ndef mean_and_spread(x):\n    raise KeyError('no')\n"


def notebook(*cells: str) -> str:
    found = [nbformat.v4.new_markdown_cell("# My homework"), *map(nbformat.v4.new_code_cell, cells)]
    return nbformat.writes(nbformat.v4.new_notebook(cells=found))


@pytest.fixture
def streams(tmp_path: Path) -> Path:
    return copy_course(STREAMS, tmp_path / "streams")


def graded(run_course: Run, streams: Path, submitted: Path) -> dict[str, Any]:
    done = run_course("grade", submitted, "--out", submitted.parent / "out", "--jobs", "1", "--no-lines", cwd=streams)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((submitted.parent / "out" / "ada" / "streams.json").read_text())
    return {exercise["id"]: exercise for exercise in result["exercises"]}


@pytest.mark.parametrize("name", ["homework.ipynb", "Streams (2).ipynb"])
def test_it_is_collected_and_each_exercise_says_from_what_it_is_graded(
    run_course: Run, streams: Path, tmp_path: Path, name: str
) -> None:
    with zipfile.ZipFile(tmp_path / "class.zip", "w") as archive:
        archive.writestr(f"ada/{name}", notebook(FIRST, SECOND))
    done = run_course("collect", tmp_path / "class.zip", "--out", tmp_path / "in", cwd=streams)
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "in" / "ada" / "streams" / "streams.ipynb").is_file()
    found = graded(run_course, streams, tmp_path / "in")
    assert {id_: (each["score"], each["note"]) for id_, each in found.items()} == dict.fromkeys(
        found, (5, "Graded from streams.ipynb, which holds the whole assignment.")
    )
    page = run_course("report", tmp_path / "out", cwd=streams)
    assert page.returncode == 0
    pages = "".join(path.read_text() for path in (tmp_path / "out").rglob("*.html"))
    assert "Graded from streams.ipynb, which holds the whole assignment." in pages


def hand_in(tmp_path: Path, **files: str) -> Path:
    folder = tmp_path / "in" / "ada" / "streams"
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return tmp_path / "in"


def test_an_exercises_own_file_counts_where_it_is_worked_on(run_course: Run, streams: Path, tmp_path: Path) -> None:
    stub = (streams / "exercises" / "streams" / "02_running_mean.py").read_text()
    files = {"streams__ipynb": notebook(WRONG, SECOND), "01_mean_and_spread__py": FIRST, "02_running_mean__py": stub}
    found = graded(run_course, streams, hand_in(tmp_path, **files))
    assert {id_: each["score"] for id_, each in found.items()} == {"mean_and_spread": 5, "running_mean": 5}
    assert found["mean_and_spread"]["note"] == ""


def test_lines_are_those_of_the_notebook_and_what_it_lacks_is_missing(
    run_course: Run, streams: Path, tmp_path: Path
) -> None:
    found = graded(run_course, streams, hand_in(tmp_path, streams__ipynb=notebook("x = 1", WRONG)))
    said = " ".join(check["evidence"] for check in found["mean_and_spread"]["checks"])
    assert "line 4 of code cell 2" in said
    assert {check["outcome"] for check in found["running_mean"]["checks"]} == {"missing"}


def test_a_changed_notebook_is_graded_again(run_course: Run, streams: Path, tmp_path: Path) -> None:
    submitted = hand_in(tmp_path, streams__ipynb=notebook(WRONG))
    assert graded(run_course, streams, submitted)["mean_and_spread"]["score"] == 0
    (submitted / "ada" / "streams" / "streams.ipynb").write_text(notebook(FIRST))
    assert graded(run_course, streams, submitted)["mean_and_spread"]["score"] == 5


def test_another_name_is_told_the_one_that_it_should_have(run_course: Run, streams: Path, tmp_path: Path) -> None:
    submitted = hand_in(tmp_path, homework__ipynb=notebook(FIRST))
    done = run_course("grade", submitted, "--out", tmp_path / "out", "--jobs", "1", "--no-lines", cwd=streams)
    assert done.returncode == 1
    assert (
        "ada/streams/homework.ipynb: has no exercise's name. Next: remove it, or rename it to the exercise that it is, or to streams.ipynb, if it holds several"
        in done.stdout
    )
