"""Write files to OUT/<student>/<assignment>/, with a journal in that folder of where each came from.

The rows of one student are written to the journal before the files. So a run that is killed at any moment leaves no file that
the next one does not know for its own, and the next one writes what is missing.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from ..course import Assignment
from ..errors import CourseFault
from ..whole import naming, write_whole
from . import ENDINGS
from .unwritten import is_unwritten
from .which_exercise import Reading

NAME = ".collected.jsonl"
_EARLIER = ".collected.json"
MOST_PATHS = 4  # in one sentence
APART = 60  # seconds: files whose times are nearer were copied or unpacked together


class Origin(BaseModel):
    """Where a file came from. order: as its platform orders attempts.

    handed_in: when, in ISO 8601, where the platform says. late: whether it says late. named: what the platform called it.
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

    def supersedes(self, other: Origin) -> bool:
        """Return whether a file of the other kind counts no more: a later download holds this one."""
        return self.download != other.download and self.is_newer_than(other)


@dataclass
class Memory:
    """What runs of `course collect` have laid out.

    files: by path. earlier: every origin that a path had, by digest. folders: whose each is. not_readable: names of what was
    handed in and cannot be read, by student and assignment.
    """

    journal: Path
    files: dict[str, Origin] = field(default_factory=dict)
    earlier: dict[str, dict[str, Origin]] = field(default_factory=dict)
    folders: dict[str, str] = field(default_factory=dict)
    not_readable: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    def note(self, *rows: Sequence[Any]) -> None:
        """Remember rows, and write them to the journal before anything else happens.

        A row is ["file", its path, its Origin or None], ["folder", its name, whose it is], or ["not readable", student,
        assignment, names].
        """
        lines = [json.dumps(row, default=lambda origin: origin.model_dump(exclude_defaults=True)) for row in rows]
        for line in lines:
            self.remember(json.loads(line))
        if lines:
            self.journal.parent.mkdir(parents=True, exist_ok=True)
            with naming(self.journal), self.journal.open("a", encoding="utf-8") as file:
                # The first newline ends a line that a kill left incomplete.
                file.writelines(f"\n{line}\n" for line in lines)
                file.flush()
                os.fsync(file.fileno())

    def remember(self, row: object) -> None:
        """Take in a row of the journal. Raises ValueError."""
        match row:
            case ["file", str(path), None]:
                self.files.pop(path, None)
            case ["file", str(path), dict(fields)]:
                origin = self.files[path] = Origin.model_validate(fields)
                self.earlier.setdefault(path, {})[origin.digest] = origin
            case ["folder", str(folder), str(key)]:
                self.folders[folder] = key
            case ["not readable", str(student), str(assignment), list(names)]:
                self.not_readable.setdefault(student, {})[assignment] = list(map(str, names))
            case _:
                raise ValueError(row)


def read_memory(out: Path) -> Memory:
    """Return what is remembered; nothing in a new folder. Raises CourseFault."""
    path, memory = out / NAME, Memory(out / NAME)
    if path.is_symlink():
        raise CourseFault(f"{path} is a link. Next: give --out another folder")
    try:
        if (out / _EARLIER).exists() and not path.exists():
            raise ValueError(_EARLIER)
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else ():
            try:
                row = json.loads(line)
            except ValueError:
                continue  # empty, or incomplete
            memory.remember(row)
    except (OSError, ValueError, RecursionError):
        said = f"{path} cannot be read, or is of another version"
        raise CourseFault(f"{said}. Next: course collect DOWNLOAD --out NEW, a new folder") from None
    return memory


@contextmanager
def held(lock: Path, taken: str) -> Iterator[None]:
    """Hold a folder for one process, by a file in it, until the process ends in any way. An empty folder goes at the end.

    Where there are no such locks, as on Windows, nothing is held. taken: what CourseFault says where another process, which
    is named in place of {}, holds it.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    with naming(lock):
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    with os.fdopen(descriptor, "r+") as file:
        if not _is_held(descriptor, lock):
            raise CourseFault(taken.replace("{}", f"process {file.read(20).strip() or 'unknown'}", 1))
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        try:
            yield
        finally:
            with suppress(OSError):  # Windows removes no open file, and nobody a folder with results
                lock.unlink()
                lock.parent.rmdir()


def _is_held(descriptor: int, path: Path) -> bool:
    """Return whether this process holds the file now, and it is the one that others find there."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):  # Windows, or a file system without locks
        return True
    return path.exists() and os.path.samestat(os.fstat(descriptor), path.stat())


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
class Candidate:
    """A file that may be laid out, or was.

    is_plain: its name says of which exercise it is, and nothing else. rank: 1 where the name says it, 2 where it also lies where
    the course's repository has it. state: what became of it.
    """

    student: str
    assignment: Assignment
    stem: str
    ending: str
    content: bytes
    origin: Origin
    is_plain: bool
    rank: int
    state: State = State.NEW

    @property
    def path(self) -> str:
        """Where it goes, within OUT."""
        return f"{self.student}/{self.assignment.id}/{self.stem}{self.ending}"

    @property
    def age(self) -> tuple[float, float, str]:
        """By which the newest of several attempts is the last."""
        return (self.origin.order, self.origin.modified, self.origin.path)


def lay_out(exercises: Iterable[Sequence[Candidate]], out: Path, memory: Memory) -> list[Candidate]:
    """Lay out one student's attempts, those at each exercise together, and return what became of each. Raises CourseFault.

    The newest attempt wins. Of a script and a notebook both stay where they are of one download; else the newer alone.
    """
    done, rows, writes = list[Candidate](), list[list[object]](), list[Callable[[], object]]()
    for candidates in exercises:
        ordered = sorted(candidates, key=lambda c: c.age)
        newest, latest = {each.ending: each for each in ordered}, ordered[-1]
        for each in ordered:
            last, known = newest[each.ending], memory.files.get(each.path)
            is_old = each is not last or latest.origin.supersedes(each.origin)
            state = State.OLDER if is_old else _state(each, out, memory)
            if each is last or each.origin.digest != last.origin.digest:
                done.append(replace(each, state=state))
            is_known = known and known.digest == each.origin.digest and known.is_newer_than(each.origin)
            if state in (State.NEW, State.REPLACED):
                writes.append(partial(write_whole, out / each.path, each.content))
            elif state is not State.SAME or known == each.origin or is_known:
                continue
            rows.append(["file", each.path, each.origin])
        for other in (replace(latest, ending=ending) for ending in ENDINGS if ending not in newest):
            known, target = memory.files.get(other.path), out / other.path
            if known is None or not latest.origin.supersedes(known):
                continue
            refuse_links(out, target)
            if target.is_file() and digest_of(target.read_bytes()) in memory.earlier.get(other.path, {}):
                rows.append(["file", other.path, None])
                writes.append(target.unlink)
                done.append(replace(other, origin=known, state=State.SUPERSEDED))
    memory.note(*rows)
    folders = {(out / each.path).parent for each in done}
    writes += [path.unlink for folder in folders for path in folder.glob("*.partial")]  # of a run that was killed
    for write in writes:
        write()
    return done


def _state(candidate: Candidate, out: Path, memory: Memory) -> State:
    """Return what is to become of a file, beside what is there. Raises CourseFault for a link."""
    target, origin = out / candidate.path, candidate.origin
    refuse_links(out, target)
    others = (memory.files.get(replace(candidate, ending=e).path) for e in ENDINGS if e != candidate.ending)
    if any(other and other.supersedes(origin) for other in others):
        return State.OLDER
    if not target.exists():
        return State.NEW
    there = digest_of(target.read_bytes()) if target.is_file() else ""
    known = memory.earlier.get(candidate.path, {}).get(there)
    if there == origin.digest:
        return State.SAME
    if known is None:
        return State.BY_HAND
    return State.REPLACED if origin.is_newer_than(known) else State.OLDER


def refuse_links(out: Path, target: Path) -> None:
    """Raise CourseFault where a link stands on the way to this file: it could lead anywhere."""
    for path in (target, *(path for path in target.parents if path.is_relative_to(out) and path != out)):
        if path.is_symlink():
            raise CourseFault(f"{path} is a link, and nothing is written through it. Next: give --out another folder")


def tell_apart(
    candidates: Sequence[Candidate], out: Path, memory: Memory, reading: Reading
) -> tuple[list[Candidate], list[Candidate], list[str]]:
    """Tell one student's files of one exercise apart, scripts and notebooks each for themselves.

    The platform's order is a rule, and so is the time where files were not written at once: what unpacks or copies them writes them
    all in the same minute. Of the rest, what has nothing written in it does not count, nor does a file without the exercise's
    name beside one that has it, nor a copy beside the file in exercises/ of a whole repository; then a person's choice counts.
    Returns what can be laid out, what became of others already, and sentences on those that nothing tells apart.
    """
    clear, laid, unclear = list[Candidate](), list[Candidate](), list[str]()
    for ending in sorted({candidate.ending for candidate in candidates}, reverse=True):
        ordered = sorted((c for c in candidates if c.ending == ending), key=lambda c: c.age)
        last = ordered[-1].origin
        rivals = [c for c in ordered if (c.origin.platform, c.origin.order) == (last.platform, last.order)]
        rivals = [c for c in rivals if last.modified - c.origin.modified < APART]
        if len(digests(rivals)) < 2:
            clear += ordered
            continue
        sources = [reading.source(each.ending, each.content) for each in rivals]
        left = [c for c, text in zip(rivals, sources, strict=True) if text is None or not is_unwritten(text)] or rivals
        best = max(each.rank for each in left)
        left = [candidate for candidate in left if candidate.rank == best]
        target = out / rivals[0].path
        # What an earlier run put there was chosen by nobody.
        is_by_hand = not target.is_symlink() and target.is_file() and rivals[0].path not in memory.files
        there = digest_of(target.read_bytes()) if is_by_hand else ""
        if len(digests(left)) == 1:
            clear += [c for c in ordered if c not in rivals or c is left[-1]]
            laid += [replace(c, state=State.OTHER) for c in rivals if c is not left[-1]]
        elif chosen := next((rival for rival in rivals if rival.origin.digest == there), None):
            laid += [replace(c, state=State.SAME if c is chosen else State.OTHER) for c in ordered]
        else:
            said = f"{paths_of(rivals)} are of the same exercise, and nothing says which of them counts"
            next_ = f"Next: copy that one to {target}, then the same command again"
            unclear.append(f"{last.download}: {said}. {next_}")
    return clear, laid, unclear


def paths_of(candidates: Sequence[Candidate]) -> str:
    """Return where they come from, for a sentence."""
    paths = [c.origin.path for c in candidates[:MOST_PATHS]]
    return " and ".join([*paths, f"{len(candidates) - MOST_PATHS} more"][: len(candidates)])


def digest_of(content: bytes) -> str:
    """Return the digest by which a file is known again."""
    return hashlib.sha256(content).hexdigest()


def digests(candidates: Iterable[Candidate]) -> set[str]:
    """Return the contents that these have, by their digests."""
    return {candidate.origin.digest for candidate in candidates}
