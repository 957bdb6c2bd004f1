"""nbgrader's exchange, where every account of the machine may leave what it likes: with nbgrader's own commands."""

import json
import logging
import os
import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from manyheads.platforms import nbgrader_exchange as exchange
from manyheads.platforms.nbgrader_exchange import copy_regular_files
from tests.make import TINY

STEM = "01_running_mean"
TIME = "2026-11-23 12:00:00 UTC"


def submit(inbound: Path, student: str, *, secret: bool = True) -> Path:
    """What `nbgrader submit` leaves in the exchange, but for the notebooks."""
    folder = inbound / f"{student}+averages+{TIME}+abc"
    folder.mkdir(parents=True)
    (folder / "timestamp.txt").write_text(TIME)
    if secret:
        (folder / "submission_secret.txt").write_text(f"the secret of {student}")
    return folder


@pytest.fixture(scope="module")
def collected(tmp_path_factory, for_nbgrader, nbgrader, right):
    """A course that has collected from hostile folders, and released feedback; and what nbgrader said."""
    course = for_nbgrader(TINY, tmp_path_factory.mktemp("course"))
    inbound = tmp_path_factory.mktemp("exchange") / "manyheads" / "inbound"
    root = f"--Exchange.root={inbound.parents[1]}"
    linking = submit(inbound, "linking")
    (linking / f"{STEM}.py").symlink_to(course / "solutions" / "averages" / f"{STEM}.py")
    (linking / "hidden").symlink_to(course / "grader")
    os.mkfifo(linking / "pipe")
    submit(inbound, "notime").rename(inbound / "notime+averages+noon+abc")
    (inbound / f"nowhere+averages+{TIME}+abc").symlink_to("/nowhere")
    (submit(inbound, "nameless", secret=False) / f"{STEM}.py").write_text(right)
    (submit(inbound, "zoe") / f"{STEM}.py").write_text(right)
    inbound.parents[1].chmod(0o777)
    nbgrader(course, "generate_assignment", "averages", "--force")
    said = nbgrader(course, "collect", "averages", root).stderr
    (course / "submitted" / "zoe" / "averages" / "timestamp.txt").write_text("the dog ate it")
    nbgrader(course, "collect", "averages", "--update", root)
    nbgrader(course, "autograde", "averages")
    nbgrader(course, "generate_feedback", "averages")
    said += nbgrader(course, "release_feedback", "averages", root).stderr
    return course, said


@pytest.mark.journey
def test_a_link_in_the_exchange_hands_in_nothing_of_the_course(collected: tuple[Path, str]) -> None:
    course, said = collected
    handed_in = {path.name for path in (course / "submitted" / "linking").rglob("*") if path.is_file()}
    assert handed_in == {"timestamp.txt", "submission_secret.txt"}
    query = """
        select submitted_assignment.student_id, sum(grade.auto_score) from grade
        join submitted_notebook on grade.notebook_id = submitted_notebook.id
        join submitted_assignment on submitted_notebook.assignment_id = submitted_assignment.id
        group by submitted_assignment.student_id
    """
    with closing(sqlite3.connect(course / "gradebook.db")) as book:
        assert dict(book.execute(query).fetchall()) == {"linking": 0, "nameless": 4, "zoe": 4}
    assert all(f"'{name}' of 'linking+" in said for name in (f"{STEM}.py", "hidden", "pipe"))


@pytest.mark.journey
def test_what_is_no_submission_is_named_and_so_is_whose_feedback_cannot_be_and_the_others_get_theirs(
    collected: tuple[Path, str],
) -> None:
    course, said = collected
    assert {path.name for path in (course / "submitted").iterdir()} == {"linking", "nameless", "zoe"}
    assert said.count("is not what nbgrader submit writes, and is not collected") == 2
    assert "nameless/averages has no timestamp.txt and submission_secret.txt that can be read" in said
    assert said.count("Feedback released to") == 2
    assert "Traceback" not in said


def test_the_folder_of_another_account_never_replaces_a_students_own(monkeypatch, tmp_path, caplog):
    owners = {"mine": "ada", "forged": "mallory"}
    monkeypatch.setattr(exchange, "_owner", lambda folder: owners[folder.name])
    collect = SimpleNamespace(inbound_path=tmp_path, check_owner=True, log=logging.getLogger())
    mine, forged = (
        {"username": "ada", "filename": name, "timestamp": datetime(2026, 1, day)}
        for name, day in (("mine", 1), ("forged", 2))
    )

    def newest(_: object, records: list[dict]) -> list[dict]:
        return sorted(records, key=lambda each: each["timestamp"], reverse=True)

    assert exchange._newest_of_their_own(newest, collect, [mine, forged]) == [mine]
    assert "'forged' is not ada's own" in caplog.text
    owners["mine"] = "jovyan"  # in containers nobody's folder is their own
    assert exchange._newest_of_their_own(newest, collect, [mine, forged]) == [forged, mine]


def test_of_a_folder_without_end_a_bounded_part_is_copied(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / Path(*"abcdefghijkl")).mkdir(parents=True)
    (source / f"{STEM}.ipynb").write_text(json.dumps({"cells": []}))
    (source / "large").write_bytes(bytes(5000))
    (source / "a" / "small").write_bytes(bytes(500))
    left_out = copy_regular_files(source, target, 1000)
    assert {str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()} == {
        f"{STEM}.ipynb",
        "a/small",
    }
    assert left_out == ["large", "a/b/c/d/e/f/g/h/i"]


@pytest.mark.parametrize(("own", "agrees"), [
    (TIME, True), ("2026-11-23 12:00:00.000000 +0000", True), ("2026-11-20 12:00:00 UTC", False),
    ("9999-12-31 23:58:20", False), ("the dog ate it", False), (None, False), ("a folder", False),
])  # fmt: skip
def test_a_time_of_the_students_own_counts_where_it_agrees_with_the_exchanges(tmp_path, own, agrees):
    if own == "a folder":
        (tmp_path / "timestamp.txt" / "more").mkdir(parents=True)
    elif own is not None:
        (tmp_path / "timestamp.txt").write_text(own)
    said = exchange.agree_on_time(f"ada+averages+{TIME}+abc", tmp_path)
    assert said == ("" if agrees else "timestamp.txt does not say the time in the exchange's name, which counts")
    assert (tmp_path / "timestamp.txt").read_text() == (own if agrees else "2026-11-23 12:00:00.000000 UTC")
