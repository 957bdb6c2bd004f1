"""The shipped JSON Schemas are the models', and editors that use them find the same mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from manyheads.schemas import SCHEMAS, schema_text

COURSE_SCHEMA = next(path for path in SCHEMAS if path.name == "course.schema.json")


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_the_file_is_what_the_model_says(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == schema_text(SCHEMAS[path]), "Next: python -m manyheads.schemas"


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_the_file_is_a_json_schema(path: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(path.read_text(encoding="utf-8")))


def errors(course: Any) -> list[str]:
    validator = jsonschema.Draft202012Validator(json.loads(COURSE_SCHEMA.read_text(encoding="utf-8")))
    return [error.message for error in validator.iter_errors(course)]


@pytest.mark.parametrize("name", ["course.yaml", "tests/tiny_course/course.yaml"])
def test_our_courses_are_valid(repository: Path, name: str) -> None:
    assert errors(yaml.safe_load((repository / name).read_text(encoding="utf-8"))) == []


def exercise(**changes: object) -> dict[str, object]:
    return {"id": "a", "title": "A", "points": 1, "hint": "Think.", **changes}


def course(*exercises: object, **changes: object) -> dict[str, object]:
    return {"title": "T", "assignments": [{"id": "x", "title": "X", "exercises": list(exercises)}], **changes}


@pytest.mark.parametrize("bad", [
    pytest.param([], id="a list"),
    pytest.param({"assignments": []}, id="no title"),
    pytest.param({"title": "T", "assignments": []}, id="no assignments"),
    pytest.param(course(), id="no exercises"),
    pytest.param(course(exercise(points=0)), id="no points"),
    pytest.param(course(exercise(points="four")), id="points in words"),
    pytest.param(course(exercise(id="A-B")), id="a bad id"),
    pytest.param(course(exercise(hint="")), id="an empty hint"),
    pytest.param(course(exercise(extra=1)), id="an unknown entry"),
    pytest.param(course(exercise(), limits={"memory_mib": 1}), id="too little memory"),
    pytest.param(course(exercise(), limits={"seconds": 1}), id="an unknown limit"),
])  # fmt: skip
def test_a_bad_course_is_found_by_the_schema(bad: object) -> None:
    assert errors(course(exercise())) == []
    assert errors(bad)


def test_course_yaml_names_its_schema_so_that_editors_find_it(repository: Path) -> None:
    first = (repository / "course.yaml").read_text(encoding="utf-8").splitlines()[0]
    assert repository / first.removeprefix("# yaml-language-server: $schema=") == COURSE_SCHEMA
