"""A file under another name is pointed at, where the exercise that it is of would count as not handed in."""

from __future__ import annotations

from pathlib import Path

import pytest

from manyheads.course import Course
from manyheads.submission import find_submissions, misnamed


def sentences(course: Course, folder: Path, names: tuple[str, ...], *exercises: str) -> list[str]:
    submission = folder / "ada" / "averages"
    submission.mkdir(parents=True)
    for name in names:
        (submission / name).touch()
    (found,), _ = find_submissions(course, folder)
    return list(misnamed(found, exercises))


@pytest.mark.parametrize(
    "name",
    [
        "running_mean.py",
        "01_running_mean (1).ipynb",
        "1_running_mean.py",
        "01_Running_Mean.py",
        "01-running-mean.py",
        "01 running mean final.py",
        "01_running_mean.PY",
    ],
)
def test_another_name_is_pointed_at(tiny: Course, tmp_path: Path, name: str) -> None:
    assert sentences(tiny, tmp_path, (name,)) == [
        f"ada/averages: {name!r} should be named 01_running_mean.py or 01_running_mean.ipynb. "
        "Next: rename it, then run the same command again"
    ]


@pytest.mark.parametrize(
    "names",
    [
        pytest.param((), id="nothing handed in"),
        pytest.param(("notes.md", "helpers.py", "running_mean.txt", "timestamp.txt"), id="other files"),
        pytest.param(("01_running_mean.py", "running_mean_old.py"), id="a script, and an old one beside it"),
        pytest.param(("01_running_mean.ipynb", "01_running_mean-Copy1.ipynb"), id="a notebook and its copy"),
    ],
)
def test_nothing_is_said_where_nothing_is_missing_or_nothing_is_like_it(
    tiny: Course, tmp_path: Path, names: tuple[str, ...]
) -> None:
    assert sentences(tiny, tmp_path, names) == []


def test_only_exercises_that_are_graded_are_looked_for(tiny: Course, tmp_path: Path) -> None:
    assert sentences(tiny, tmp_path, ("mean.py", "running_mean.py"), "another_exercise") == []


def test_a_name_that_could_break_a_terminal_or_a_log_is_shown_harmlessly(tiny: Course, tmp_path: Path) -> None:
    (sentence,) = sentences(tiny, tmp_path, ("running_mean\n::error::\x1b[2J\u202e.py",))
    assert sentence.isascii()
    assert sentence.isprintable()
    assert r"\x1b[2J" in sentence
