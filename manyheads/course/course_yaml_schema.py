"""The contents of course.yaml: pydantic models, dates, durations, and signatures of functions.

The JSON Schema that editors use is generated from these models. Dates in overrides.yaml and in the
files of platforms have the same forms. A text with a wrong form is refused in words, not with a
regular expression. `parse_signature` reads a signature with named axes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from math import ceil
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from ..box.worker.limits import Limits as WorkerLimits
from ..box.worker.result_form import Form, PartPath

OPAQUE = "opaque"  # the annotation of a value that is never read
_AXES = (ast.Name, ast.Constant, ast.BinOp)
_SHOWN = 50  # characters of an author's text in a message, so that the message stays on one line


@dataclass(frozen=True)
class WrittenAs:
    """Marks a field as a text that must match a pattern completely.

    Attributes:
        pattern: the pattern, which is also part of the JSON Schema that editors use.
        in_words: a description of the pattern for messages.
    """

    pattern: str
    in_words: str

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Return the schema of the text, with a validator that runs before pydantic's own."""
        text = core_schema.str_schema(pattern=self.pattern)
        return core_schema.no_info_before_validator_function(self._validate, text)

    def _validate(self, value: object) -> object:
        if not isinstance(value, str) or not re.fullmatch(self.pattern, value):
            raise ValueError(f"{ascii(value)[:_SHOWN]} should be {self.in_words}")
        return value


# A date and a time, then the zone.
_MOMENT = re.compile(r"(\S{8,10}[ T][\d:.,]+) ?([+-]\d\d(?::?\d\d)?|[A-Za-z][\w+/-]*)?")
_FIRST, _END = datetime(1990, 1, 1, tzinfo=UTC), datetime(2101, 1, 1, tzinfo=UTC)
_UNITS = {name: timedelta(**{f"{name}s": 1}) for name in ("day", "hour", "minute", "second")}


def read_moment(text: str, zone: str = "") -> datetime | None:
    """Return the moment in UTC of an ISO 8601 date and time, or None. Never raises an exception.

    The text, such as 2026-12-01T18:00:30Z or 2026-12-01 18:00:30.5 Europe/Berlin, may come from a
    student, so dates before 1990 or after 2100 give None. If a clock shows a time twice, as in
    autumn, the text means the later moment.

    Args:
        text: the date and time.
        zone: the zone for a text without one.
    """
    match = _MOMENT.fullmatch(text.strip()) if len(text) <= 100 else None
    if match is None:
        return None
    clock = match[1]
    zone_name = match[2] or zone
    try:
        if zone_name[:1] in ("+", "-") or zone_name == "Z":
            when = datetime.fromisoformat(clock + zone_name).astimezone(UTC)
        elif tz := zone_named(zone_name):
            local = datetime.fromisoformat(clock)
            when = max(local.replace(tzinfo=tz, fold=fold).astimezone(UTC) for fold in (0, 1))
        else:
            return None
    except (ValueError, OverflowError):
        return None
    return when if _FIRST <= when < _END else None


def moment(text: str, zone: str = "") -> datetime:
    """Return the moment of an author's text in UTC, as `read_moment` does.

    Raises:
        ValueError: the text is no moment, or clocks of the zone skip this hour.
    """
    when = read_moment(text, zone)
    if when is not None and (skipping := _zone_that_skips(text, zone)):
        problem = (
            f"is an hour that {skipping} skips, where clocks go forward: write an earlier or "
            "a later time"
        )
        raise ValueError(f"{text:.60} {problem}")
    if when is not None:
        return when
    if zone or read_moment(text, "UTC") is None:
        raise ValueError(
            f"{text!a:.60} is no date and time of 1990 to 2100, such as 2026-12-01 18:00 "
            "Europe/Berlin"
        )
    raise ValueError(
        f"{text:.60} has no zone: write +01:00 after it, or give the course a time_zone"
    )


def _zone_that_skips(text: str, zone: str) -> str:
    """Return the name of the zone of a text if clocks there never show its time, otherwise "".

    Args:
        text: the date and time.
        zone: the zone for a text without one.
    """
    match = _MOMENT.fullmatch(text.strip())
    name = (match and match[2]) or zone
    tz = zone_named(name) if match and name[:1] not in ("+", "-") and name != "Z" else None
    if match is None or tz is None:
        return ""
    local = datetime.fromisoformat(match[1])
    round_trip = local.replace(tzinfo=tz).astimezone(UTC).astimezone(tz).replace(tzinfo=None)
    return "" if round_trip == local else name


def zone_named(name: str) -> tzinfo | None:
    """Return the zone of a name, such as Europe/Berlin or UTC, or None if it is unknown."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return UTC if name == "UTC" else ZoneInfo(name)  # a system may have no list of zones
    except (ZoneInfoNotFoundError, OSError, ValueError):
        return None


def shown_moment(when: datetime, zone: str = "") -> str:
    """Return a text such as 2026-12-01 18:00 Europe/Berlin, in UTC if the zone is not known."""
    tz = zone_named(zone)
    return f"{when.astimezone(tz):%Y-%m-%d %H:%M} {zone}" if tz else f"{when:%Y-%m-%d %H:%M} UTC"


def duration(text: str) -> timedelta:
    """Return the length of a text that fits `Duration`, such as "30 min"."""
    number, unit = re.findall("[0-9]+|[a-z]+", text)
    return int(number) * next(length for name, length in _UNITS.items() if name[0] == unit[0])


def later_by(extra: timedelta, when: datetime, zone: str = "") -> datetime:
    """Return the moment in UTC that is this much later.

    Whole days are counted by the clock of the zone, so a day in which clocks change is one day.
    """
    days = timedelta(extra.days)
    local = when.astimezone(zone_named(zone) or UTC) + days
    # If clocks skip the time, or show it twice, the later moment is meant.
    return max(local.replace(fold=fold).astimezone(UTC) for fold in (0, 1)) + (extra - days)


def shown_duration(lasted: timedelta) -> str:
    """Return a text such as "1 day 6 hours", with the two largest units that are not zero.

    Fractions of a second are rounded up.
    """
    remaining = timedelta(seconds=ceil(lasted.total_seconds()))
    words = []
    for name, unit in _UNITS.items():
        count, remaining = divmod(remaining, unit)
        if count:
            words.append(f"{count} {name}" if count == 1 else f"{count} {name}s")
    return " ".join(words[:2])


def _zone(name: str) -> str:
    # If the system has no list of zones, as on Windows, any name is accepted: students' commands
    # need no zone.
    if zone_named(name) is None and zone_named("Europe/Berlin") is not None:
        raise ValueError(f"{name!a} is no time zone that is known here; one is Europe/Berlin")
    return name


Moment = Annotated[
    str,
    Field(description="such as 2026-12-01 18:00 in the course's time_zone, or 2026-12-01 17:00Z"),
]
Zone = Annotated[str, AfterValidator(_zone), Field(description="such as Europe/Berlin")]
Duration = Annotated[
    str,
    WrittenAs(
        "^[0-9]{1,4} ?(minutes?|min|m|hours?|h|days?|d)$", "a time such as 30 min, 2 h or 7 days"
    ),
    Field(description="such as 30 min, 2 h or 7 days"),
]

Identifier = Annotated[
    str,
    WrittenAs(
        "^[a-z][a-z0-9_]*$", "a letter and then letters, digits and underscores, all in lower case"
    ),
    Field(description="lower case, digits and underscores"),
]
EarlierName = Annotated[
    str, WrittenAs("^[a-z0-9][a-z0-9_]*$", "letters, digits and underscores, all in lower case")
]
Share = Annotated[
    str,
    WrittenAs(r"^(100|[0-9]{1,2}(\.[0-9]{1,4})?)%$", "a share such as 10%"),
    Field(description="such as 10%"),
]
Words = Annotated[str, Field(min_length=1)]
_SIGNATURE = AfterValidator(lambda text: parse_signature(text) and text)
Shapes = Annotated[
    str, _SIGNATURE, Field(description="such as (x: (B, T, C), n_head: nh) -> (B, nh, T, hd)")
]


def _with_one_form(shapes: dict[str, str | tuple[str, ...]]) -> dict[str, str | tuple[str, ...]]:
    """Return the same signatures. Raises ValueError if those of one function differ in form."""
    for name, listed in shapes.items():
        if not isinstance(listed, str) and len({parse_signature(text).form for text in listed}) > 1:
            raise ValueError(
                f"the signatures of {name} return different structures: a function returns one"
            )
    return shapes


class FileModel(BaseModel):
    """A part of a file that people write. Unknown keys and infinite numbers are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class CourseLimits(FileModel):
    """The resources that one attempt may use."""

    seconds_per_call: float = Field(
        5.0, gt=0, description="that a call may run or sleep; ten times as long by the clock"
    )
    seconds_per_attempt: float = Field(
        20.0, gt=0, description="for all calls of one attempt together, counted alike"
    )
    memory_mib: int = Field(2048, ge=256)
    files_mib: int = Field(32, ge=1, description="/tmp and /dev/shm, each")
    processes: int = Field(32, ge=1)
    open_files: int = Field(128, ge=80)
    reply_mib: int = Field(32, ge=1, description="the largest reply")
    source_kib: int = Field(1024, ge=1, description="the largest file of an attempt")

    def for_worker(self, device: str = "cpu") -> WorkerLimits:
        """Return the limits that the box enforces, for attempts that compute on this device."""
        return WorkerLimits(**self.model_dump(exclude={"source_kib"})).for_device(device)


class LatePolicy(FileModel):
    """What being late costs: a share of what an exercise has earned."""

    grace: Duration = Field(
        "15 min", description="such as 30 min or 2 h: how long after the due date nothing is late"
    )
    per_day: Share = Field(
        "0%", description="such as 10%, for each day that has begun since the due date"
    )
    at_most: Share = Field("100%", description="such as 50%, however late it is")


class Trainable(FileModel):
    """A causal module (B, T, C) -> (B, T, C), which `course train` puts into a language model."""

    module: Words = Field(description="the class")
    arguments: dict[str, Literal["C", "nh", "T"]] = Field(
        description="of the class: C channels, nh heads, T tokens"
    )
    shown_with: dict[str, bool] = Field(
        {}, description="attributes with which `course plot` can see its weights"
    )


class ExerciseRow(FileModel):
    """One gradable unit."""

    id: Identifier
    title: Words
    was: tuple[EarlierName, ...] = Field(
        (), description="earlier ids or file names: what has them is graded, too"
    )
    points: float = Field(gt=0, description="the sum of its checks' points")
    hint: Words = Field(description="shown where a check has no hint of its own")
    why: str = Field("", description="shown once every check passes: in one sentence, why it works")
    shapes: Annotated[dict[str, Shapes | tuple[Shapes, ...]], AfterValidator(_with_one_form)] = (
        Field(
            {},
            description=(
                "for `course trace` and `course plot`: functions and classes, and what they "
                "take and give"
            ),
        )
    )
    train: Trainable | None = Field(None, description="the module that `course train` trains")


class AssignmentRow(FileModel):
    """Exercises, in the order in which students do them."""

    id: Identifier
    title: Words
    exercises: tuple[ExerciseRow, ...] = Field(min_length=1)
    due: Moment | None = None
    late: LatePolicy | None = Field(None, description="in place of the course's own")
    show_solutions: bool = Field(
        False, description="to students, by the releases after the due date, if there is one"
    )


def _known_or_utc(zone: str) -> str:
    """Return the zone, or UTC if this system does not know it, so that dates can be checked."""
    return "UTC" if zone and zone_named(zone) is None else zone


class CourseFile(FileModel):
    """The whole of course.yaml."""

    title: Words
    assignments: tuple[AssignmentRow, ...] = Field(min_length=1)
    limits: CourseLimits = CourseLimits()
    not_handed_in: Literal["blank", "zero"] = Field(
        "blank", description="in a gradebook, for whoever is absent"
    )
    roster: str = Field(
        "", description="a file with everybody in the class, from this folder: in place of --roster"
    )
    time_zone: Zone | None = Field(
        None, description="of dates that name no zone, such as Europe/Berlin"
    )
    late: LatePolicy | None = Field(
        None, description="what being late costs, in assignments with a due date"
    )

    @model_validator(mode="after")
    def _fits_together(self) -> CourseFile:
        """Check every due date with the course's time zone, and that no id occurs twice."""
        # checks, mutants and commands refer to an exercise by its id alone
        earlier_ids = set[tuple[str, str]]()
        for i, assignment in enumerate(self.assignments):
            location: tuple[int | str, ...] = ("assignments", i, "due")
            try:
                if assignment.due is not None:
                    moment(assignment.due, _known_or_utc(self.time_zone or ""))
                ids = [
                    ("assignment", assignment.id),
                    *(("exercise", exercise.id) for exercise in assignment.exercises),
                ]
                for j, (noun, id_) in enumerate(ids):
                    location = ("assignments", i, *(("exercises", j - 1) if j else ()), "id")
                    if (noun, id_) in earlier_ids:
                        raise ValueError(f"the {noun} {id_} occurs twice")
                    earlier_ids.add((noun, id_))
            # pydantic does not add the location to an error of a whole model
            except ValueError as error:
                raise PydanticCustomError(
                    "value_error", "{said}", {"said": str(error), "place": location}
                ) from None
        return self


@dataclass(frozen=True)
class Axis:
    """The size of an axis: a product of named axes and whole numbers, usually of a single one."""

    factors: tuple[str | int, ...]


Leaves = tuple[tuple[PartPath, tuple[Axis, ...]], ...]


@dataclass(frozen=True)
class Parameter:
    """A parameter: a tensor, a number or an object."""

    name: str
    shape: tuple[Axis, ...] | None = None  # the shape, for a tensor
    axis: Axis | None = None  # the axis with this size, for a number
    attributes: tuple[
        tuple[str, Axis], ...
    ] = ()  # for an object: the axis with the size of each attribute
    may_lack: bool = False  # whether it can be left out, or be None


@dataclass(frozen=True)
class Signature:
    """The signature of a function or a module."""

    call: tuple[Parameter, ...]
    returns: tuple[Axis, ...]  # the shape of the first tensor that is returned
    build: tuple[Parameter, ...] | None = None  # the constructor's parameters, if any
    form: Form | None = None  # the structure of the result, if it is not one tensor
    shapes: Leaves = ()  # for a form: the path and the shape of each leaf that has one

    def shape_at(self, path: PartPath) -> tuple[Axis, ...] | None:
        """Return the shape of the leaf at this path, or None if it has no shape."""
        return self.returns if self.form is None else dict(self.shapes).get(path)


def parse_signature(text: str) -> Signature:
    """Parse a signature with named axes, such as `(x: (B, T, C), n_head: nh) -> (B, nh, T, hd)`.

    Signatures use Python's syntax. A tensor is annotated with its shape. A number is annotated with
    the axis that has this size (by default the axis of the same name), or with `float` if it is not
    a size. The annotation of an object gives an axis for each attribute (`{n_head: nh}`), and a
    module is annotated with the name of its entry in course.yaml. An axis may be a product, as in
    `n_embd: nh * hd`. A class has brackets for its constructor, then for its forward:
    `(n_embd: C)(x: (B, T, C)) -> (B, T, C)`.

    A function may return several tensors: `-> (y: (B, T, C), lse: (B, T))` is a tuple with named
    parts, and `-> ((B, T), (B,))` one without names. `| None` after a shape means that the part may
    be None. The student chooses the type of an `opaque` result or parameter. Its value stays in the
    box, and can be passed to a later call.

    Raises:
        ValueError: with one sentence, if the text is no signature.
    """
    head, _, returned = text.partition("->")
    *build, call = re.split(r"(?<=\))\s*(?=\()", head.strip())
    try:
        if len(build) > 1:
            raise ValueError
        try:
            form, shapes = _read_form(ast.parse(returned.strip(), mode="eval").body, ())
        except SyntaxError:  # (y: (B, T), state: opaque) has the syntax of parameters
            args = _arguments(returned)
            form, shapes = _read_tuple(
                [arg.annotation for arg in args], (), tuple(arg.arg for arg in args)
            )
        returns = shapes[0][1] if shapes else ()
        constructor = _parameters(build[0]) if build else None
        signature = Signature(_parameters(call), returns, constructor)
        return signature if form.kind == "tensor" else replace(signature, form=form, shapes=shapes)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        example = "'(x: (B, T, C), n_head: nh) -> (B, nh, T, hd)'"
        raise ValueError(
            f"{text!r} is not a signature with named axes, such as {example}"
        ) from None


def _read_form(node: ast.expr | None, path: PartPath) -> tuple[Form, Leaves]:
    """Return the form that an annotation describes, and the shapes of its leaves.

    Raises ValueError if the annotation is none of `opaque`, `None`, a shape, a shape `| None`, and
    a tuple or list of annotations.

    Args:
        node: the annotation, or None if a parameter has none.
        path: the path of this part in the result.
    """
    if isinstance(node, ast.Name) and _is_opaque(node):
        return Form("opaque"), ()
    tensor = _not_none(node)
    match tensor:
        case ast.Constant(value=None):
            return Form(), ()
        case ast.Tuple(elts=axes) if all(
            isinstance(axis, _AXES) for axis in axes
        ) and not _is_opaque(tensor):
            return Form(), ((path, tuple(map(_axis, axes))),)
        case ast.Tuple(elts=elements) | ast.List(elts=elements) if tensor is node:
            return _read_tuple(elements, path)
    raise ValueError


def _is_opaque(node: ast.expr) -> bool:
    return any(isinstance(child, ast.Name) and child.id == OPAQUE for child in ast.walk(node))


def _read_tuple(
    elements: Sequence[ast.expr | None], path: PartPath, names: tuple[str, ...] = ()
) -> tuple[Form, Leaves]:
    """Return the form of a tuple, and the shapes of its leaves; see `_read_form`."""
    if not elements:
        raise ValueError
    pairs = [_read_form(element, (*path, index)) for index, element in enumerate(elements)]
    return Form("tuple", names, tuple(form for form, _ in pairs)), tuple(
        leaf for _, leaves in pairs for leaf in leaves
    )


def _arguments(text: str) -> list[ast.arg]:
    """Return the parameters of a text such as `(x: (B, T), n)`.

    Raises ValueError if they have defaults or are of a special kind, and SyntaxError if the text
    cannot be parsed.
    """
    match ast.parse(f"def f {text}: ...").body:
        case [ast.FunctionDef(args=ast.arguments(args=args) as given)]:
            if not (
                given.vararg
                or given.kwarg
                or given.kwonlyargs
                or given.posonlyargs
                or given.defaults
            ):
                return args
    raise ValueError


def _parameters(text: str) -> tuple[Parameter, ...]:
    return tuple(_parameter(argument.arg, argument.annotation) for argument in _arguments(text))


def _parameter(name: str, says: ast.expr | None) -> Parameter:
    """Return the parameter with this name and annotation; see `parse_signature`."""
    match says:
        case None:
            return Parameter(name, axis=Axis((name,)))
        case ast.Tuple(elts=elements):
            return Parameter(name, shape=tuple(map(_axis, elements)))
        case ast.Dict(keys=keys, values=values):
            return Parameter(
                name, attributes=tuple(zip(map(_name, keys), map(_axis, values), strict=True))
            )
        case ast.Name(id="float" | "opaque" as word):
            return Parameter(name, may_lack=word == OPAQUE)
    needed = _not_none(says)
    return (
        Parameter(name, axis=_axis(says))
        if needed is says
        else replace(_parameter(name, needed), may_lack=True)
    )


def _not_none(node: ast.expr | None) -> ast.expr | None:
    """Return the annotation without `| None` at its end."""
    match node:
        case ast.BinOp(left=before, op=ast.BitOr(), right=ast.Constant(value=None)):
            return before
    return node


def _axis(node: ast.expr) -> Axis:
    match node:
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return Axis(_axis(left).factors + _axis(right).factors)
        case ast.Constant(value=int(number)) if type(number) is int:
            return Axis((number,))
    return Axis((_name(node),))


def _name(node: ast.expr | None) -> str:
    if not isinstance(node, ast.Name):
        raise ValueError
    return node.id
