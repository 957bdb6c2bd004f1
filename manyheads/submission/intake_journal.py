"""Write attempts to OUT/<student>/<assignment>/ with a journal, and read them for grading.

The journal names the origin of each file. The rows of one student are written to the journal before
the files. So if a run is killed at any moment, the next run recognises every file that was written,
and writes the missing ones.

The time of a hand-in comes from nbgrader's timestamp.txt or from the journal. A file's own time is
never used, because copying, unpacking and editing change it. For a file that cannot be read, the
student has no score instead of 0 points.
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
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from ..course import Assignment, Course
from ..course.course_yaml_schema import read_moment
from ..files import CourseFault, KeptContents, digest_of, name_in_error, write_whole
from ..result import NOT_AS_IT_IS, HandedIn
from . import ENDINGS, Unreadable, read_text
from .find_submitted_files import (
    Exercises,
    NotGraded,
    Submission,
    assignment_of_file,
    closed_in,
    find_submissions,
    is_student,
    plain,
    printable_name,
)

NAME = ".collected.jsonl"
MOST_PATHS = 4  # paths in one sentence
APART = 60  # seconds; files with closer times were copied or unpacked together
TIMESTAMP = "timestamp.txt"
NBGRADER_KIB = 1  # KiB of a file that nbgrader adds to a submission: it has one short line
MARKS_LATE = ("Canvas",)  # a hand-in that such a platform does not mark as late was in time


@contextmanager
def folder_lock(lock: Path, busy_message: str) -> Iterator[None]:
    """Reserve a folder for this process, by a lock on a file in it.

    The folder is created if necessary. The lock ends with the process, even if the process is
    killed. At the end of the context the file is removed, and the folder too if it is empty. On
    systems without such locks, such as Windows, the folder is not reserved.

    Args:
        lock: the file.
        busy_message: the text of the error, with {} in place of the name of the other process.

    Raises:
        CourseFault: another process holds the lock.
        OSError: the folder or the file cannot be created.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    with name_in_error(lock):
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    with os.fdopen(descriptor, "r+") as file:
        if not _take_lock(descriptor, lock):
            raise CourseFault(
                busy_message.replace("{}", f"process {file.read(20).strip() or 'unknown'}", 1)
            )
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        try:
            yield
        finally:
            # Windows cannot remove an open file, and a folder with results stays.
            with suppress(OSError):
                lock.unlink()
                lock.parent.rmdir()


def _take_lock(descriptor: int, path: Path) -> bool:
    """Lock the file, and return whether this process holds the lock and the path is still the file.

    On a system without such locks, return True.
    """
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):  # Windows, or a file system without locks
        return True
    return path.exists() and os.path.samestat(os.fstat(descriptor), path.stat())


def append(path: Path, *rows: object) -> None:
    """Write each row as a line of JSON at the end of a journal, and wait for the disk.

    The folder and the journal are created if necessary. Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with name_in_error(path), path.open("a", encoding="utf-8") as file:
        # The first newline ends a line that a kill or a power cut left incomplete.
        file.writelines(f"\n{json.dumps(row)}\n" for row in rows)
        file.flush()
        os.fsync(file.fileno())


def rows_of(path: Path) -> Iterator[object]:
    """Yield the rows of a journal, without lines that are no JSON.

    A run that was killed may have left such a line. A journal that does not exist has no rows.
    Raises OSError if the file cannot be read.
    """
    for line in (
        path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else ()
    ):
        # for too many brackets, the version of Python decides which one is raised
        with suppress(ValueError, RecursionError):
            yield json.loads(line)


class Origin(BaseModel):
    """The origin of a file.

    Attributes:
        order: the position of the attempt in the platform's order.
        modified: the file's own time, in seconds since 1970; 0 if unknown.
        digest: the digest of the content.
        download: the name of the download, in a printable form.
        path: the path in the download, in a printable form.
        handed_in: the time in ISO 8601, if the platform gives one.
        late: whether the platform marks the hand-in as late.
        named: the platform's name of the file.
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
        """Return whether this attempt is later than the other one.

        If both come from the same platform, its order decides. If the platforms differ, or the
        positions in the order are the same, the files' own times decide.
        """
        if self.platform == origin.platform and self.order != origin.order:
            return self.order > origin.order
        return self.modified > origin.modified

    def with_time_of(self, remembered: Origin | None) -> Origin:
        """Return this origin with the time of hand-in that an earlier run recorded.

        Return it unchanged if it already has a time, or if `remembered` is the origin of another
        attempt: with another platform, order, time of the file, or digest.
        """
        if self.handed_in or remembered is None:
            return self
        for name in ("platform", "order", "modified", "digest"):
            if getattr(self, name) != getattr(remembered, name):
                return self
        return self.model_copy(update={"handed_in": remembered.handed_in})

    def supersedes(self, origin: Origin) -> bool:
        """Return whether a script of this origin replaces a notebook of that origin, or vice versa.

        It does if it is newer and comes from another download.
        """
        return self.download != origin.download and self.is_newer_than(origin)


@dataclass
class IntakeJournal:
    """The files that earlier runs of `course collect` wrote.

    Attributes:
        path: the file that holds all this.
        files: the origin of each file, by its path below OUT.
        earlier: every origin that a path ever had, by path and digest.
        folders: the key of the person to whom each student folder belongs.
        not_readable: names of files that cannot be read, by student and assignment.
    """

    path: Path
    files: dict[str, Origin] = field(default_factory=dict)
    earlier: dict[str, dict[str, Origin]] = field(default_factory=dict)
    folders: dict[str, str] = field(default_factory=dict)
    not_readable: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    def note(self, *rows: object) -> None:
        """Remember rows, and write them to the journal before anything else happens.

        A row is ["file", path, fields of the Origin, or None for a file that was removed],
        ["folder", name, key of the person], or ["not readable", student, assignment, names].
        """
        for row in rows:
            self.remember(row)
        if rows:
            append(self.path, *rows)

    def remember(self, row: object) -> None:
        """Update the fields with a row of the journal. Raises ValueError if its form is unknown."""
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


def read_journal(out: Path) -> IntakeJournal:
    """Return the journal of a folder, which is empty for a new folder.

    Raises:
        CourseFault: the journal is a link, cannot be read, or has a row of an unknown form.
    """
    journal = IntakeJournal(out / NAME)
    if journal.path.is_symlink():
        raise CourseFault(f"{journal.path} is a link. Next: give --out another folder")
    try:
        for row in rows_of(journal.path):
            journal.remember(row)
    except (OSError, ValueError):
        problem = f"{journal.path} cannot be read, or is of another version"
        raise CourseFault(
            f"{problem}. Next: course collect DOWNLOAD --out NEW, a new folder"
        ) from None
    return journal


class State(StrEnum):
    """The outcome for a file."""

    NEW = "new"
    SAME = "as before"
    REPLACED = "replaced, for it is newer"
    OLDER = "not taken: not the newest attempt"
    BY_HAND = "not taken: what is there was not collected, or was changed since"
    SUPERSEDED = "removed: a newer attempt is of the other kind"


@dataclass(frozen=True)
class IntakeCandidate:
    """A file that may be written to OUT, or was.

    Its content is in `KeptContents`, under the digest of its origin, because the files of a class
    do not fit in memory.

    Attributes:
        rank: 1 if the file has the name of an exercise, apart from an ending such as "(1)"; 2 if
            it also lies in the same folder as in the course's repository; 0 otherwise.
        state: the outcome for the file.
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
        """The path of the file below OUT."""
        return f"{self.student}/{self.assignment.id}/{self.stem}{self.ending}"


class UnclearFiles(NamedTuple):
    """Files that are equally likely to be one attempt, so that none is taken.

    Attributes:
        download: the name of their download.
        paths: their paths, as text.
        target: the path of the file that is missing.
    """

    download: str
    paths: str
    target: Path


@dataclass
class IntakeWriter:
    """Writes the attempts of students, and collects the outcome for each file.

    Attributes:
        contents: the contents of all candidates.
        candidates: the candidates that were considered, each with its final state.
        unclear: the groups of which no file is taken.
    """

    out: Path
    journal: IntakeJournal
    contents: KeptContents
    candidates: list[IntakeCandidate] = field(default_factory=list)
    unclear: list[UnclearFiles] = field(default_factory=list)

    def write_candidates(self, candidates: Iterable[IntakeCandidate]) -> None:
        """Write one student's attempts, and add the outcomes to `candidates` and `unclear`.

        The newest attempt wins. A script and a notebook of one exercise are both kept if they come
        from one download. Otherwise only the newer one is kept. A file that no run has written, or
        that was changed since, stays. The rows of the journal are written first. Then files are
        written and removed, also partial files of a run that was killed.

        Raises:
            CourseFault: a link stands on the way to a file, and nothing is written.
            OSError: a file or the journal cannot be written.
        """
        groups = defaultdict[str, list[IntakeCandidate]](list)
        rows = list[object]()
        folders = set[Path]()
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
            path = self.out / target.path
            recorded = self.journal.files.get(target.path)
            refuse_links(self.out, path)
            folders.add(path.parent)
            disk_digest = _digest_on_disk(path)
            if (
                not versions
                and recorded
                and latest.origin.supersedes(recorded)
                and disk_digest in self._earlier(target)
            ):
                self.candidates.append(replace(target, origin=recorded, state=State.SUPERSEDED))
                rows.append(["file", target.path, None])
                writes.append(path.unlink)
            newest = self._newest_candidate(versions, latest, disk_digest) if versions else None
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
        self.journal.note(*rows)
        # A run that was killed may have left partial files.
        for write in [
            *writes,
            *(path.unlink for folder in folders for path in folder.glob("*.partial")),
        ]:
            write()

    def _write(self, path: Path, digest: str) -> None:
        write_whole(path, self.contents.read(digest))

    def _newest_candidate(
        self, versions: Sequence[IntakeCandidate], latest: IntakeCandidate, disk_digest: str
    ) -> IntakeCandidate | None:
        """Return the candidate for one path that counts, with its state, and record all outcomes.

        The rivals are the candidates of the newest position in the platform's order with times less
        than APART seconds before the newest. Among these the highest rank counts. If rivals with
        this rank have different contents, return None: then a file that the instructor has put at
        the path decides, or the group is unclear.

        Args:
            versions: the candidates for the path, the newest last; at least one.
            latest: the newest candidate for the exercise, as script or notebook.
            disk_digest: the digest of the file at the path; "" if there is none.
        """
        origin = versions[-1].origin
        earlier = self._earlier(versions[-1])
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
        winner = rivals[-1]
        path = self.out / versions[-1].path
        if any(candidate.origin.digest != winner.origin.digest for candidate in rivals):
            # If no earlier run wrote the file on disk, the instructor has chosen this rival.
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
                self.unclear.append(UnclearFiles(winner.origin.download, paths_of(rivals), path))
            return None
        sibling_origins = (
            self.journal.files.get(replace(winner, ending=ending).path)
            for ending in ENDINGS
            if ending != winner.ending
        )
        if any(
            competitor and competitor.supersedes(winner.origin)
            for competitor in (latest.origin, *sibling_origins)
        ):
            state = State.OLDER
        elif disk_digest in ("", winner.origin.digest):
            state = State.SAME if disk_digest else State.NEW
        elif disk_digest not in earlier:
            state = State.BY_HAND
        else:
            state = (
                State.REPLACED if winner.origin.is_newer_than(earlier[disk_digest]) else State.OLDER
            )
        newest = replace(winner, state=state)
        self.candidates += [
            replace(candidate, state=State.OLDER)
            for candidate in versions
            if candidate.origin.digest != winner.origin.digest
        ]
        self.candidates.append(newest)
        return newest

    def _earlier(self, candidate: IntakeCandidate) -> dict[str, Origin]:
        return self.journal.earlier.get(candidate.path, {})


def _digest_on_disk(path: Path) -> str:
    """Return the digest of a file, "no file" for anything else at this path, and "" for nothing."""
    if path.is_file():
        return digest_of(path.read_bytes())
    return "no file" if path.exists() else ""


def refuse_links(out: Path, target: Path) -> None:
    """Raise CourseFault if this file, or a folder between `out` and it, is a link.

    A link could lead anywhere.
    """
    for path in (
        target,
        *(path for path in target.parents if path.is_relative_to(out) and path != out),
    ):
        if path.is_symlink():
            raise CourseFault(
                f"{path} is a link, and nothing is written through it. Next: give --out another "
                "folder"
            )


def paths_of(candidates: Sequence[IntakeCandidate]) -> str:
    """Return the paths in the download, joined by "and"; the number of those after MOST_PATHS."""
    paths = [c.origin.path for c in candidates[:MOST_PATHS]]
    return " and ".join([*paths, f"{len(candidates) - MOST_PATHS} more"][: len(candidates)])


@dataclass(frozen=True)
class ToGrade:
    """The input of one run of grading.

    Attributes:
        submissions: ordered by student and assignment.
        not_graded: other files and folders that lie there.
        not_readable: names of files that may be work, but cannot be read or are in `not_graded`.
            Their exercises have no score instead of 0 points.
        handed_in: the time of each submission, if known.
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
    """Return the submissions of these assignments in a folder, and the files that are not graded.

    Unreadable or misplaced work also gives a submission, even if its folder does not exist.

    Args:
        course: the course.
        submitted: the folder.
        assignments: the assignments to grade.
        exercises: the ids of the exercises to grade; empty for all. Only submissions of their
            assignments are returned.
        student: the only student to grade; "" for all. With a student, `not_graded` is empty.

    Raises:
        CourseFault: the folder has no entries, its journal cannot be read, or the student has no
            files there.
    """
    submissions, not_graded = find_submissions(course, submitted)
    misplaced = _misplaced_work(course, submissions, not_graded)
    if student:
        submissions = [submission for submission in submissions if submission.student == student]
        not_graded = []
        if not submissions and student not in {name for name, _ in misplaced}:
            raise CourseFault(
                f"{submitted} has nothing of {student}. Next: course grade … --only "
                "STUDENT/EXERCISE, as in results/"
            )
    journal = read_journal(submitted)
    closed = {
        submission: names
        for submission in submissions
        if (names := _closed_names(submission, submitted))
    }
    unread = dict(closed)
    for name, by_assignment in journal.not_readable.items():
        for course_assignment in (
            course.assignments if is_student(name) and student in ("", name) else ()
        ):
            if by_assignment.get(course_assignment.id) and not is_opened(
                submitted, name, course_assignment.id, journal
            ):
                unread[
                    Submission(name, course_assignment, submitted / name / course_assignment.id)
                ] = tuple(map(printable_name, by_assignment[course_assignment.id]))
    # Unreadable files are reported for their exercises, so their empty folder is not.
    unread_paths = {
        f"{submission.student}/{submission.assignment.id}"
        for submission in unread
        if submission not in closed
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
        entry
        for entry in not_graded
        if entry.path not in unread_paths and not elsewhere.intersection(entry.path.split("/")[1:2])
    ]
    selected = [submission for submission in submissions if submission.assignment in assignments]
    if exercises:
        graded = {
            exercise.assignment.id for exercise in course.exercises if exercise.id in exercises
        }
        selected = [submission for submission in selected if submission.assignment.id in graded]
    return ToGrade(selected, not_graded, unread, handed_in(submissions, journal))


def _closed_names(submission: Submission, submitted: Path) -> tuple[str, ...]:
    paths = (path.relative_to(submitted) for path in closed_in(submission))
    return tuple(printable_name(str(path)) for path in paths)


def _misplaced_work(
    course: Course, submissions: Sequence[Submission], not_graded: Sequence[NotGraded]
) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the paths of misplaced or misnamed work, by student and assignment.

    An entry in the folder of an assignment belongs to it. An entry beside these folders belongs to
    the assignment that its name shows, or whose exercise it shows. Otherwise it may belong to every
    assignment that has a submission of any student, or to every assignment if there is no
    submission at all.
    """
    by_name = {
        name: assignment.id
        for assignment in course.assignments
        for name in (plain(assignment.id), plain(assignment.title))
    }
    submitted_ids = {submission.assignment.id for submission in submissions} or {
        assignment.id for assignment in course.assignments
    }
    exercises = Exercises(course)
    misplaced = defaultdict[tuple[str, str], list[str]](list)
    for entry in not_graded:
        student, _, inner_path = entry.path.partition("/")
        folder = inner_path.partition("/")[0]
        is_unread_work = entry.is_work and exercises.may_be_work(entry.path)
        if not (is_unread_work and folder and is_student(student)):
            continue
        exercise = exercises.match_name(folder)
        if folder in {assignment.id for assignment in course.assignments}:
            ids = {folder}
        elif plain(folder) in by_name:
            ids = {by_name[plain(folder)]}
        elif exercise is not None:
            ids = {assignment_of_file(exercise)[0].id}
        else:
            ids = submitted_ids
        for id_ in ids:
            misplaced[student, id_].append(entry.path + NOT_AS_IT_IS)
    return {key: tuple(names) for key, names in misplaced.items()}


def is_opened(out: Path, student: str, assignment: str, journal: IntakeJournal) -> bool:
    """Return whether OUT/<student>/<assignment>/ has an attempt that no run has written.

    An instructor puts such a file there by hand, to replace files that cannot be read.
    """
    files = (path for ending in ENDINGS for path in (out / student / assignment).glob(f"*{ending}"))
    return any(path.relative_to(out).as_posix() not in journal.earlier for path in files)


def handed_in(
    submissions: Sequence[Submission], journal: IntakeJournal
) -> dict[Submission, HandedIn]:
    """Return the time of each submission, or whether it was late.

    The first known source counts:

    1. nbgrader's timestamp.txt, in which a time without a zone is UTC;
    2. the latest time of the collected files, if all have one;
    3. the mark for late hand-ins of a platform: late if one file has it, and in time if no file
       has it and all come from platforms that set it (MARKS_LATE).

    A submission without any of these has no entry.
    """
    by_submission = {}
    for submission in submissions:
        start = f"{submission.student}/{submission.assignment.id}/"
        stamp = None
        origins = [origin for path, origin in journal.files.items() if path.startswith(start)]
        times = [
            (time, origin.platform) for origin in origins if (time := read_moment(origin.handed_in))
        ]
        late = [origin for origin in origins if origin.late]
        with suppress(Unreadable):
            stamp = read_moment(read_text(submission.folder / TIMESTAMP, NBGRADER_KIB), "UTC")
        if stamp:
            by_submission[submission] = HandedIn(source=TIMESTAMP, time=stamp)
        elif origins and len(times) == len(origins):
            time, platform = max(times)
            by_submission[submission] = HandedIn(source=platform, time=time)
        elif late or (origins and all(origin.platform in MARKS_LATE for origin in origins)):
            by_submission[submission] = HandedIn(
                source=(late or origins)[0].platform, late=bool(late)
            )
    return by_submission
