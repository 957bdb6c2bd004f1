"""OUT/<student>/<assignment>/: files are written there, with a journal of where each came from, and
found there to be graded.

The rows of one student are written to the journal before the files. So a run that is killed at any
moment leaves no file that the next one does not know for its own, and the next one writes what is
missing.

When something was handed in, nbgrader's timestamp.txt says, or what `course collect` remembers. A
file's own time is never taken: copying, unpacking and mending change it. For what cannot be read
nobody loses points.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from ..course import Assignment, Course
from ..course.dates import read_moment
from ..errors import CourseFault
from ..result import NOT_AS_IT_IS, HandedIn
from ..whole import naming, write_whole
from . import ENDINGS, Unreadable, read_text
from .find import NotGraded, Submission, closed_in, find_submissions, is_student, plain, shown
from .kept_contents import KeptContents, digest_of
from .which_exercise import Exercises, place_of

NAME = ".collected.jsonl"
MOST_PATHS = 4  # in one sentence
APART = 60  # seconds: files whose times are nearer were copied or unpacked together
TIMESTAMP = "timestamp.txt"
MARKS_LATE = ("Canvas",)  # what such a platform does not call late was in time


@contextmanager
def held(lock: Path, taken: str) -> Iterator[None]:
    """Hold a folder for one process, by a file in it, until the process ends in any way.

    An empty folder goes at the end.

    Where there are no such locks, as on Windows, nothing is held. taken: what CourseFault says
    where another process, which is named in place of {}, holds it.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    with naming(lock):
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    with os.fdopen(descriptor, "r+") as file:
        if not _is_held(descriptor, lock):
            raise CourseFault(
                taken.replace("{}", f"process {file.read(20).strip() or 'unknown'}", 1)
            )
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        try:
            yield
        finally:
            # Windows removes no open file, and nobody a folder with results
            with suppress(OSError):
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


def append(path: Path, *rows: object) -> None:
    """Write rows at the end of a journal, and wait for the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with naming(path), path.open("a", encoding="utf-8") as file:
        # The first newline ends a line that a kill or a power cut left incomplete.
        file.writelines(f"\n{json.dumps(row)}\n" for row in rows)
        file.flush()
        os.fsync(file.fileno())


def rows_of(path: Path) -> Iterator[object]:
    """Yield the rows of a journal, without what is incomplete; none where there is no file.

    Raises OSError, RecursionError.
    """
    for line in (
        path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else ()
    ):
        with suppress(ValueError):
            yield json.loads(line)


class Origin(BaseModel):
    """Where a file came from. order: as its platform orders attempts.

    handed_in: when, in ISO 8601, where the platform says. late: whether it says late. named: what
        the platform called it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    platform: str
    order: float = 0.0
    modified: float = 0.0
    digest: str = ""
    download: str = ""
    path: str = ""
    handed_in: str = ""
    late: bool = False
    named: str = ""

    def is_newer_than(self, other: Origin) -> bool:
        """Return whether this is a later attempt: by the platform's order where both are of one
        platform, else by time.
        """
        if self.platform == other.platform and self.order != other.order:
            return self.order > other.order
        return self.modified > other.modified

    def supersedes(self, other: Origin) -> bool:
        """Return whether a file of the other kind counts no more: a later download holds this
        one.
        """
        return self.download != other.download and self.is_newer_than(other)


@dataclass
class Memory:
    """What runs of `course collect` have laid out.

    files: by path. earlier: every origin that a path had, by digest. folders: whose each
    is. not_readable: names of what was handed in and cannot be read, by student and assignment.
    """

    journal: Path
    files: dict[str, Origin] = field(default_factory=dict)
    earlier: dict[str, dict[str, Origin]] = field(default_factory=dict)
    folders: dict[str, str] = field(default_factory=dict)
    not_readable: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    def note(self, *rows: object) -> None:
        """Remember rows, and write them to the journal before anything else happens.

        A row is ["file", its path, the fields of its Origin or None], ["folder", its name, whose it
        is], or ["not readable", student, assignment, names].
        """
        for row in rows:
            self.remember(row)
        if rows:
            append(self.journal, *rows)

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
    memory = Memory(out / NAME)
    if memory.journal.is_symlink():
        raise CourseFault(f"{memory.journal} is a link. Next: give --out another folder")
    try:
        for row in rows_of(memory.journal):
            memory.remember(row)
    except (OSError, ValueError, RecursionError):
        said = f"{memory.journal} cannot be read, or is of another version"
        raise CourseFault(
            f"{said}. Next: course collect DOWNLOAD --out NEW, a new folder"
        ) from None
    return memory


class State(StrEnum):
    """What became of a file."""

    NEW = "new"
    SAME = "as before"
    REPLACED = "replaced, for it is newer"
    OLDER = "not taken: not the newest attempt"
    BY_HAND = "not taken: what is there was not collected, or was changed since"
    SUPERSEDED = "removed: a newer attempt is of the other kind"


@dataclass(frozen=True)
class Candidate:
    """A file that may be laid out, or was.

    Its content is kept under its origin's digest: of a class they are too many to hold.

    rank: 1 where its name says of which exercise it is, and nothing else; 2 where it also lies
    where the course's repository has it. state: what became of it.
    """

    student: str
    assignment: Assignment
    stem: str
    ending: str
    origin: Origin
    rank: int
    state: State = State.NEW

    @property
    def path(self) -> str:
        """Where it goes, within OUT."""
        return f"{self.student}/{self.assignment.id}/{self.stem}{self.ending}"


@dataclass
class LayingOut:
    """What becomes of students' files.

    contents: those of all candidates. unclear: what nothing tells apart, so that none is taken:
        download, files, target.
    """

    out: Path
    memory: Memory
    contents: KeptContents
    done: list[Candidate] = field(default_factory=list)
    unclear: list[tuple[str, str, Path]] = field(default_factory=list)

    def lay_out(self, candidates: Iterable[Candidate]) -> None:
        """Lay out one student's attempts. Raises CourseFault.

        The newest attempt wins. Of a script and a notebook both stay where they are of one
        download; else the newer alone.
        """
        groups, rows, folders = defaultdict[str, list[Candidate]](list), list[object](), set[Path]()
        writes = list[Callable[[], object]]()
        for each in sorted(
            candidates, key=lambda c: (c.origin.order, c.origin.modified, c.origin.path)
        ):
            groups[each.stem].append(each)
        for latest, ending in (
            (group[-1], ending) for group in groups.values() for ending in ENDINGS
        ):
            own = [each for each in groups[latest.stem] if each.ending == ending]
            target = own[-1] if own else replace(latest, ending=ending)
            path, known = self.out / target.path, self.memory.files.get(target.path)
            refuse_links(self.out, path)
            folders.add(path.parent)
            there = digest_of(path.read_bytes()) if path.is_file() else "no file" * path.exists()
            if (
                not own
                and known
                and latest.origin.supersedes(known)
                and there in self._earlier(target)
            ):
                self.done.append(replace(target, origin=known, state=State.SUPERSEDED))
                rows.append(["file", target.path, None])
                writes.append(path.unlink)
            newest = self._newest(own, latest, there) if own else None
            if newest is None:
                continue
            origin, is_written = newest.origin, newest.state in (State.NEW, State.REPLACED)
            if is_written:
                writes.append(partial(self._write, path, origin.digest))
            is_known = known is not None and (known == origin or known.is_newer_than(origin))
            if is_written or (newest.state is State.SAME and not is_known):
                rows.append(["file", target.path, origin.model_dump(exclude_defaults=True)])
        self.memory.note(*rows)
        # What is partial is of a run that was killed.
        for write in [
            *writes,
            *(path.unlink for folder in folders for path in folder.glob("*.partial")),
        ]:
            write()

    def _write(self, path: Path, digest: str) -> None:
        write_whole(path, self.contents.read(digest))

    def _newest(self, own: Sequence[Candidate], latest: Candidate, there: str) -> Candidate | None:
        """Return which of these candidates for one path counts, and what becomes of it; None where
        nothing says which.
        """
        origin, earlier = own[-1].origin, self._earlier(own[-1])
        rivals = [
            each
            for each in own
            if (each.origin.platform, each.origin.order) == (origin.platform, origin.order)
        ]
        rivals = [each for each in rivals if origin.modified - each.origin.modified < APART]
        best = max(each.rank for each in rivals)
        rivals = [each for each in rivals if each.rank == best]
        last, path = rivals[-1], self.out / own[-1].path
        if any(each.origin.digest != last.origin.digest for each in rivals):
            # What an earlier run put there was chosen by nobody.
            chosen = [each for each in rivals if each.origin.digest == there not in earlier]
            if chosen:
                self.done += [
                    replace(each, state=State.SAME if each in chosen else State.BY_HAND)
                    for each in own
                ]
            else:
                self.unclear.append((last.origin.download, paths_of(rivals), path))
            return None
        others = (
            self.memory.files.get(replace(last, ending=ending).path)
            for ending in ENDINGS
            if ending != last.ending
        )
        if any(other and other.supersedes(last.origin) for other in (latest.origin, *others)):
            state = State.OLDER
        elif there in ("", last.origin.digest):
            state = State.SAME if there else State.NEW
        elif there not in earlier:
            state = State.BY_HAND
        else:
            state = State.REPLACED if last.origin.is_newer_than(earlier[there]) else State.OLDER
        newest = replace(last, state=state)
        self.done += [
            replace(each, state=State.OLDER)
            for each in own
            if each.origin.digest != last.origin.digest
        ]
        self.done.append(newest)
        return newest

    def _earlier(self, candidate: Candidate) -> dict[str, Origin]:
        return self.memory.earlier.get(candidate.path, {})


def refuse_links(out: Path, target: Path) -> None:
    """Raise CourseFault where a link stands on the way to this file: it could lead anywhere."""
    for path in (
        target,
        *(path for path in target.parents if path.is_relative_to(out) and path != out),
    ):
        if path.is_symlink():
            raise CourseFault(
                f"{path} is a link, and nothing is written through it. Next: give --out another "
                "folder"
            )


def paths_of(candidates: Sequence[Candidate]) -> str:
    """Return where they come from, for a sentence."""
    paths = [c.origin.path for c in candidates[:MOST_PATHS]]
    return " and ".join([*paths, f"{len(candidates) - MOST_PATHS} more"][: len(candidates)])


@dataclass(frozen=True)
class ToGrade:
    """What one run grades.

    submissions: ordered by student and assignment. others: what lies there and is not graded.
    not_readable: names of what was handed in and has no points, because it cannot be read, or is in
        `others`.
    handed_in: when, as far as anything says.
    """

    submissions: list[Submission]
    others: list[NotGraded]
    not_readable: dict[Submission, tuple[str, ...]]
    handed_in: dict[Submission, HandedIn]


def to_grade(
    course: Course,
    submitted: Path,
    assignments: Sequence[Assignment],
    exercises: Collection[str],
    student: str = "",
) -> ToGrade:
    """Return what is there of these assignments.

    Raises CourseFault, also where the student has nothing there.

    exercises: ids of those that are graded; empty: all. student: who alone is graded; "" for
        everybody.
    """
    found, others = find_submissions(course, submitted)
    misplaced = _misplaced(course, found, others)
    if student:
        found, others = [each for each in found if each.student == student], []
        if not found and student not in {name for name, _ in misplaced}:
            raise CourseFault(
                f"{submitted} has nothing of {student}. Next: course grade … --only "
                "STUDENT/EXERCISE, as in results/"
            )
    memory = read_memory(submitted)
    closed = {
        each: tuple(shown(str(path.relative_to(submitted))) for path in closed_in(each))
        for each in found
    }
    unread = {each: names for each, names in closed.items() if names}
    for name, kept in memory.not_readable.items():
        for each in course.assignments if is_student(name) and student in ("", name) else ():
            if kept.get(each.id) and not is_opened(submitted, name, each.id, memory):
                unread[Submission(name, each, submitted / name / each.id)] = tuple(
                    map(shown, kept[each.id])
                )
    # What cannot be read is told of its exercises, and not once more as an empty folder.
    told = {f"{each.student}/{each.assignment.id}" for each in unread if not closed.get(each)}
    for (name, id_), names in misplaced.items():
        if student in ("", name):
            assignment = next(each for each in course.assignments if each.id == id_)
            submission = Submission(name, assignment, submitted / name / id_)
            unread[submission] = (*unread.get(submission, ()), *names)
    found = sorted(
        {*found, *unread},
        key=lambda each: (each.student, course.assignments.index(each.assignment)),
    )
    elsewhere = {each.id for each in course.assignments if each not in assignments}
    others = [
        o
        for o in others
        if o.path not in told and not elsewhere.intersection(o.path.split("/")[1:2])
    ]
    wanted = [each for each in found if each.assignment in assignments]
    if exercises:
        wanted = [
            each for each in wanted if any(one.id in exercises for one in each.assignment.exercises)
        ]
    return ToGrade(wanted, others, unread, handed_in(found, memory))


def _misplaced(
    course: Course, found: Sequence[Submission], others: Sequence[NotGraded]
) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return what students handed in under a name or in a place that is not graded, by student and
    assignment.

    What lies beside the folders of assignments is of the assignment that its name says; else it may
    be of each one of which somebody has handed in something, and where nobody has, of each.
    """
    by_name = {
        name: each.id for each in course.assignments for name in (plain(each.id), plain(each.title))
    }
    present = {each.assignment.id for each in found} or {each.id for each in course.assignments}
    exercises, misplaced = Exercises(course), defaultdict[tuple[str, str], list[str]](list)
    for other in others:
        student, _, rest = other.path.partition("/")
        folder = rest.partition("/")[0]
        is_unread_work = other.is_work and exercises.may_be_work(other.path)
        if not (is_unread_work and folder and is_student(student)):
            continue
        exercise = exercises.named(folder)
        if folder in {each.id for each in course.assignments}:
            ids = {folder}
        elif plain(folder) in by_name:
            ids = {by_name[plain(folder)]}
        elif exercise is not None:
            ids = {place_of(exercise)[0].id}
        else:
            ids = present
        for id_ in ids:
            misplaced[student, id_].append(other.path + NOT_AS_IT_IS)
    return {where: tuple(names) for where, names in misplaced.items()}


def is_opened(out: Path, student: str, assignment: str, memory: Memory) -> bool:
    """Return whether somebody has put an attempt there by hand, in place of what cannot be read."""
    files = (path for ending in ENDINGS for path in (out / student / assignment).glob(f"*{ending}"))
    return any(path.relative_to(out).as_posix() not in memory.earlier for path in files)


def handed_in(submissions: Sequence[Submission], memory: Memory) -> dict[Submission, HandedIn]:
    """Return when each was handed in; who is not in it, nobody knows of.

    nbgrader's own file counts, which means UTC without a zone; else the latest time of the files
    that were collected; else what a platform says that marks what is late.
    """
    found = {}
    for each in submissions:
        start, stamp = f"{each.student}/{each.assignment.id}/", None
        origins = [origin for path, origin in memory.files.items() if path.startswith(start)]
        times = [time for origin in origins if (time := read_moment(origin.handed_in))]
        late = [origin for origin in origins if origin.late]
        with suppress(Unreadable):
            stamp = read_moment(read_text(each.folder / TIMESTAMP, 1), "UTC")
        if stamp:
            found[each] = HandedIn(source=TIMESTAMP, time=stamp)
        elif origins and len(times) == len(origins):
            found[each] = HandedIn(source=origins[0].platform, time=max(times))
        elif late or (origins and all(origin.platform in MARKS_LATE for origin in origins)):
            found[each] = HandedIn(source=(late or origins)[0].platform, late=bool(late))
    return found
