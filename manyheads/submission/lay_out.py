"""Write files to OUT/<student>/<assignment>/, and remember in that folder where each came from."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from ..course import Assignment
from ..errors import CourseFault
from ..whole import write_whole
from . import ENDINGS
from .unwritten import is_unwritten
from .which_exercise import Reading

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
        raise CourseFault(
            f"{path} cannot be read, or is of another version. Next: course collect DOWNLOAD --out NEW, a new folder"
        ) from None


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


# Several files of one student, of one exercise: which counts, where a rule says so; else none of them, and a sentence.
#
# The platform's order is such a rule, and so is the time where files were not written at once: what unpacks or copies them
# writes them all in the same minute. Of the rest, what has nothing written in it does not count, nor does a file without the
# exercise's name beside one that has it, nor a copy beside the file in exercises/ of a whole repository.

MOST_PATHS = 4  # in one sentence
APART = 60  # seconds: files whose times are nearer were copied or unpacked together


def tell_apart(
    candidates: Sequence[Candidate], out: Path, memory: Memory, reading: Reading
) -> tuple[list[Candidate], list[Laid], list[str]]:
    """Tell one student's files of one exercise apart, scripts and notebooks each for themselves. reading: of that student's files.

    Returns:
        What can be laid out, what became of others already, and sentences on those that nothing tells apart.
    """
    if len(several := _of_several(candidates)) > 1:
        first = several[0]
        said = f"are of several persons, and the roster takes each of them for {first.student!a}"
        next_ = "Next: give --roster a file that tells them apart"
        return [], [], [f"{first.origin.download}: {_paths_of(several)} {said}. {next_}"]
    rules: tuple[Callable[[Candidate], bool], ...] = (
        lambda c: (source := reading.source(c.ending, c.content)) is None or not is_unwritten(source),
        lambda c: c.is_named,
        lambda c: c.is_in_place,
    )
    clear: list[Candidate] = []
    laid: list[Laid] = []
    unclear: list[str] = []
    for ending in ENDINGS:
        ordered = sorted((c for c in candidates if c.ending == ending), key=lambda c: c.age)
        left = rivals = _rivals(ordered)
        if len(_contents(rivals)) < 2:
            clear += ordered
            continue
        for counts in rules:
            left = [candidate for candidate in left if counts(candidate)] or left
        if len(_contents(left)) == 1:
            clear += [c for c in ordered if c not in rivals or c is left[-1]]
            laid += [c.laid(State.OTHER) for c in rivals if c is not left[-1]]
        elif chosen := _chosen_by_hand(rivals, out, memory):
            laid += [c.laid(State.SAME if c is chosen else State.OTHER) for c in ordered]
        else:
            first = rivals[0]
            where = "" if len({rival.archive for rival in rivals}) > 1 else f"{first.origin.download}: "
            said = f"{_paths_of(rivals)} are of the same exercise, and nothing says which of them counts"
            next_ = f"Next: copy that one to {out / first.path}, then the same command again"
            unclear.append(f"{where}{said}. {next_}")
    return clear, laid, unclear


def surely_of_one(candidates: Sequence[Candidate]) -> tuple[list[Candidate], list[str]]:
    """Return those of a download that are surely of the students they seem to be, and a sentence for the others.

    Of a download that seems to be one student's, files of one exercise may be of several: they lie in one folder, and not
    all of their names are the exercise's own. Other words in them may be students' names.
    """
    groups: dict[tuple[str, ...], list[Candidate]] = defaultdict(list)
    for each in candidates:
        folder, _, _ = each.origin.path.rpartition("/")
        groups[folder, each.assignment.id, each.stem, each.ending].append(each)
    mixed = [g for g in groups.values() if len(_contents(g)) > 1 and not all(each.is_plain for each in g)]
    said = "are of the same exercise, and may be of several students. Next: give each student a folder, there"
    sentences = [f"{group[0].origin.download}: {_paths_of(group)} {said}" for group in mixed]
    return [each for each in candidates if not any(each in group for group in mixed)], sentences


def _paths_of(candidates: Sequence[Candidate]) -> str:
    """Return where they come from, for a sentence: of several downloads, with the archive."""
    several = len({(candidate.origin.download, candidate.archive) for candidate in candidates}) > 1
    paths = []
    for each in candidates[:MOST_PATHS]:
        is_whole = not several or each.origin.path.startswith(each.archive)
        paths.append(each.origin.path if is_whole else f"{each.archive}/{each.origin.path}")
    return " and ".join([*paths, f"{len(candidates) - MOST_PATHS} more"][: len(candidates)])


def _of_several(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return a file of each person of a download, where these are several: they have one name, which is all that the roster knows.

    Students may choose their names: the newest file would take the place of somebody else's.
    """
    first: dict[str, dict[str, Candidate]] = {}
    for candidate in candidates:
        if candidate.person:
            first.setdefault(candidate.origin.download, {}).setdefault(candidate.person, candidate)
    return next(([*found.values()] for found in first.values() if len(found) > 1), [])


def _rivals(ordered: Sequence[Candidate]) -> Sequence[Candidate]:
    """Return the newest, and those that nothing says to be older; all of them where several archives claim to be the student's."""
    if not ordered or len({candidate.archive for candidate in ordered if candidate.archive}) > 1:
        return ordered
    last = ordered[-1].origin
    same = [c for c in ordered if (c.origin.platform, c.origin.order) == (last.platform, last.order)]
    return [candidate for candidate in same if last.modified - candidate.origin.modified < APART]


def _contents(candidates: Iterable[Candidate]) -> set[str]:
    return {candidate.origin.digest for candidate in candidates}


def _chosen_by_hand(rivals: Sequence[Candidate], out: Path, memory: Memory) -> Candidate | None:
    """Return the one that a person has put where it goes. What an earlier run put there was chosen by nobody."""
    target = out / rivals[0].path
    if target.is_symlink() or not target.is_file() or rivals[0].path in memory.files:
        return None
    there = digest_of(target.read_bytes())
    return next((rival for rival in rivals if rival.origin.digest == there), None)
