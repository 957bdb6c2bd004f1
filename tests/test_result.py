"""Results are valid by their schema, and every file is written completely or not at all."""

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import jsonschema
import pytest
from pydantic import ValidationError

import manyheads.result
from manyheads.files import write_whole
from manyheads.report.class_summary import ClassView
from manyheads.report.pages import write_pages
from manyheads.result import Diagnosed, ProvedLine, Result, write_result
from tests import make
from tests.make import content

SCHEMA = json.loads(
    Path(manyheads.result.__file__).with_suffix(".schema.json").read_text(encoding="utf-8")
)


def result_with_diagnosis(**changes: object) -> Result:
    """Return a result with a failed check and a diagnosis, with these fields changed."""
    checks = (
        make.check("shape", 1, title="gives as many"),
        make.check("values", 0, 2.5, evidence="→", hint="?"),
    )
    misconception = Diagnosed(
        id="counts_all", title="You divided by T.", hint="How many?", alternatives=("sum_not_mean",)
    )
    lines = (ProvedLine(line=7, edit="a → b"), ProvedLine(line=9, cell=2, line_in_cell=4))
    exercise = make.exercise("running_mean", *checks, diagnosis=(misconception,), lines=lines)
    return Result(**{**dict(make.result("ada", exercise)), **changes})


EXERCISE = result_with_diagnosis().model_dump(mode="json")["exercises"][0]


def schema_errors_of(data: object) -> list[str]:
    """Return the error messages of the schema."""
    return [error.message for error in jsonschema.Draft202012Validator(SCHEMA).iter_errors(data)]


def test_a_result_is_valid_and_survives_writing_and_reading(tmp_path: Path) -> None:
    path = write_result(result_with_diagnosis(), tmp_path)
    assert path == tmp_path / "ada" / "averages.json"
    assert schema_errors_of(json.loads(path.read_text(encoding="utf-8"))) == []
    assert Result.model_validate_json(path.read_bytes()) == result_with_diagnosis()


INVALID_FIELDS = {
    "a negative score": {"score": -1},
    "a score in words": {"score": "many"},
    "no seed": {"seed": None},
    "an unknown entry": {"extra": 1},
    "half an exercise": {"exercises": [{"id": "x"}]},
    "versions as a list": {"versions": ["3.11"]},
    "an unknown outcome": {
        "exercises": [{**EXERCISE, "checks": [{**EXERCISE["checks"][0], "outcome": "great"}]}]
    },
}


@pytest.mark.parametrize(
    "change",
    INVALID_FIELDS.values(),
    ids=INVALID_FIELDS,
)
def test_schema_and_model_refuse_the_same_results(change: dict[str, object]) -> None:
    assert schema_errors_of({**result_with_diagnosis().model_dump(mode="json"), **change})
    with pytest.raises(ValidationError):
        result_with_diagnosis(**change)


def test_an_open_reader_still_reads_the_earlier_result(tmp_path: Path) -> None:
    with write_result(result_with_diagnosis(), tmp_path).open(encoding="utf-8") as reader:
        write_result(result_with_diagnosis(seed=7), tmp_path)
        assert Result.model_validate_json(reader.read()) == result_with_diagnosis()


Writer = Callable[[Path, int], object]


def result_of_nine_points(score: int) -> Result:
    """Return a result with this score of 9 points."""
    return make.result("ada", score=score, max_score=9)


WRITERS: dict[str, Writer] = {
    "a file": lambda folder, number: write_whole(folder / "deep" / "file", str(number).encode()),
    "a result": lambda folder, number: write_result(result_of_nine_points(number), folder),
    "pages": lambda folder, number: write_pages(ClassView([result_of_nine_points(number)]), folder),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_an_interrupted_write_leaves_all_files_unchanged(tmp_path, monkeypatch, write):
    def stop(path: Path, target: Path) -> None:
        raise KeyboardInterrupt

    write(tmp_path, 1)
    snapshot = content(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", stop)
        with pytest.raises(KeyboardInterrupt):
            write(tmp_path, 2)
    assert content(tmp_path) == snapshot
    write(tmp_path, 2)
    assert content(tmp_path).keys() == snapshot.keys()
    assert content(tmp_path) != snapshot


# row: (function that writes a file, expected system calls in order)
DURABILITY_CASES = {
    "a durable file": (partial(write_whole, content=b"x", durable=True), ["fsync", "replace"]),
    "a result": (lambda path: write_result(result_of_nine_points(1), path), ["fsync", "replace"]),
    "any other file": (partial(write_whole, content=b"x"), ["replace"]),
}


@pytest.mark.parametrize(
    ("write", "order"),
    DURABILITY_CASES.values(),
    ids=DURABILITY_CASES,
)
def test_durable_files_are_synced_before_they_are_renamed(tmp_path, monkeypatch, write, order):
    calls: list[str] = []
    replace = Path.replace
    monkeypatch.setattr(os, "fsync", lambda number: calls.append("fsync"))
    monkeypatch.setattr(
        Path, "replace", lambda path, target: calls.append("replace") or replace(path, target)
    )
    write(tmp_path / "file")
    assert calls == order
