"""The record of a student's learning: what was named, mended and asked, kept on the student's machine and nowhere else.

It is written only after `course ask --keep`, stands in the folder `.course`, which git ignores, and is deleted by
`course ask --forget`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from ..course.secret import FOLDER
from ..errors import CourseFault
from ..result import ExerciseResult
from ..whole import write_whole

NAME = "record.json"  # in FOLDER
INTERVALS = (timedelta(days=1), timedelta(days=7), timedelta(days=21))  # from the first questions on an exercise

Kind = Literal["named", "mended", "asked"]


class Event(BaseModel):
    """Something that happened. about: a misconception's title, or of questions how many were right at the first try."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    when: datetime
    exercise: str
    kind: Kind
    about: str


class LearningRecord(BaseModel):
    """All events, the earliest first."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    events: tuple[Event, ...] = ()

    def open_in(self, exercise: str) -> list[str]:
        """Return the titles that were named in an exercise and are not mended there."""
        found: dict[str, None] = {}
        for event in self.events:
            if event.exercise == exercise and event.kind == "named":
                found[event.about] = None
            elif event.exercise == exercise and event.kind == "mended":
                found.pop(event.about, None)
        return list(found)

    def due(self, now: datetime) -> Iterator[tuple[str, timedelta]]:
        """Yield the exercises about which a question is due, with the time since the last ones."""
        asked: dict[str, list[datetime]] = {}
        for event in self.events:
            if event.kind == "asked":
                asked.setdefault(event.exercise, []).append(event.when)
        for exercise, times in asked.items():
            passed = sum(now - times[0] >= interval for interval in INTERVALS)
            answered = sum(times[0] + interval <= time for interval in INTERVALS[:passed][-1:] for time in times)
            if passed and not answered:
                yield exercise, now - times[-1]

    def came_back(self, order: Sequence[str]) -> Iterator[tuple[str, str, str]]:
        """Yield the titles that were named in one exercise and again in a later one, with both."""
        first: dict[str, str] = {}
        for exercise in order:
            titles = dict.fromkeys(e.about for e in self.events if e.exercise == exercise and e.kind == "named")
            for title in titles:
                if title in first:
                    yield title, first[title], exercise
                first.setdefault(title, exercise)


def read_record(root: Path) -> LearningRecord | None:
    """Return the record; None where the student has not asked for one, or it cannot be read."""
    with suppress(OSError, ValueError):
        return LearningRecord.model_validate_json((root / FOLDER / NAME).read_bytes())
    return None


def begin_record(root: Path) -> None:
    """Begin a record, if there is none. Raises CourseFault."""
    if read_record(root) is None:
        _write(root, LearningRecord())


def forget_record(root: Path) -> bool:
    """Delete the record. Returns whether there was one."""
    path = root / FOLDER / NAME
    was_there = path.exists()
    path.unlink(missing_ok=True)
    return was_there


def note_asked(root: Path, exercise: str, right: int, count: int) -> None:
    """Add that questions were answered, where there is a record."""
    _add(root, exercise, [("asked", f"{right} of {count}")])


def note_result(root: Path, result: ExerciseResult) -> None:
    """Add what a check named for the first time, and what it names no more, where there is a record."""
    record = read_record(root)
    if record is None:
        return
    before, now = record.open_in(result.id), [diagnosed.title for diagnosed in result.diagnosis]
    mended = [title for title in before if title not in now] if now or result.is_done else []
    named: list[tuple[Kind, str]] = [("named", title) for title in now if title not in before]
    _add(root, result.id, [*named, *(("mended", title) for title in mended)])


def _add(root: Path, exercise: str, what: Sequence[tuple[Kind, str]]) -> None:
    record, now = read_record(root), datetime.now(UTC)
    if record is not None and what:
        new = (Event(when=now, exercise=exercise, kind=kind, about=about) for kind, about in what)
        with suppress(CourseFault):  # what cannot be kept costs no check
            _write(root, LearningRecord(events=(*record.events, *new)))


def _write(root: Path, record: LearningRecord) -> None:
    path = root / FOLDER / NAME
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_whole(path, record.model_dump_json(indent=1).encode())
    except OSError as error:
        raise CourseFault(f"{path} cannot be written ({error.strerror}). Next: course ask, without --keep") from None
