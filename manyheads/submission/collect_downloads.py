"""Copy attempts from downloads to submitted/<student>/<assignment>/NN_name.py.

If a download holds git clones, the last commit gives the time of a hand-in. A student may have
made the clone, and its configuration can name programs for git to start. So git runs in
an empty repository of ours, and only reads objects from the clone. The student's git wrote the
time of the commit, so a student can set it at will.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory

from ..course import Assignment, Course
from ..course.course_yaml_schema import read_moment
from ..files import CourseFault, KeptContents
from ..result import NOT_AS_IT_IS
from . import ENDINGS, Unreadable, is_archive, printable_name, read_text
from .download_layouts import (
    CLONES,
    FOLDERS,
    Download,
    HandIn,
    Person,
    RefusedFile,
    all_ids,
    depth_of,
    interpret,
    name_without_suffix,
    person_called,
)
from .find_submitted_files import Exercises, NotPlaced, assignment_of_file, plain
from .intake_journal import (
    NBGRADER_KIB,
    TIMESTAMP,
    IntakeCandidate,
    IntakeJournal,
    IntakeWriter,
    Origin,
    folder_lock,
    is_opened,
    paths_of,
    read_journal,
    refuse_links,
)
from .read import IntakeLimits, size_limit
from .read_archives import Reader, own_name
from .roster_and_times import ListedTimes, NoFolder, People, Roster

LOCK = ".collecting"
MOST_NAMES = 10  # names of one student's unreadable files, in the journal and in messages
UNCLEAR = "are of the same exercise, and nothing says which of them counts"
SECONDS = 20  # for all commit times that one person's files need


@dataclass
class Collected:
    """The outcome of a run.

    Attributes:
        candidates: the attempts that were found, each with its state.
        not_taken: sentences for the instructor about files that are not taken, each with a next
            step.
        no_time: problems with lists of times: missing students, and lines that cannot be read.
        refusals: for each file that is not taken, its path and the message for the student.
        notes: sentences about anything else, such as files that were left out.
        platforms: the recognised platforms, by name of the download.
    """

    candidates: list[IntakeCandidate] = field(default_factory=list)
    not_taken: list[str] = field(default_factory=list)
    no_time: list[str] = field(default_factory=list)
    refusals: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    platforms: dict[str, list[str]] = field(default_factory=dict)

    def tell(self, download: Path, refused: Iterable[RefusedFile]) -> None:
        """Add files that are not taken to `refusals` and `not_taken`.

        Args:
            download: the file or folder.
            refused: files in it.
        """
        reasons = [("/".join(map(printable_name, file.path)), file.reason) for file in refused]
        self.refusals += reasons
        self.not_taken += [
            f"{printable_name(download.name)}: {path} {reason}" for path, reason in reasons
        ]


@dataclass
class PersonsFiles:
    """The files that one person handed in.

    Attributes:
        candidates: the attempts, without their student.
        unread: the files that cannot be read, each with the reason in `closed` of its member.
        unplaced: the paths of files of no exercise.
    """

    candidates: list[IntakeCandidate] = field(default_factory=list)
    unread: list[HandIn] = field(default_factory=list)
    unplaced: list[str] = field(default_factory=list)


_Claims = dict[tuple[str, str], dict[Person, list[IntakeCandidate]]]


def collect(
    course: Course,
    downloads: Sequence[Path],
    out: Path,
    roster: Roster | None = None,
    limits: IntakeLimits | None = None,
    only: Assignment | None = None,
    student: str = "",
    times: ListedTimes | None = None,
) -> Collected:
    """Copy the attempts of the downloads into a folder, and return the outcome.

    No attempt is written before all downloads are read. A second run with the same downloads
    changes nothing.

    Args:
        course: the course.
        downloads: files and folders.
        out: the folder to fill. It is created if necessary, and locked during the run.
        roster: the class, if known.
        limits: the limits for one person.
        only: the only assignment to read, or None for all.
        student: the student who handed in everything; "" if the downloads show the students.
        times: times from platforms' lists.

    Raises:
        CourseFault: `out` lies in a download, is no folder, has a damaged journal, or is filled by
            another process; a download cannot be read; or no student is on the roster.
    """
    for download in downloads:
        # `Path.resolve` raises RuntimeError for a link that leads to itself
        if Path(os.path.realpath(out)).is_relative_to(os.path.realpath(download)):
            raise CourseFault(
                f"{out} is in {download}, which is read. Next: give --out a folder elsewhere"
            )
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise CourseFault(f"{out} is no folder. Next: give --out another name")
    busy_message = f"another course collect ({{}}) is writing to {out}. Next: wait for its end"
    with folder_lock(out / LOCK, busy_message), KeptContents(out) as contents, ExitStack() as files:
        reader = Reader(limits or IntakeLimits(), contents, files)
        journal = read_journal(out)
        run = _Run(
            Exercises(course),
            only,
            out,
            journal,
            People(roster, dict(journal.folders)),
            reader,
            times or ListedTimes(),
        )
        for path, listed in run.list_members(downloads, student):
            run.read(path, listed, is_known=bool(student))
        return run.write()


@dataclass
class _Run:
    """The state of one run.

    Attributes:
        claims: the candidates for each student's folder, by group and person. A group is formed by
            all persons of one platform in one download, or by all archives that hold one student
            each. At most one person of a group can get the folder.
        unread: the names of files that cannot be read or placed, by student and assignment.
    """

    exercises: Exercises
    only: Assignment | None
    out: Path
    journal: IntakeJournal
    people: People
    reader: Reader
    times: ListedTimes
    collected: Collected = field(default_factory=Collected)
    claims: dict[str, _Claims] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(dict))
    )
    unread: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))
    elsewhere: int = 0  # files of other assignments
    handed_out: int = 0  # files that came with the exercises

    def list_members(self, downloads: Sequence[Path], student: str) -> list[tuple[Path, Download]]:
        """Return each download with its files, and report the files that are refused.

        A folder that holds one archive and nothing else is read as that archive. If there are
        several archives, and at least one seems to hold the work of one student, every archive is
        marked with `is_of_one`. Only the whole list shows this, so all downloads are listed before
        any is interpreted.

        Args:
            downloads: files and folders.
            student: the student who handed in everything; "" if the downloads show the students.

        Raises:
            CourseFault: a download cannot be read.
        """
        listing = []
        for path in downloads:
            members = self.reader.list_files(path)
            alone = (
                members[0] if path.is_dir() and len(members) == 1 == len(members[0].path) else None
            )
            if alone and is_archive(alone.name) and not alone.refused:
                path /= alone.name  # a folder around a download
                members = self.reader.list_files(path)
            name = student or path.resolve().name
            refused = [member for member in members if member.refused]
            self.collected.tell(path, (RefusedFile(m.path, m.refused) for m in refused))
            accepted = tuple(member for member in members if not member.refused)
            listing.append((path, Download(name, accepted, bool(student), self.people.is_known)))
        archives = [download for path, download in listing if is_archive(path.name)]
        # an archive that cannot be read does not show whether it is of a class
        opened = filter(_has_readable_files, archives)
        if len(archives) < 2 or all(map(self._is_of_a_class, opened)):
            return listing
        return [
            (path, replace(download, is_of_one=is_archive(path.name))) for path, download in listing
        ]

    def _is_of_a_class(self, download: Download) -> bool:
        """Return whether an archive seems to hold the work of several students.

        If it has the name of an exercise or an assignment, it does. Otherwise, if it is named after
        a student on the roster, it does not. Any other archive does if it has folders of several
        students, or if a platform made it.
        """
        name = name_without_suffix(download.name)
        course = self.exercises.course
        if plain(name) in all_ids(course) or download.is_known(name):
            return plain(name) in all_ids(course)
        depth = depth_of(download.members, course)
        several = {m.path[depth] for m in download.members if 0 <= depth < len(m.path) - 1}
        return len(several) > 1 or any(
            platform != FOLDERS for platform in interpret(download, course).platforms
        )

    def read(self, path: Path, download: Download, *, is_known: bool) -> None:
        """Read the files of each person in turn, and note the students who would get them.

        Add candidates to `claims`, unreadable files to `unread`, and all messages to `collected`.
        If the download is an archive that cannot be opened and may hold the work of a whole class,
        only report that.

        Args:
            path: the file or folder.
            download: its files.
            is_known: whether one student handed in everything.
        """
        collected = self.collected
        closed = list[tuple[str, HandIn]]()
        assignments = set[Assignment]()
        closed_download = [
            RefusedFile(member.path, member.closed)
            for member in download.members
            if member.closed and member.path == (path.name,)
        ]
        is_ones = self.people.is_known(name_without_suffix(path.name)) or (
            download.is_of_one and self.people.roster is None
        )
        if closed_download and not is_ones:  # it may hold the work of a whole class
            collected.tell(path, closed_download)
            return
        without_exercise = list[tuple[str, str]]()
        own_journal = None if download.is_of_one or is_known else _journal_of(path)
        parsed = interpret(download, self.exercises.course)
        persons = defaultdict[Person, list[HandIn]](list)
        if parsed.platforms:
            collected.platforms[path.name] = [
                *dict.fromkeys([*collected.platforms.get(path.name, ()), *parsed.platforms])
            ]
        collected.tell(path, parsed.refused)
        collected.notes += [
            f"{printable_name(path.name)}: left out as {category}: {count}"
            for category, count in parsed.left_out.items()
        ]
        for hand_in in parsed.handed_in:
            persons[hand_in.person].append(hand_in)
        for person, files in persons.items():
            try:
                students = self.people.folders_of(person)
            except NoFolder as error:
                refused = [RefusedFile(file.member.path, str(error)) for file in files]
                collected.tell(path, refused)
                continue
            persons_files = self._of_person(path, files)
            candidates = persons_files.candidates
            if person.platform == FOLDERS:
                candidates = _with_times(candidates, path, own_journal)
            closed += [
                (student, hand_in) for hand_in in persons_files.unread for student in students
            ]
            without_exercise += [
                (student, name) for name in persons_files.unplaced for student in students
            ]
            if len(persons) == 1 and person.platform == FOLDERS and not is_known:
                candidates = _surely_of_one(candidates, collected)
            assignments |= {candidate.assignment for candidate in candidates}
            group = str(path)
            claimant = person
            if download.is_of_one:
                group = ""
                claimant = replace(person, key=str(path))
            for student in students if candidates else ():
                student_candidates = [
                    replace(candidate, student=student) for candidate in candidates
                ]
                self.claims[student][group, person.platform][claimant] = student_candidates
        likely = [self.only] if self.only else [*assignments]
        self._keep_unread(path, own_journal)
        self._note_unread(closed, printable_name(path.name), likely)
        self._note_unplaced(without_exercise, likely)

    def _note_unplaced(
        self, files: Iterable[tuple[str, str]], likely: Sequence[Assignment]
    ) -> None:
        """Add files of no exercise to `unread`, if they may be work.

        Args:
            files: a student and a path each.
            likely: the assignments to which they may belong; empty for all.
        """
        for student, name in files:
            if not self.exercises.may_be_work(name):
                continue
            for assignment in likely or self.exercises.course.assignments:
                self.unread[student, assignment.id].append(name + NOT_AS_IT_IS)

    def _keep_unread(self, path: Path, own_journal: IntakeJournal | None) -> None:
        """Add files that an earlier run could not read to `unread`.

        If the download is a folder that an earlier run filled, only its own journal has the
        names of these files. Files that were replaced by hand (`is_opened`) are left out.
        """
        if own_journal is None:
            return
        for name, by_assignment in own_journal.not_readable.items():
            with suppress(NoFolder):
                students = self.people.folders_of(person_called(name))
                for assignment in self.exercises.course.assignments:
                    names = by_assignment.get(assignment.id, [])
                    is_wanted = self.only in (None, assignment) and not is_opened(
                        path, name, assignment.id, own_journal
                    )
                    for student in students if is_wanted and names else ():
                        self.unread[student, assignment.id] += names

    def _of_person(self, path: Path, files: Sequence[HandIn]) -> PersonsFiles:
        """Read the files of one person.

        Files that came with the exercises, and those of other assignments, are counted and left
        out. If a person's files exceed the limits, the oldest plain files are not read, and form
        one entry of `unread`.
        """
        persons_files = PersonsFiles()
        budget = self.reader.limits.for_persons()
        until = time.monotonic() + SECONDS
        committed = cache(lambda folders: commit_time(path, folders, until))
        plain_files = [hand_in for hand_in in files if not is_archive(hand_in.member.name)]
        archives = [hand_in for hand_in in files if is_archive(hand_in.member.name)]
        plain_files.sort(
            key=lambda hand_in: (hand_in.origin.order, hand_in.member.modified), reverse=True
        )
        left_out = list[HandIn]()  # the oldest files, if there are too many
        # Plain files come first. They are read even if an archive would exceed the limits.
        for hand_in in [*plain_files, *archives]:
            if budget.is_used_up and not is_archive(hand_in.member.name):
                left_out.append(hand_in)
                continue
            for file, content in self._files_of(path, hand_in, budget):
                if self.exercises.is_handed_out(own_name(file.name)):
                    self.handed_out += 1
                    continue
                if file.member.closed:
                    persons_files.unread.append(file)
                    continue
                try:
                    candidate = self._candidate(file, content, path, budget, committed)
                except NotPlaced as error:
                    self.collected.tell(path, [RefusedFile(file.member.path, str(error))])
                    persons_files.unplaced.append("/".join(map(printable_name, file.member.path)))
                    continue
                if self.only in (None, candidate.assignment):
                    persons_files.candidates.append(candidate)
                else:
                    self.elsewhere += 1
        if left_out:
            first_unread = left_out[0]
            extra_count = len(left_out) - 1
            why = (
                f"{f'and {extra_count:,} more: each ' if extra_count else ''}{self.reader.too_much}"
            )
            member = replace(first_unread.member, closed=why)
            persons_files.unread.append(replace(first_unread, member=member))
        return persons_files

    def _files_of(
        self, path: Path, hand_in: HandIn, budget: IntakeLimits
    ) -> Iterator[tuple[HandIn, bytes]]:
        """Yield the file that was handed in, or each file of the archive, with its content.

        The member of a file that cannot be read gives the reason in `closed`. Refused files of an
        archive are reported and not yielded. From an archive of a git clone, only files in the
        folders of the exercises are yielded, if there are any.
        """
        opened = self.reader.open_member(hand_in.member, budget)
        refused = [member for member, _ in opened if member.refused]
        self.collected.tell(path, (RefusedFile(m.path, m.refused) for m in refused))
        files = [file for file in opened if not file[0].refused]
        if hand_in.person.platform == CLONES:
            files = [
                file for file in files if self.exercises.is_where_expected(file[0].path[:-1])
            ] or files
        for member, content in files:
            name = hand_in.name if member.path == hand_in.member.path else member.name
            limit_kib = size_limit(own_name(name), self.exercises.course.limits.source_kib)
            if len(content) > limit_kib * 1024:
                member = replace(member, closed=f"is larger than {limit_kib:,} KiB")
            yield replace(hand_in, member=member, name=name), content

    def _candidate(
        self,
        hand_in: HandIn,
        content: bytes,
        download: Path,
        budget: IntakeLimits,
        committed: Callable[..., str],
    ) -> IntakeCandidate:
        """Return the candidate for a file, without its student, and keep its content.

        Args:
            hand_in: the file.
            content: its content.
            download: the download in which the file lies.
            budget: the limits for the person.
            committed: returns the time of the last commit to a folder of the download, or "".

        Raises:
            NotPlaced: the file is neither script nor notebook, or its exercise is unknown.
        """
        member = hand_in.member
        person = hand_in.person
        name = own_name(hand_in.name)
        ending = PurePath(name).suffix.lower()
        path = "/".join(map(printable_name, member.path))
        if ending not in ENDINGS:
            raise NotPlaced(
                "is no script and no notebook. Next: ask for it as .py or .ipynb, if it was to be "
                "graded"
            )
        assignment, stem = assignment_of_file(self.exercises.exercise_of(name, content, budget))
        roster = self.people.roster
        members = [] if roster is None else roster.students_of(person)
        changes: dict[str, object] = {
            "modified": member.modified,
            "digest": self.reader.contents.keep(content),
            "path": path,
        }
        if person.platform == CLONES and (when := read_moment(committed(member.path[:-1]))):
            changes["handed_in"] = when.isoformat()
        elif listed := self.times.time_of(person, members):
            changes["handed_in"] = listed.isoformat()
        origin = hand_in.origin.model_copy(
            update=changes | {"download": printable_name(download.name)}
        )
        rank = 0
        if self.exercises.is_plain(name):
            rank = 2 if self.exercises.is_where_expected(member.path[:-1]) else 1
        return IntakeCandidate("", assignment, stem, ending, origin, rank)

    def _note_unread(
        self, files: Iterable[tuple[str, HandIn]], download_name: str, likely: Sequence[Assignment]
    ) -> None:
        """Add files that cannot be read to `unread`, and report them.

        For files that were replaced by hand (`is_opened`), the report is only a note.

        Args:
            files: a student and a file each.
            download_name: the name of the download, as it can be shown anywhere.
            likely: the assignments to which the files may belong; empty for all.
        """
        ids = [
            assignment.id
            for assignment in self.exercises.course.assignments
            if assignment in likely or not likely
        ]
        for student, hand_in in files:
            path = "/".join(map(printable_name, hand_in.member.path))
            for id_ in ids:
                self.unread[student, id_].append(path)
            why = hand_in.member.closed.partition(". Next: ")[0]
            message = (
                f"{printable_name(student)}: handed in, not readable: {download_name}: {path} {why}"
            )
            self.collected.refusals.append((path, f"{why}. Next: hand in the files themselves"))
            if all(is_opened(self.out, student, id_, self.journal) for id_ in ids):
                replaced_in = f"{printable_name(student)}/{ids[0]}/"
                instead = f"what you have laid into {replaced_in} is graded in its place"
                self.collected.notes.append(f"{message}; {instead}")
            else:
                # If the files may belong to several assignments, the instructor chooses one.
                folder = self.out / student / ids[0] if len(ids) == 1 else self.out / student
                next_step = (
                    f"Next: open it by hand, and put the files into {folder}/; or ask for the files"
                )
                self.collected.not_taken.append(f"{message}. {next_step}")

    def write(self) -> Collected:
        """Write the files, student by student, and return the outcome.

        Also write to the journal which person has each folder, and which files cannot be read. The
        folder of an assignment with only unreadable files is created empty.

        Raises:
            CourseFault: no student is on the roster, and nothing is written; or a link stands on
                the way to a file.
        """
        collected = self.collected
        people = self.people
        journal = self.journal
        collected.no_time += self.times.problems()
        students = sorted({*self.claims, *(student for student, _ in self.unread)})
        if people.roster is not None and students and not people.is_found:
            message = "Next: give --roster a file that has their ids, e-mails or names"
            raise CourseFault(
                f"{people.roster.knows_nobody(students)}. Nothing is laid out. {message}"
            )
        journal.note(
            *(
                ["folder", f, key]
                for f, key in people.folder_keys.items()
                if journal.folders.get(f) != key
            )
        )
        readable = set[tuple[str, str]]()
        writer = IntakeWriter(self.out, journal, self.reader.contents)
        for student in sorted(self.claims):
            candidates = _of_one_claimant(self.claims[student], collected)
            writer.write_candidates(candidates)
            readable |= {(student, candidate.assignment.id) for candidate in candidates}
        collected.candidates = writer.candidates
        for group in writer.unclear:
            next_step = f"Next: copy that one to {group.target}, then the same command again"
            collected.not_taken.append(f"{group.download}: {group.paths} {UNCLEAR}. {next_step}")
            message = f"{UNCLEAR}. Next: hand in the one that counts, under the exercise's name"
            collected.refusals.append((group.paths, message))
        for student, id_ in sorted(readable - self.unread.keys()):
            if earlier_names := journal.not_readable.get(student, {}).get(id_):
                journal.note(["not readable", student, id_, []])
                message = (
                    f"{', '.join(earlier_names)} could not be read, and counts no more: there are "
                    f"other files of {id_} now"
                )
                collected.notes.append(f"{printable_name(student)}: {message}")
        self._write_unread()
        collected.notes += [
            f"{printable_name(student)}: {sentence}"
            for student, sentence in sorted(people.notes.items())
        ]
        if self.handed_out:
            note = f"left out as what came with the exercises: {self.handed_out}"
            collected.notes.append(note)
        if self.elsewhere:
            collected.notes.append(f"of other assignments, and left out: {self.elsewhere}")
        return collected

    def _write_unread(self) -> None:
        """Write to the journal which files cannot be read, and create the folders for them."""
        for (student, id_), names in self.unread.items():
            listed_names = sorted(names)[:MOST_NAMES]
            if len(names) > MOST_NAMES:
                listed_names.append(f"{len(names) - MOST_NAMES} more")
            refuse_links(self.out, self.out / student / id_)
            if self.journal.not_readable.get(student, {}).get(id_) != listed_names:
                self.journal.note(["not readable", student, id_, listed_names])
            (self.out / student / id_).mkdir(parents=True, exist_ok=True)


def _has_readable_files(download: Download) -> bool:
    return not all(member.closed for member in download.members)


def _journal_of(download: Path) -> IntakeJournal | None:
    """Return the journal of a folder, or None for a file or if the journal cannot be read.

    If `course collect` has not filled the folder, the journal is empty.
    """
    with suppress(CourseFault):
        return read_journal(download) if download.is_dir() else None
    return None


def _with_times(
    candidates: Sequence[IntakeCandidate], download: Path, own_journal: IntakeJournal | None
) -> list[IntakeCandidate]:
    """Return the candidates with the hand-in times that the download itself records.

    See `_with_time`. Without `own_journal`, return the candidates unchanged.
    """
    if own_journal is None:
        return [*candidates]
    return [
        replace(candidate, origin=_with_time(candidate, download, own_journal))
        for candidate in candidates
    ]


def _with_time(candidate: IntakeCandidate, download: Path, own_journal: IntakeJournal) -> Origin:
    """Return the candidate's origin with the hand-in time that the download itself records.

    1. The time comes from nbgrader's timestamp.txt in a folder above the file. If several of these
       folders have a valid one, the outermost counts.
    2. If none has, the time comes from the journal of the download, provided that it lists the file
       with the same content. The platform, the order, the mark for late hand-ins and `named` are
       then taken from the journal, too.
    3. Otherwise the origin is returned unchanged.
    """
    origin = candidate.origin
    folders = candidate.origin.path.split("/")[:-1]
    for depth in range(1, len(folders) + 1):
        with suppress(Unreadable):
            path = download.joinpath(*folders[:depth], TIMESTAMP)
            stamp = read_moment(read_text(path, NBGRADER_KIB), "UTC")
            if stamp is not None:
                return origin.model_copy(update={"handed_in": stamp.isoformat()})
    remembered = own_journal.files.get(origin.path)
    if remembered is None or remembered.digest != origin.digest:
        return origin
    fields = remembered.model_dump(include={"platform", "order", "handed_in", "late", "named"})
    return origin.model_copy(update=fields)


def _surely_of_one(
    candidates: Sequence[IntakeCandidate], collected: Collected
) -> list[IntakeCandidate]:
    """Return the candidates that surely belong to the only student of a download.

    If a folder has several files of one exercise, and one of their names has words besides those of
    the exercise, these words may be names of students. Such files are reported in `collected` and
    not taken. Other files in that folder are treated in the same way if their names have such
    words.
    """
    groups = defaultdict[tuple[str, ...], list[IntakeCandidate]](list)
    for candidate in candidates:
        folder = candidate.origin.path.rpartition("/")[0]
        groups[folder, candidate.stem, candidate.ending].append(candidate)
    ambiguous = {key for key, group in groups.items() if len(group) > 1 and _has_other_words(group)}
    folders = {folder for folder, *_ in ambiguous}
    sure = list[IntakeCandidate]()
    for key, group in groups.items():
        if key in ambiguous:
            problem = "are of the same exercise, and may be of several students"
        elif key[0] in folders and _has_other_words(group):
            problem = "may be of one of several students, as the files beside it"
        else:
            sure += group
            continue
        files = f"{group[0].origin.download}: {paths_of(group)}"
        next_step = "Next: give each student a folder, there"
        collected.not_taken.append(f"{files} {problem}. {next_step}")
    return sure


def _has_other_words(candidates: Sequence[IntakeCandidate]) -> bool:
    """Return whether at least one file name has words besides those of its exercise."""
    return not all(candidate.rank for candidate in candidates)


def _of_one_claimant(claims: _Claims, collected: Collected) -> list[IntakeCandidate]:
    """Return the candidates for one student's folder.

    If two persons of one platform in a download, or two archives, claim the folder, their files are
    not taken, and the conflict is reported in `collected`.
    """
    accepted = []
    for (group, _), persons in claims.items():
        firsts = [candidates[0] for candidates in persons.values()]
        if len(firsts) == 1:
            accepted += next(iter(persons.values()))
            continue
        files = (
            paths_of(firsts)
            if group
            else " and ".join(printable_name(person.key) for person in persons)
        )
        problem = (
            f"{files} are of {len(firsts)} persons, and each of them would be "
            f"{firsts[0].student!a}: none is taken"
        )
        apart = (
            "Next: the same without what is not that student's, or with --roster and a file "
            "that tells them apart"
        )
        collected.not_taken.append(f"{firsts[0].origin.download}: {problem}. {apart}")
    return accepted


def commit_time(download: Path, folders: tuple[str, ...], until: float) -> str:
    """Return the time, in ISO 8601, of the last commit that changed this folder of a download.

    Return "" if the folder is in no clone, if the clone's .git is a link or has no such commit, or
    if git does not answer before `until`, a time of the monotonic clock.
    """
    for i in reversed(range(len(folders) + 1)):
        clone = download.joinpath(*folders[:i])
        if (git := clone / ".git").is_dir() and not clone.is_symlink():
            is_left = git.is_symlink() or time.monotonic() > until
            return "" if is_left else _last_commit(git, "/".join(folders[i:]), until)
    return ""


def _last_commit(theirs: Path, folder: str, until: float) -> str:
    """Return the time of the last commit that changed `folder`, or "".

    Git runs in an empty repository of ours, with the objects of the clone whose .git is `theirs`.
    """
    with TemporaryDirectory() as repository:
        for name in ("objects", "refs"):
            Path(repository, name).mkdir()
        Path(repository, "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
        variables = {"DIR": repository, "OBJECT_DIRECTORY": str(theirs.resolve() / "objects")}
        # A shallow clone lists in this file the commits at which its history ends.
        if (theirs / "shallow").is_file():
            variables["SHALLOW_FILE"] = str(theirs.resolve() / "shallow")
        # Only this command uses the clone's own configuration. It starts no program.
        commit = _git(["rev-parse", "--verify", "HEAD"], {"DIR": str(theirs)}, until)
        command = ["log", "-1", "--format=%cI", "--end-of-options", commit, "--", folder or "."]
        return _git(command, variables, until) if commit else ""


def _git(arguments: list[str], variables: dict[str, str], until: float) -> str:
    """Return the output of git, or "" if git fails or does not end before `until`.

    Git reads only the configuration of the repository in `variables`.
    """
    variables |= {
        "CONFIG_GLOBAL": os.devnull,
        "CONFIG_NOSYSTEM": "1",
        "NO_LAZY_FETCH": "1",
        "NO_REPLACE_OBJECTS": "1",
    }
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        **{f"GIT_{k}": v for k, v in variables.items()},
    }
    with suppress(OSError, subprocess.SubprocessError, UnicodeDecodeError):
        run = partial(subprocess.run, env=environment, capture_output=True, text=True, check=True)
        return run(["git", *arguments], timeout=until - time.monotonic()).stdout.strip()
    return ""
