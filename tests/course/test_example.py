"""The example of docs/decisions.md fits the real course: its dates and its rows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import yaml

from manyheads.course import load_course
from manyheads.course.decisions import NAME, Decisions
from manyheads.schemas import SCHEMAS


def blocks(page: str) -> list[str]:
    """What is indented there, without its indent."""
    return [re.sub(r"(?m)^    ", "", each) for each in re.findall(r"(?m)(?:^    .*\n)+", page)]


def test_the_example_is_read_and_names_what_there_is(repository: Path, tmp_path: Path) -> None:
    _, dates, rows, *_ = blocks((repository / "docs" / "decisions.md").read_text(encoding="utf-8"))
    top, _, due = dates.partition("assignments:\n")
    text = (repository / "course.yaml").read_text(encoding="utf-8")
    line = "  - id: multi_head_attention\n"
    assert due.startswith(line)
    (tmp_path / "course.yaml").write_text(text.replace(line, due) + top, encoding="utf-8")
    (tmp_path / NAME).write_text(rows, encoding="utf-8")
    schema = json.loads(next(path for path in SCHEMAS if path.name == "overrides.schema.json").read_text("utf-8"))
    jsonschema.validate(yaml.safe_load(rows), schema)
    course = load_course(tmp_path)
    decisions = Decisions.of_course(course)
    assert [each.override.kind for each in decisions.rows] == ["due", "score", "excused", "score"]
    assert decisions.dates["multi_head_attention"].due.isoformat() == "2026-12-01T17:00:00+00:00"
