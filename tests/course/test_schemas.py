"""The shipped JSON Schemas are the models', and editors that use them find the same mistakes."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from manyheads.schemas import SCHEMAS, schema_text

from .conftest import COURSE

COURSE_SCHEMA = next(path for path in SCHEMAS if path.name == "course.schema.json")


def errors(course: Any) -> list[str]:
    validator = jsonschema.Draft202012Validator(json.loads(COURSE_SCHEMA.read_text(encoding="utf-8")))
    return [error.message for error in validator.iter_errors(course)]


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_the_file_is_what_the_model_says_and_a_json_schema(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == schema_text(SCHEMAS[path]), "Next: python -m manyheads.schemas"
    jsonschema.Draft202012Validator.check_schema(json.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", ["course.yaml", "tests/tiny_course/course.yaml"])
def test_our_courses_are_valid(repository: Path, name: str) -> None:
    assert errors(yaml.safe_load((repository / name).read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(("old", "new"), [
    ("title: Averages\n", ""), ("points: 4", "points: 0"), ("points: 4", "points: four"), ("id: mean", "id: A-B"),
    ("hint: Count.", "hint: ''"), ("hint: Count.", "hint: H, extra: 1"), ("10%", "200%"), ("30 min", "soon"),
])  # fmt: skip
def test_a_bad_course_is_found_by_the_schema(old: str, new: str) -> None:
    good = COURSE.replace("18:00", "18:00 Z")
    assert errors(yaml.safe_load(good)) == []
    assert errors(yaml.safe_load(good.replace(old, new, 1)))


def test_course_yaml_names_its_schema_so_that_editors_find_it(repository: Path) -> None:
    first = (repository / "course.yaml").read_text(encoding="utf-8").splitlines()[0]
    assert repository / first.removeprefix("# yaml-language-server: $schema=") == COURSE_SCHEMA
