"""Read overrides.yaml, which says what a human decides. Every error names the file and the line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, RootModel, model_validator

from ..errors import CourseFault
from .dates import Moment
from .file import Identifier
from .yaml_file import line_of, read_model

NAME = "overrides.yaml"
NEXT = "Next: mend that line, then course overrides"

Kind = Literal["score", "due", "excused"]
KINDS: tuple[Kind, ...] = ("score", "due", "excused")


def _name(value: object) -> object:
    if value is not None and not isinstance(value, str):
        raise ValueError(f"YAML reads this as {value!r}: put it in quotes")
    return value


Text = Annotated[str, BeforeValidator(_name)]
Points = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=False)]


class Override(BaseModel):
    """One decision about a student: a score, a due date or an excuse."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    student: Text = Field(min_length=1, description="the name of the student's folder")
    assignment: Identifier | None = Field(None, description="needed where the course has several, and no exercise says")
    exercise: Identifier | None = Field(None, description="of all of them where none is named")
    score: Points | None = Field(
        None, description="in place of what the exercise or, where none is named, the assignment has earned"
    )
    due: Moment | None = Field(None, description="the student's own due date")
    excused: Literal[True] | None = Field(None, description="counts for nothing, neither points nor points possible")
    by: Text = Field("", description="who decided")
    comment: Text = Field("", description="why: the student reads it")

    @property
    def kind(self) -> Kind:
        """What is decided."""
        return next(kind for kind in KINDS if getattr(self, kind) is not None)

    @model_validator(mode="after")
    def _is_one_decision(self) -> Override:
        given = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} are two decisions: write a row for each")
        if not given:
            raise ValueError(f"nothing is decided; a row has one of {', '.join(KINDS)}")
        if self.due is not None and self.exercise:
            raise ValueError("due is of all exercises: name the assignment in place of the exercise")
        return self


def _rows(value: object) -> object:
    return () if value is None else value  # nothing but remarks


class OverridesFile(RootModel[Annotated[tuple[Override, ...], BeforeValidator(_rows)]]):
    """The whole of overrides.yaml: a list of decisions."""


def read_overrides(path: Path) -> list[tuple[str, Override]]:
    """Return where each row of the file stands, and the row; none if there is no file. Raises CourseFault."""
    try:
        found, node = read_model(path, OverridesFile, "course overrides")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CourseFault(f"{path} cannot be read ({error.strerror}). Next: mend that, then course overrides") from None
    return [(f"{path}:{line_of(node, (i,))}", row) for i, row in enumerate(found.root)]
