"""Read overrides.yaml, which says what a human decides. Every error names the file and the line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    RootModel,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from ..errors import CourseFault
from .dates import Moment
from .file import Identifier
from .yaml_file import Unread, first_problem, line_of, read_yaml

NAME = "overrides.yaml"
NEXT = "Next: mend that line, then course overrides"

Kind = Literal["waived", "score", "extra_credit", "extension", "handed_in", "excused", "comment"]
KINDS: tuple[Kind, ...] = ("waived", "score", "extra_credit", "extension", "handed_in", "excused")
_OF_ALL = ("extension", "handed_in")  # of a whole submission


def _name(value: object) -> object:
    if value is not None and not isinstance(value, str):
        raise ValueError(f"YAML reads this as {value!r}: put it in quotes")
    return value


def _listed(value: object) -> object:
    return (value,) if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_name)]
_NAMES = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
Points = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=False)]


class Override(BaseModel):
    """One decision: one of waived, score, extra_credit, extension, handed_in and excused, or a comment alone."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    student: Text = Field("", description="the name of the student's folder; nobody's for `waived`")
    assignment: Identifier | None = Field(None, description="needed where the course has several, and no exercise says")
    exercise: Identifier | None = Field(None, description="of all of them where none is named")
    check: Annotated[tuple[Text, ...], BeforeValidator(_listed), WithJsonSchema(_NAMES)] = Field(
        (), description="the id of a check, or a list of them: then the score is what they earn together"
    )
    score: Points | None = Field(
        None, description="in place of what the exercise, the check or, where none is named, the assignment has earned"
    )
    extra_credit: Points | None = Field(None, description="on top of what the exercise has earned")
    extension: Moment | None = Field(None, description="the student's own due date")
    handed_in: Moment | None = Field(None, description="when it was handed in, whatever a platform says")
    excused: Literal[True] | None = Field(None, description="counts for nothing, neither points nor points possible")
    waived: Literal[True] | None = Field(None, description="a check that counts as passed for everybody")
    by: Text = Field("", description="who decided")
    comment: Text = Field("", description="why, or what the student is to read")

    @property
    def kind(self) -> Kind:
        """What is decided."""
        return next((kind for kind in KINDS if getattr(self, kind) is not None), "comment")

    @model_validator(mode="after")
    def _is_one_decision(self) -> Override:
        given = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} are two decisions: write a row for each")
        if not given and not self.comment:
            raise ValueError(f"nothing is decided; a row has one of {', '.join(KINDS)}, or a comment")
        kind = self.kind
        if kind == "waived" and (self.student or not (self.exercise and self.check)):
            raise ValueError("a check is waived for everybody: name its exercise and the check, and no student")
        if kind != "waived" and not self.student:
            raise ValueError(f"whose? Name the student of this {kind}")
        if kind == "extra_credit" and not self.exercise:
            raise ValueError(f"of which exercise? Name the exercise of this {kind}")
        if kind in _OF_ALL and self.exercise:
            raise ValueError(f"{kind} is of all exercises: name the assignment in place of the exercise")
        if self.check and (not self.exercise or kind in ("excused", "extra_credit")):
            raise ValueError("a check needs its exercise, and can be waived or have a score or a comment")
        return self


class OverridesFile(RootModel[tuple[Override, ...]]):
    """The whole of overrides.yaml: a list of decisions."""


@dataclass(frozen=True)
class Row:
    """A decision, and where it stands."""

    override: Override
    where: str


def read_overrides(path: Path) -> list[Row]:
    """Return the rows of the file; none if there is no file. Raises CourseFault."""
    try:
        data, node = read_yaml(path)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CourseFault(f"{path} cannot be read ({error.strerror}). Next: mend that, then course overrides") from None
    except Unread as error:
        raise CourseFault(f"{error}, then course overrides") from None
    if data is None:
        return []
    try:
        found = OverridesFile.model_validate(data)
    except ValidationError as error:
        raise CourseFault(f"{first_problem(path, node, error, OverridesFile)}. {NEXT}") from None
    return [Row(each, f"{path}:{line_of(node, (i,))}") for i, each in enumerate(found.root)]
