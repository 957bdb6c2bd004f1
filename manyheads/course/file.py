"""The contents of course.yaml. The JSON Schema that editors use is generated from these models."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from ..box.worker.limits import Limits as WorkerLimits
from .dates import Duration, Moment, Zone, moment, zone_named
from .shapes import parse_signature
from .written_form import WrittenAs

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
    for name, listed in shapes.items():
        if not isinstance(listed, str) and len({parse_signature(text).form for text in listed}) > 1:
            raise ValueError(
                f"the signatures of {name} return different structures: a function returns one"
            )
    return shapes


class FileModel(BaseModel):
    """A part of a file that people write: a key that nobody knows is a mistake, and so is an
    infinite number.
    """

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
        return WorkerLimits(**self.model_dump(exclude={"source_kib"})).on(device)


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
        # checks, mutants and commands refer to an exercise by its id alone
        earlier_ids = set[tuple[str, str]]()
        for i, assignment in enumerate(self.assignments):
            location: tuple[int | str, ...] = ("assignments", i, "due")
            try:
                if assignment.due is not None:
                    zone = self.time_zone or ""
                    moment(
                        assignment.due,
                        zone if zone_named(zone) is not None else "UTC" if zone else "",
                    )
                ids = [
                    ("assignment", assignment.id),
                    *(("exercise", exercise.id) for exercise in assignment.exercises),
                ]
                for j, (noun, id_) in enumerate(ids):
                    location = ("assignments", i, *(("exercises", j - 1) if j else ()), "id")
                    if (noun, id_) in earlier_ids:
                        raise ValueError(f"the {noun} {id_} occurs twice")
                    earlier_ids.add((noun, id_))
            # a check of the whole does not say by itself where in the file it is
            except ValueError as error:
                raise PydanticCustomError(
                    "value_error", "{said}", {"said": str(error), "place": location}
                ) from None
        return self
