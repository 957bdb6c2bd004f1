"""A file is written whole or not at all, and so are the results and the pages of a report."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from manyheads.report.class_view import ClassView
from manyheads.report.pages import write_pages
from manyheads.result import Result, write_result
from manyheads.whole import write_whole
from tests import make
from tests.make import content

Write = Callable[[Path, int], object]


def result(score: int) -> Result:
    return make.result("ada", score=score, max_score=9)


WRITERS: dict[str, Write] = {
    "a file": lambda folder, number: write_whole(folder / "deep" / "file", str(number).encode()),
    "a durable one": lambda folder, number: write_whole(folder / "deep" / "file", str(number).encode(), durable=True),
    "a result": lambda folder, number: write_result(result(number), folder),
    "pages": lambda folder, number: write_pages(ClassView([result(number)]), folder),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_what_stops_it_leaves_every_file_as_it_was_and_nothing_beside_it(tmp_path, monkeypatch, write):
    def stop(path: Path, target: Path) -> None:
        raise KeyboardInterrupt

    write(tmp_path, 1)
    before = content(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", stop)
        with pytest.raises(KeyboardInterrupt):
            write(tmp_path, 2)
    assert content(tmp_path) == before
    write(tmp_path, 2)
    assert content(tmp_path).keys() == before.keys()
    assert content(tmp_path) != before


@pytest.mark.parametrize(("write", "order"), [
    pytest.param(partial(write_whole, content=b"x", durable=True), ["fsync", "replace"], id="a durable file"),
    pytest.param(lambda path: write_result(result(1), path), ["fsync", "replace"], id="a result"),
    pytest.param(partial(write_whole, content=b"x"), ["replace"], id="any other file"),
])  # fmt: skip
def test_what_is_to_last_is_on_the_disk_before_it_takes_its_place(tmp_path, monkeypatch, write, order):
    done: list[str] = []
    replace = Path.replace
    monkeypatch.setattr(os, "fsync", lambda number: done.append("fsync"))
    monkeypatch.setattr(Path, "replace", lambda path, target: done.append("replace") or replace(path, target))
    write(tmp_path / "file")
    assert done == order
