"""Results: valid by their own schema, written whole or not at all, and read back as they were."""

import json
from pathlib import Path

import jsonschema
import pytest
from pydantic import ValidationError

import manyheads.result
from manyheads.result import Diagnosed, ProvedLine, Result, write_result
from tests import make

SCHEMA = json.loads(Path(manyheads.result.__file__).with_suffix(".schema.json").read_text(encoding="utf-8"))


def result(student: str = "ada", **changes: object) -> Result:
    checks = make.check("shape", 1, title="gives as many"), make.check("values", 0, 2.5, evidence="→", hint="?")
    named = (Diagnosed(id="counts_all", title="You divided by T.", hint="How many?", alternatives=("sum_not_mean",)),)
    lines = (ProvedLine(line=7, edit="a → b"), ProvedLine(line=9, cell=2, line_in_cell=4))
    exercise = make.exercise("running_mean", *checks, diagnosis=named, lines=lines)
    return Result(**{**dict(make.result(student, exercise, versions={"python": "3.11"})), **changes})


EXERCISE = result().model_dump(mode="json")["exercises"][0]


def errors(data: object) -> list[str]:
    return [error.message for error in jsonschema.Draft202012Validator(SCHEMA).iter_errors(data)]


def test_what_is_written_is_valid_and_reads_back_as_it_was(tmp_path: Path) -> None:
    path = write_result(result(), tmp_path)
    assert path == tmp_path / "ada" / "averages.json"
    assert errors(json.loads(path.read_text(encoding="utf-8"))) == []
    assert Result.model_validate_json(path.read_bytes()) == result()


def test_a_result_from_before_lines_were_told_is_read() -> None:
    data = json.loads(result().model_dump_json())
    del data["exercises"][0]["lines"]
    assert errors(data) == []
    assert Result.model_validate(data).exercises[0].lines == ()


@pytest.mark.parametrize("change", [
    pytest.param({"score": -1}, id="a negative score"),
    pytest.param({"score": "many"}, id="a score in words"),
    pytest.param({"seed": None}, id="no seed"),
    pytest.param({"extra": 1}, id="an unknown entry"),
    pytest.param({"exercises": [{"id": "x"}]}, id="half an exercise"),
    pytest.param({"versions": ["3.11"]}, id="versions as a list"),
    pytest.param({"exercises": [{**EXERCISE, "checks": [{**EXERCISE["checks"][0], "outcome": "great"}]}]}, id="an outcome that none is"),
])  # fmt: skip
def test_schema_and_model_refuse_the_same(change: dict[str, object]) -> None:
    assert errors({**result().model_dump(mode="json"), **change})
    with pytest.raises(ValidationError):
        result(**change)


@pytest.mark.parametrize("student", ["Ünï cödé", "李雷", "-rf", "[bold]x", "a b"])
def test_an_odd_student_has_a_folder_of_that_name(tmp_path: Path, student: str) -> None:
    path = write_result(result(student), tmp_path)
    assert path.parent.name == student
    assert Result.model_validate_json(path.read_bytes()).student == student


def test_whoever_has_the_earlier_result_open_reads_on_in_it(tmp_path: Path) -> None:
    with write_result(result(), tmp_path).open(encoding="utf-8") as reader:
        write_result(result(seed=7), tmp_path)
        assert Result.model_validate_json(reader.read()) == result()
