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
from ..course.course_yaml import read_moment
from ..errors import CourseFault
from ..files import KeptContents, digest_of, naming, write_whole
from ..result import NOT_AS_IT_IS, HandedIn
from . import ENDINGS, Unreadable, read_text
from .find import (
    NotGraded,
    Submission,
    closed_in,
    find_submissions,
    is_student,
    plain,
    printable_name,
)
from .which_exercise import Exercises, place_of

NAME = ".collected.jsonl"
MOST_PATHS = 4  # in one sentence
APART = 60  # seconds: files whose times are nearer were copied or unpacked together
TIMESTAMP = "timestamp.txt"
MARKS_LATE = ("Canvas",)  # what such a platform does not call late was in time


@contextmanager
def folder_lock(lock: Path, busy_message: str) -> Iterator[None]:
    """Hold a folder for one process, by a file in it, until the process ends in any way.

    An empty folder goes at the end.

    Where there are no such locks, as on Windows, nothing is held. busy_message: what CourseFault
    says where another process, which is named in place of {}, holds it.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    with naming(lock):
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    with os.fdopen(descriptor, "r+") as file:
        if not _is_held(descriptor, lock):
            raise CourseFault(
                busy_message.replace("{}", f"process {file.read(20).strip() or 'unknown'}", 1)
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
    """The origin of a file. order: as its platform orders attempts.

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

    def is_newer_than(self, origin: Origin) -> bool:
        """Return whether this is a later attempt: by the platform's order where both are of one
        platform, else by time.
        """
        if self.platform == origin.platform and self.order != origin.order:
            return self.order > origin.order
        return self.modified > origin.modified

    def with_time_of(self, remembered: Origin | None) -> Origin:
        """Return this with the time that an earlier run knew of the very same attempt."""
        if self.handed_in or remembered is None:
            return self
        for name in ("platform", "order", "modified", "digest"):
            if getattr(self, name) != getattr(remembered, name):
                return self
        return self.model_copy(update={"handed_in": remembered.handed_in})

    def supersedes(self, origin: Origin) -> bool:
        """Return whether a file of the other kind counts no more: a later download holds this
        one.
        """
        return self.download != origin.download and self.is_newer_than(origin)


@dataclass
class IntakeJournal:
    """The files that runs of `course collect` have laid out.

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


def read_memory(out: Path) -> IntakeJournal:
    """Return what is remembered; nothing in a new folder. Raises CourseFault."""
    memory = IntakeJournal(out / NAME)
    if memory.journal.is_symlink():
        raise CourseFault(f"{memory.journal} is a link. Next: give --out another folder")
    try:
        for row in rows_of(memory.journal):
            memory.remember(row)
    except (OSError, ValueError, RecursionError):
        problem = f"{memory.journal} cannot be read, or is of another version"
        raise CourseFault(
            f"{problem}. Next: course collect DOWNLOAD --out NEW, a new folder"
        ) from None
    return memory


class State(StrEnum):
    """The outcome for a file."""

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
    """The outcome for students' files.

    contents: those of all candidates. unclear: what nothing tells apart, so that none is taken:
        download, files, target.
    """

    out: Path
    memory: IntakeJournal
    contents: KeptContents
    candidates: list[Candidate] = field(default_factory=list)
    unclear: list[tuple[str, str, Path]] = field(default_factory=list)

    def lay_out(self, candidates: Iterable[Candidate]) -> None:
        """Lay out one student's attempts. Raises CourseFault.

        The newest attempt wins. Of a script and a notebook both stay where they are of one
        download; else the newer alone.
        """
        groups, rows, folders = defaultdict[str, list[Candidate]](list), list[object](), set[Path]()
        writes = list[Callable[[], object]]()
        for candidate in sorted(
            candidates, key=lambda c: (c.origin.order, c.origin.modified, c.origin.path)
        ):
            groups[candidate.stem].append(candidate)
        for latest, ending in (
            (group[-1], ending) for group in groups.values() for ending in ENDINGS
        ):
            versions = [
                candidate for candidate in groups[latest.stem] if candidate.ending == ending
            ]
            target = versions[-1] if versions else replace(latest, ending=ending)
            path, recorded = self.out / target.path, self.memory.files.get(target.path)
            refuse_links(self.out, path)
            folders.add(path.parent)
            disk_digest = (
                digest_of(path.read_bytes()) if path.is_file() else "no file" * path.exists()
            )
            if (
                not versions
                and recorded
                and latest.origin.supersedes(recorded)
                and disk_digest in self._earlier(target)
            ):
                self.candidates.append(replace(target, origin=recorded, state=State.SUPERSEDED))
                rows.append(["file", target.path, None])
                writes.append(path.unlink)
            newest = self._newest(versions, latest, disk_digest) if versions else None
            if newest is None:
                continue
            origin = newest.origin.with_time_of(recorded)
            is_written = newest.state in (State.NEW, State.REPLACED)
            if is_written:
                writes.append(partial(self._write, path, origin.digest))
            is_known = recorded is not None and (
                recorded == origin or recorded.is_newer_than(origin)
            )
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

    def _newest(
        self, versions: Sequence[Candidate], latest: Candidate, disk_digest: str
    ) -> Candidate | None:
        """Return which of these candidates for one path counts, and what becomes of it; None where
        nothing says which.
        """
        origin, earlier = versions[-1].origin, self._earlier(versions[-1])
        rivals = [
            candidate
            for candidate in versions
            if (candidate.origin.platform, candidate.origin.order)
            == (origin.platform, origin.order)
        ]
        rivals = [
            candidate for candidate in rivals if origin.modified - candidate.origin.modified < APART
        ]
        best = max(candidate.rank for candidate in rivals)
        rivals = [candidate for candidate in rivals if candidate.rank == best]
        last, path = rivals[-1], self.out / versions[-1].path
        if any(candidate.origin.digest != last.origin.digest for candidate in rivals):
            # What an earlier run put there was chosen by nobody.
            chosen = [
                candidate
                for candidate in rivals
                if candidate.origin.digest == disk_digest not in earlier
            ]
            if chosen:
                self.candidates += [
                    replace(candidate, state=State.SAME if candidate in chosen else State.BY_HAND)
                    for candidate in versions
                ]
            else:
                self.unclear.append((last.origin.download, paths_of(rivals), path))
            return None
        sibling_origins = (
            self.memory.files.get(replace(last, ending=ending).path)
            for ending in ENDINGS
            if ending != last.ending
        )
        if any(
            competitor and competitor.supersedes(last.origin)
            for competitor in (latest.origin, *sibling_origins)
        ):
            state = State.OLDER
        elif disk_digest in ("", last.origin.digest):
            state = State.SAME if disk_digest else State.NEW
        elif disk_digest not in earlier:
            state = State.BY_HAND
        else:
            state = (
                State.REPLACED if last.origin.is_newer_than(earlier[disk_digest]) else State.OLDER
            )
        newest = replace(last, state=state)
        self.candidates += [
            replace(candidate, state=State.OLDER)
            for candidate in versions
            if candidate.origin.digest != last.origin.digest
        ]
        self.candidates.append(newest)
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
    not_graded: list[NotGraded]
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
    submissions, not_graded = find_submissions(course, submitted)
    misplaced = _misplaced(course, submissions, not_graded)
    if student:
        submissions, not_graded = (
            [submission for submission in submissions if submission.student == student],
            [],
        )
        if not submissions and student not in {name for name, _ in misplaced}:
            raise CourseFault(
                f"{submitted} has nothing of {student}. Next: course grade … --only "
                "STUDENT/EXERCISE, as in results/"
            )
    memory = read_memory(submitted)
    closed = {
        submission: tuple(
            printable_name(str(path.relative_to(submitted))) for path in closed_in(submission)
        )
        for submission in submissions
    }
    unread = {submission: names for submission, names in closed.items() if names}
    for name, by_assignment in memory.not_readable.items():
        for course_assignment in (
            course.assignments if is_student(name) and student in ("", name) else ()
        ):
            if by_assignment.get(course_assignment.id) and not is_opened(
                submitted, name, course_assignment.id, memory
            ):
                unread[
                    Submission(name, course_assignment, submitted / name / course_assignment.id)
                ] = tuple(map(printable_name, by_assignment[course_assignment.id]))
    # What cannot be read is told of its exercises, and not once more as an empty folder.
    unread_paths = {
        f"{submission.student}/{submission.assignment.id}"
        for submission in unread
        if not closed.get(submission)
    }
    for (name, id_), names in misplaced.items():
        if student in ("", name):
            assignment = next(
                assignment for assignment in course.assignments if assignment.id == id_
            )
            submission = Submission(name, assignment, submitted / name / id_)
            unread[submission] = (*unread.get(submission, ()), *names)
    submissions = sorted(
        {*submissions, *unread},
        key=lambda submission: (
            submission.student,
            course.assignments.index(submission.assignment),
        ),
    )
    elsewhere = {
        assignment.id for assignment in course.assignments if assignment not in assignments
    }
    not_graded = [
        o
        for o in not_graded
        if o.path not in unread_paths and not elsewhere.intersection(o.path.split("/")[1:2])
    ]
    selected = [submission for submission in submissions if submission.assignment in assignments]
    if exercises:
        selected = [
            submission
            for submission in selected
            if any(exercise.id in exercises for exercise in submission.assignment.exercises)
        ]
    return ToGrade(selected, not_graded, unread, handed_in(submissions, memory))


def _misplaced(
    course: Course, submissions: Sequence[Submission], not_graded: Sequence[NotGraded]
) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return what students handed in under a name or in a place that is not graded, by student and
    assignment.

    What lies beside the folders of assignments is of the assignment that its name says; else it may
    be of each one of which somebody has handed in something, and where nobody has, of each.
    """
    by_name = {
        name: assignment.id
        for assignment in course.assignments
        for name in (plain(assignment.id), plain(assignment.title))
    }
    submitted_ids = {submission.assignment.id for submission in submissions} or {
        assignment.id for assignment in course.assignments
    }
    exercises, misplaced = Exercises(course), defaultdict[tuple[str, str], list[str]](list)
    for entry in not_graded:
        student, _, inner_path = entry.path.partition("/")
        folder = inner_path.partition("/")[0]
        is_unread_work = entry.is_work and exercises.may_be_work(entry.path)
        if not (is_unread_work and folder and is_student(student)):
            continue
        exercise = exercises.named(folder)
        if folder in {assignment.id for assignment in course.assignments}:
            ids = {folder}
        elif plain(folder) in by_name:
            ids = {by_name[plain(folder)]}
        elif exercise is not None:
            ids = {place_of(exercise)[0].id}
        else:
            ids = submitted_ids
        for id_ in ids:
            misplaced[student, id_].append(entry.path + NOT_AS_IT_IS)
    return {where: tuple(names) for where, names in misplaced.items()}


def is_opened(out: Path, student: str, assignment: str, memory: IntakeJournal) -> bool:
    """Return whether somebody has put an attempt there by hand, in place of what cannot be read."""
    files = (path for ending in ENDINGS for path in (out / student / assignment).glob(f"*{ending}"))
    return any(path.relative_to(out).as_posix() not in memory.earlier for path in files)


def handed_in(
    submissions: Sequence[Submission], memory: IntakeJournal
) -> dict[Submission, HandedIn]:
    """Return when each was handed in; who is not in it, nobody knows of.

    nbgrader's own file counts, which means UTC without a zone; else the latest time of the files
    that were collected; else what a platform says that marks what is late.
    """
    by_submission = {}
    for submission in submissions:
        start, stamp = f"{submission.student}/{submission.assignment.id}/", None
        origins = [origin for path, origin in memory.files.items() if path.startswith(start)]
        times = [time for origin in origins if (time := read_moment(origin.handed_in))]
        late = [origin for origin in origins if origin.late]
        with suppress(Unreadable):
            stamp = read_moment(read_text(submission.folder / TIMESTAMP, 1), "UTC")
        if stamp:
            by_submission[submission] = HandedIn(source=TIMESTAMP, time=stamp)
        elif origins and len(times) == len(origins):
            by_submission[submission] = HandedIn(source=origins[0].platform, time=max(times))
        elif late or (origins and all(origin.platform in MARKS_LATE for origin in origins)):
            by_submission[submission] = HandedIn(
                source=(late or origins)[0].platform, late=bool(late)
            )
    return by_submission
