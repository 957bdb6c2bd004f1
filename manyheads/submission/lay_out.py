"""Write files to OUT/<student>/<assignment>/, and remember in that folder where each came from."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from ..course import Assignment
from ..errors import CourseFault
from ..whole import write_whole
from . import ENDINGS

# What `course collect` remembers in the folder that it fills: where each file came from, and whose each folder is.

NAME = ".collected.json"


class Origin(BaseModel):
    """Where a file came from. order: as its platform orders attempts.

    handed_in: when, in ISO 8601, where the platform says. late: whether it says late.
    named: what the platform called it, for feedback that goes back.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    platform: str
    order: float
    modified: float
    digest: str
    download: str
    path: str
    handed_in: str = ""
    late: bool = False
    named: str = ""

    def is_newer_than(self, other: Origin) -> bool:
        """Return whether this is a later attempt: by the platform's order where both are of one platform, else by time."""
        if self.platform == other.platform and self.order != other.order:
            return self.order > other.order
        return self.modified > other.modified


class Memory(BaseModel):
    """The whole of it. files: by path. folders: whose each is.

    not_readable: names of what was handed in and cannot be read, by student and assignment.
    """

    model_config = ConfigDict(extra="forbid")

    files: dict[str, Origin] = {}
    folders: dict[str, str] = {}
    not_readable: dict[str, dict[str, list[str]]] = {}

    def write(self, out: Path) -> None:
        """Write it, if it has changed."""
        content = f"{self.model_dump_json(indent=1)}\n".encode()
        path = out / NAME
        if not path.is_file() or path.read_bytes() != content:
            write_whole(path, content)


def read_memory(out: Path) -> Memory:
    """Return what is remembered; nothing in a new folder. Raises CourseFault."""
    path = out / NAME
    if path.is_symlink():
        raise CourseFault(f"{path} is a link. Next: give --out another folder")
    try:
        return Memory.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return Memory()
    except (OSError, ValidationError):
        raise CourseFault(f"{path} cannot be read. Next: give --out another folder") from None


# Write files to OUT/<student>/<assignment>/: what is newer replaces what was collected, and nothing else is touched.


class State(StrEnum):
    """What became of a file."""

    NEW = "new"
    SAME = "as before"
    REPLACED = "replaced, for it is newer"
    OLDER = "not taken: not the newest attempt"
    BY_HAND = "not taken: what is there was not collected, or was changed since"
    OTHER = "not taken: another file of the same exercise counts"
    SUPERSEDED = "removed: a newer attempt is of the other kind"


@dataclass(frozen=True)
class Laid:
    """What became of one file."""

    path: str
    student: str
    origin: Origin
    state: State


@dataclass(frozen=True)
class Candidate:
    """A file that may be laid out.

    person: whose it is on the platform, where its files say that by a number; "" elsewhere.
    archive: the archive whose own name says whose it is; "" where nothing but a folder does.
    is_named: its name says of which exercise it is. is_plain: it says that and nothing else. is_in_place: it lies where the
    course's repository has it.
    """

    student: str
    assignment: Assignment
    stem: str
    ending: str
    content: bytes
    origin: Origin
    is_named: bool = True
    is_plain: bool = True
    is_in_place: bool = False
    person: str = ""
    archive: str = ""

    @property
    def paths(self) -> list[str]:
        """Where it and a file of the other kind go, within OUT."""
        return [f"{self.student}/{self.assignment.id}/{self.stem}{ending}" for ending in ENDINGS]

    @property
    def path(self) -> str:
        """Where it goes, within OUT."""
        return self.paths[ENDINGS.index(self.ending)]

    @property
    def age(self) -> tuple[float, float, str]:
        """By which the newest of several attempts is the last."""
        return (self.origin.order, self.origin.modified, self.origin.path)

    def laid(self, state: State) -> Laid:
        """Return what became of it."""
        return Laid(self.path, self.student, self.origin, state)


def digest_of(content: bytes) -> str:
    """Return the digest by which a file is known again."""
    return hashlib.sha256(content).hexdigest()


def lay_out(candidates: Sequence[Candidate], out: Path, memory: Memory) -> list[Laid]:
    """Lay out one student's attempts at one exercise, and remember them. Raises CourseFault.

    The newest attempt wins. Of a script and a notebook both stay where they are of one download; else the newer alone.
    """
    ordered = sorted(candidates, key=lambda c: c.age)
    newest = {candidate.ending: candidate for candidate in ordered}
    done: list[Laid] = []
    latest = ordered[-1].origin
    for each in ordered:
        last = newest[each.ending]
        if each is last:
            is_older = _is_superseded(each.origin, latest)
            done.append(each.laid(State.OLDER if is_older else _put(each, out, memory)))
        elif each.origin.digest != last.origin.digest:
            done.append(each.laid(State.OLDER))
    for path in set(ordered[-1].paths) - {each.path for each in newest.values()}:
        known, target = memory.files.get(path), out / path
        if known is not None and _is_superseded(known, latest):
            refuse_links(out, target)
            if target.is_file() and digest_of(target.read_bytes()) == known.digest:
                target.unlink()
                del memory.files[path]
                done.append(Laid(path, ordered[-1].student, known, State.SUPERSEDED))
    return done


def _is_superseded(origin: Origin, by: Origin) -> bool:
    return origin.download != by.download and by.is_newer_than(origin)


def _put(candidate: Candidate, out: Path, memory: Memory) -> State:
    """Write the file, where it is newer than what was collected, and remember it."""
    target, known, origin = out / candidate.path, memory.files.get(candidate.path), candidate.origin
    refuse_links(out, target)
    others = (memory.files[path] for path in candidate.paths if path in memory.files and path != candidate.path)
    if any(_is_superseded(origin, other) for other in others):
        return State.OLDER
    there = digest_of(target.read_bytes()) if target.is_file() else "" if target.exists() else None
    if there == origin.digest:
        if known is None or not known.is_newer_than(origin):
            memory.files[candidate.path] = origin
        return State.SAME
    if there is not None and (known is None or known.digest != there):
        return State.BY_HAND
    if there is not None and known is not None and not origin.is_newer_than(known):
        return State.OLDER
    write_whole(target, candidate.content)
    memory.files[candidate.path] = origin
    return State.NEW if there is None else State.REPLACED


def refuse_links(out: Path, target: Path) -> None:
    """Raise CourseFault where a link stands on the way to this file: it could lead anywhere."""
    on_the_way = [target, *(path for path in target.parents if path.is_relative_to(out) and path != out)]
    for path in on_the_way:
        if path.is_symlink():
            raise CourseFault(f"{path} is a link, and nothing is written through it. Next: give --out another folder")
