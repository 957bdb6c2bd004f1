"""The JSON Schemas that ship with the project, generated from its models.

`python -m manyheads.schemas` writes them.
"""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel

from .course.course_yaml import CourseFile
from .course.final_scores import OverridesFile
from .result import Result

HERE = Path(__file__).parent
SCHEMAS: dict[Path, type[BaseModel]] = {
    HERE / "course" / "course.schema.json": CourseFile,
    HERE / "course" / "overrides.schema.json": OverridesFile,
    HERE / "result.schema.json": Result,
}


def schema_text(model: type[BaseModel]) -> str:
    """Return the text of the schema's file."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **model.model_json_schema(),
    }
    return json.dumps(schema, indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    for path, model in SCHEMAS.items():
        path.write_text(schema_text(model), encoding="utf-8")
