"""Read and extend overrides.yaml, which says what a human decides. Every error names the file and the line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import yaml
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
from ..whole import write_whole
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
    """A decision, and where it stands. lines: its first and last line in the file, from 1."""

    override: Override
    where: str
    lines: tuple[int, int] = (0, 0)


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
    lines = [_lines_of(node, i) for i in range(len(found.root))]
    return [Row(each, f"{path}:{span[0]}", span) for each, span in zip(found.root, lines, strict=True)]


def _lines_of(node: yaml.Node | None, index: int) -> tuple[int, int]:
    first = line_of(node, (index,))
    assert isinstance(node, yaml.SequenceNode)
    pairs = node.value[index].value
    return first, max((value.end_mark.line + (value.end_mark.column > 0) for _, value in pairs), default=first)


# Add decisions to overrides.yaml. What people wrote there stays as it is, but for rows that say something else now.

HEADER = "# What a human decides: docs/decisions.md. It names people: keep it out of what students get.\n"


@dataclass
class Added:
    """What became of the decisions that were to be added."""

    new: int = 0
    changed: int = 0
    same: int = 0


def add_overrides(path: Path, overrides: Sequence[Override]) -> Added:
    """Add these rows at the end; rows about the same that decide otherwise go. Written whole or not at all.

    Raises CourseFault.
    """
    rows, done = read_overrides(path), Added()
    known = {_key(row.override): row for row in rows}
    gone: list[Row] = []
    new: list[Override] = []
    for override in overrides:
        before = known.get(_key(override))
        if before is not None and _decides(before.override) == _decides(override):
            done.same += 1
            continue
        if before is not None:
            gone.append(before)
            done.changed += 1
        else:
            done.new += 1
        new.append(override)
    if new:
        _write(path, gone, new)
    return done


def _write(path: Path, gone: Sequence[Row], new: Sequence[Override]) -> None:
    left_out = {line for row in gone for line in range(row.lines[0], row.lines[1] + 1)}
    try:
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else [HEADER.rstrip()]
        kept = "".join(f"{line}\n" for i, line in enumerate(lines, 1) if i not in left_out)
        text = kept + "".join(_text(other) for other in new)
        yaml.safe_load(text)
        write_whole(path, text.encode())
    except (OSError, yaml.YAMLError):
        said = f"{path} cannot be added to. Next: write it as a list, a row a decision, then course overrides"
        raise CourseFault(said) from None


def _text(override: Override) -> str:
    row = override.model_dump(exclude_none=True, exclude_defaults=True)
    if checks := row.get("check"):
        row["check"] = checks[0] if len(checks) == 1 else list(checks)
    return yaml.safe_dump([row], sort_keys=False, allow_unicode=True, width=1_000)


def _key(override: Override) -> tuple[object, ...]:
    """Return what a row is about. A comment by nbgrader replaces none that a person wrote here."""
    by = override.by if override.kind == "comment" else ""
    return override.kind, override.student, override.exercise or override.assignment, frozenset(override.check), by


def _decides(override: Override) -> tuple[object, ...]:
    return override.score, override.extra_credit, override.comment if override.kind == "comment" else ""
