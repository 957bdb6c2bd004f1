"""From downloads to submitted/<student>/<assignment>/NN_name.py.

A clone may be a student's own, and its configuration can name programs for git to start. So git
works in an empty repository of ours, and is told to look for objects in the clone. The time is what
the student's git wrote: it can be set at will.
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
from ..course.course_yaml import read_moment
from ..errors import CourseFault
from ..files import KeptContents
from ..result import NOT_AS_IT_IS
from . import ENDINGS, Unreadable, is_archive, printable_name, read_text
from .archives import Reader, own_name
from .find import plain
from .intake_journal import (
    TIMESTAMP,
    Candidate,
    IntakeJournal,
    LayingOut,
    Origin,
    folder_lock,
    is_opened,
    paths_of,
    read_memory,
    refuse_links,
)
from .intake_limits import Limits
from .listed_times import ListedTimes
from .platforms import (
    CLONES,
    FOLDERS,
    Download,
    HandIn,
    Person,
    all_ids,
    depth_of,
    person_called,
    understood,
    unwrapped,
)
from .read import largest
from .roster import NoFolder, People, Roster
from .which_exercise import Exercises, NotPlaced, place_of

LOCK = ".collecting"
MOST_NAMES = 10  # of one student's files that cannot be read, in what is remembered and said
UNCLEAR = "are of the same exercise, and nothing says which of them counts"
SECONDS = 20  # for the times of one clone, however many folders it has


@dataclass
class Collected:
    """The outcome of a run, in sentences with their next steps; told: to a student, by file.

    platforms: by download.
    """

    candidates: list[Candidate] = field(default_factory=list)
    not_taken: list[str] = field(default_factory=list)
    no_time: list[str] = field(default_factory=list)  # who is missing in a list of times
    refusals: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    platforms: dict[str, list[str]] = field(default_factory=dict)

    def tell(self, download: Path, refused: Iterable[tuple[tuple[str, ...], str]]) -> None:
        """Say why something is not taken.

        refused: its path in the download, and what follows it.
        """
        reasons = [("/".join(map(printable_name, path)), reason) for path, reason in refused]
        self.refusals += reasons
        self.not_taken += [
            f"{printable_name(download.name)}: {path} {reason}" for path, reason in reasons
        ]


_Claims = dict[tuple[str, str], dict[Person, list[Candidate]]]


def collect(
    course: Course,
    downloads: Sequence[Path],
    out: Path,
    roster: Roster | None = None,
    limits: Limits | None = None,
    only: Assignment | None = None,
    student: str = "",
    times: ListedTimes | None = None,
) -> Collected:
    """Lay out the downloads.

    Run again it changes nothing. Raises CourseFault; nothing is written before all is read.

    out: the folder to fill. only: of which assignment files are taken; None: of all. student: the
    one student of whom all of it is; "": who it is has to be found out. times: from platforms'
    lists.
    """
    for download in downloads:
        if out.resolve().is_relative_to(download.resolve()):
            raise CourseFault(
                f"{out} is in {download}, which is read. Next: give --out a folder elsewhere"
            )
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise CourseFault(f"{out} is no folder. Next: give --out another name")
    busy_message = f"another course collect ({{}}) is writing to {out}. Next: wait for its end"
    with folder_lock(out / LOCK, busy_message), KeptContents(out) as contents, ExitStack() as files:
        reader = Reader(limits or Limits(), contents, files)
        memory = read_memory(out)
        run = _Run(
            Exercises(course),
            only,
            out,
            memory,
            People(roster, dict(memory.folders)),
            reader,
            times or ListedTimes(),
        )
        for path, listed in run.listed(downloads, student):
            run.read(path, listed, is_known=bool(student))
        return run.written()


@dataclass
class _Run:
    """The findings of one run.

    claims: the persons who claim to be a student, by student. unread: names, by student and
    assignment.
    """

    exercises: Exercises
    only: Assignment | None
    out: Path
    memory: IntakeJournal
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

    def listed(self, downloads: Sequence[Path], student: str) -> list[tuple[Path, Download]]:
        """List all downloads before any is understood: an archive may be one of several students'.

        Raises CourseFault.
        """
        listing = []
        for path in downloads:
            members = self.reader.listed(path)
            alone = (
                members[0] if path.is_dir() and len(members) == 1 == len(members[0].path) else None
            )
            if alone and is_archive(alone.name) and not alone.refused:
                path /= alone.name  # a folder around a download
                members = self.reader.listed(path)
            name = student or path.resolve().name
            self.collected.tell(
                path, ((member.path, member.refused) for member in members if member.refused)
            )
            accepted = tuple(member for member in members if not member.refused)
            listing.append((path, Download(name, accepted, bool(student), self.people.is_known)))
        archives = [download for path, download in listing if is_archive(path.name)]
        # others say nothing
        opened = [
            archive for archive in archives if not all(member.closed for member in archive.members)
        ]
        if len(archives) < 2 or all(map(self._is_of_a_class, opened)):
            return listing
        return [
            (path, replace(download, is_of_one=is_archive(path.name))) for path, download in listing
        ]

    def _is_of_a_class(self, download: Download) -> bool:
        """Return whether an archive looks like a platform's download, or has folders of several
        students, or an assignment's name.
        """
        name, course = unwrapped(download.name), self.exercises.course
        if plain(name) in all_ids(course) or download.is_known(name):
            return plain(name) in all_ids(course)
        depth = depth_of(download.members, course)
        several = {m.path[depth] for m in download.members if 0 <= depth < len(m.path) - 1}
        return len(several) > 1 or any(
            platform != FOLDERS for platform in understood(download, course).platforms
        )

    def read(self, path: Path, download: Download, *, is_known: bool) -> None:
        """Read what each person has handed in, person by person, and note whose it would be."""
        collected, closed, assignments = (
            self.collected,
            list[tuple[str, HandIn]](),
            set[Assignment](),
        )
        closed_download = [
            (m.path, m.closed) for m in download.members if m.closed and m.path == (path.name,)
        ]
        is_ones = self.people.is_known(unwrapped(path.name)) or (
            download.is_of_one and self.people.roster is None
        )
        if closed_download and not is_ones:  # it may be of a whole class
            collected.tell(path, closed_download)
            return
        not_placed = list[tuple[str, str]]()
        source = None if download.is_of_one or is_known else _source_memory(path)
        parsed, persons = (
            understood(download, self.exercises.course),
            defaultdict[Person, list[HandIn]](list),
        )
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
                collected.tell(path, [(hand_in.member.path, str(error)) for hand_in in files])
                continue
            candidates, unread, unplaced = self._of_person(path, files)
            if person.platform == FOLDERS:
                candidates = _with_times(candidates, path, source)
            closed += [(student, hand_in) for hand_in in unread for student in students]
            not_placed += [(student, name) for name in unplaced for student in students]
            if len(persons) == 1 and person.platform == FOLDERS and not is_known:
                candidates = _surely_of_one(candidates, collected)
            assignments |= {candidate.assignment for candidate in candidates}
            group, claimant = (
                ("", replace(person, key=str(path))) if download.is_of_one else (str(path), person)
            )
            for student in students if candidates else ():
                student_candidates = [
                    replace(candidate, student=student) for candidate in candidates
                ]
                self.claims[student][group, person.platform][claimant] = student_candidates
        likely = [self.only] if self.only else [*assignments]
        self._keep_unread(path, source)
        self._note_unread(closed, printable_name(path.name), likely)
        self._note_unplaced(not_placed, likely)

    def _note_unplaced(
        self, files: Iterable[tuple[str, str]], likely: Sequence[Assignment]
    ) -> None:
        """Note what is of no exercise, each name with whose it is. likely: as in `_note_unread`."""
        for student, name in files:
            if not self.exercises.may_be_work(name):
                continue
            for assignment in likely or self.exercises.course.assignments:
                self.unread[student, assignment.id].append(name + NOT_AS_IT_IS)

    def _keep_unread(self, path: Path, source: IntakeJournal | None) -> None:
        """Note what an earlier run could not read: of that nothing but its names lies in the
        folder.
        """
        if source is None:
            return
        for name, by_assignment in source.not_readable.items():
            with suppress(NoFolder):
                students = self.people.folders_of(person_called(name))
                for assignment in self.exercises.course.assignments:
                    names = by_assignment.get(assignment.id, [])
                    is_wanted = self.only in (None, assignment) and not is_opened(
                        path, name, assignment.id, source
                    )
                    for student in students if is_wanted and names else ():
                        self.unread[student, assignment.id] += names

    def _of_person(
        self, path: Path, files: Sequence[HandIn]
    ) -> tuple[list[Candidate], list[HandIn], list[str]]:
        """Return what may be laid out of one person's files, what cannot be read, and the names of
        what is of no exercise.
        """
        candidates, closed, budget = (
            list[Candidate](),
            list[HandIn](),
            self.reader.limits.for_persons(),
        )
        unplaced = list[str]()
        until = time.monotonic() + SECONDS
        committed = cache(lambda folders: commit_time(path, folders, until))
        plain_files = [hand_in for hand_in in files if not is_archive(hand_in.member.name)]
        archives = [hand_in for hand_in in files if is_archive(hand_in.member.name)]
        plain_files.sort(
            key=lambda hand_in: (hand_in.origin.order, hand_in.member.modified), reverse=True
        )
        left_out = list[HandIn]()  # of too many files the newest are read
        # plain files come first, and take nothing of what archives have left
        for hand_in in [*plain_files, *archives]:
            if budget.is_used_up and not is_archive(hand_in.member.name):
                left_out.append(hand_in)
                continue
            for file, content in self._files_of(path, hand_in, budget):
                if self.exercises.is_handed_out(own_name(file.name)):
                    self.handed_out += 1
                    continue
                if file.member.closed:
                    closed.append(file)
                    continue
                try:
                    candidate = self._candidate(file, content, path, budget, committed)
                except NotPlaced as error:
                    self.collected.tell(path, [(file.member.path, str(error))])
                    unplaced.append("/".join(map(printable_name, file.member.path)))
                    continue
                is_wanted = self.only in (None, candidate.assignment)
                candidates += [candidate] * is_wanted
                self.elsewhere += not is_wanted
        if left_out:
            first_unread, extra_count = left_out[0], len(left_out) - 1
            why = (
                f"{f'and {extra_count:,} more: each ' if extra_count else ''}{self.reader.too_much}"
            )
            closed.append(replace(first_unread, member=replace(first_unread.member, closed=why)))
        return candidates, closed, unplaced

    def _files_of(
        self, path: Path, hand_in: HandIn, budget: Limits
    ) -> Iterator[tuple[HandIn, bytes]]:
        """Yield the file that was handed in, or each file of an archive, with its content, and
        whether it is closed.
        """
        opened = self.reader.opened(hand_in.member, budget)
        self.collected.tell(
            path, ((member.path, member.refused) for member, _ in opened if member.refused)
        )
        files = [file for file in opened if not file[0].refused]
        if hand_in.person.platform == CLONES:
            files = [
                file for file in files if self.exercises.is_in_place(file[0].path[:-1])
            ] or files
        for member, content in files:
            name = hand_in.name if member.path == hand_in.member.path else member.name
            most = largest(own_name(name), self.exercises.course.limits.source_kib)
            if len(content) > most * 1024:
                member = replace(member, closed=f"is larger than {most:,} KiB")
            yield replace(hand_in, member=member, name=name), content

    def _candidate(
        self,
        hand_in: HandIn,
        content: bytes,
        download: Path,
        budget: Limits,
        committed: Callable[..., str],
    ) -> Candidate:
        member, person, name = hand_in.member, hand_in.person, own_name(hand_in.name)
        ending, path = PurePath(name).suffix.lower(), "/".join(map(printable_name, member.path))
        if ending not in ENDINGS:
            raise NotPlaced(
                "is no script and no notebook. Next: ask for it as .py or .ipynb, if it was to be "
                "graded"
            )
        assignment, stem = place_of(self.exercises.exercise_of(name, content, budget))
        changes: dict[str, object] = {
            "modified": member.modified,
            "digest": self.reader.contents.keep(content),
            "path": path,
        }
        if person.platform == CLONES and (when := read_moment(committed(member.path[:-1]))):
            changes["handed_in"] = when.isoformat()
        elif listed := self.times.time_of(person):
            changes["handed_in"] = listed.isoformat()
        origin = hand_in.origin.model_copy(
            update=changes | {"download": printable_name(download.name)}
        )
        rank = self.exercises.is_plain(name) * (1 + self.exercises.is_in_place(member.path[:-1]))
        return Candidate("", assignment, stem, ending, origin, rank)

    def _note_unread(
        self, files: Iterable[tuple[str, HandIn]], where: str, likely: Sequence[Assignment]
    ) -> None:
        """Note what cannot be read, each with whose it is, and say so.

        likely: the assignments that it may be of; none: all.
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
            message = f"{printable_name(student)}: handed in, not readable: {where}: {path} {why}"
            self.collected.refusals.append((path, f"{why}. Next: hand in the files themselves"))
            if all(is_opened(self.out, student, id_, self.memory) for id_ in ids):
                folder = f"{printable_name(student)}/{ids[0]}/"
                instead = f"what you have laid into {folder} is graded in its place"
                self.collected.notes.append(f"{message}; {instead}")
            else:
                into = "/".join([str(self.out / student), *ids[: len(ids) == 1]])
                next_ = (
                    f"Next: open it by hand, and put the files into {into}/; or ask for the files"
                )
                self.collected.not_taken.append(f"{message}. {next_}")

    def written(self) -> Collected:
        """Lay out what was found, student by student. Raises CourseFault."""
        collected, people, memory = self.collected, self.people, self.memory
        collected.no_time += self.times.problems()
        students = sorted({*self.claims, *(student for student, _ in self.unread)})
        if people.roster is not None and students and not people.is_found:
            message = "Next: give --roster a file that has their ids, e-mails or names"
            raise CourseFault(
                f"{people.roster.knows_nobody(students)}. Nothing is laid out. {message}"
            )
        memory.note(
            *(
                ["folder", f, key]
                for f, key in people.folder_keys.items()
                if memory.folders.get(f) != key
            )
        )
        readable, laying = set[tuple[str, str]](), LayingOut(self.out, memory, self.reader.contents)
        for student in sorted(self.claims):
            candidates = _of_one_claimant(self.claims[student], collected)
            laying.lay_out(candidates)
            readable |= {(student, candidate.assignment.id) for candidate in candidates}
        collected.candidates = laying.candidates
        for where, files, target in laying.unclear:
            next_ = f"Next: copy that one to {target}, then the same command again"
            collected.not_taken.append(f"{where}: {files} {UNCLEAR}. {next_}")
            collected.refusals.append(
                (files, f"{UNCLEAR}. Next: hand in the one that counts, under the exercise's name")
            )
        for student, id_ in sorted(readable - self.unread.keys()):
            if earlier_names := memory.not_readable.get(student, {}).get(id_):
                memory.note(["not readable", student, id_, []])
                message = (
                    f"{', '.join(earlier_names)} could not be read, and counts no more: there are "
                    f"other files of {id_} now"
                )
                collected.notes.append(f"{printable_name(student)}: {message}")
        for (student, id_), names in self.unread.items():
            cut = [
                *sorted(names)[:MOST_NAMES],
                *[f"{len(names) - MOST_NAMES} more"] * (len(names) > MOST_NAMES),
            ]
            refuse_links(self.out, self.out / student / id_)
            if memory.not_readable.get(student, {}).get(id_) != cut:
                memory.note(["not readable", student, id_, cut])
            (self.out / student / id_).mkdir(parents=True, exist_ok=True)
        collected.notes += [
            f"{printable_name(student)}: {sentence}"
            for student, sentence in sorted(people.notes.items())
        ]
        collected.notes += [f"left out as what came with the exercises: {self.handed_out}"] * bool(
            self.handed_out
        )
        collected.notes += [f"of other assignments, and left out: {self.elsewhere}"] * bool(
            self.elsewhere
        )
        return collected


def _source_memory(download: Path) -> IntakeJournal | None:
    """Return what `course collect` remembers of a folder; None where that is none that it has
    filled or may have.
    """
    with suppress(CourseFault):
        return read_memory(download) if download.is_dir() else None
    return None


def _with_times(
    candidates: Sequence[Candidate], download: Path, source: IntakeJournal | None
) -> list[Candidate]:
    """Return the candidates with what the folder that is read says of their times."""
    if source is None:
        return [*candidates]
    return [
        replace(candidate, origin=_with_time(candidate, download, source))
        for candidate in candidates
    ]


def _with_time(candidate: Candidate, download: Path, source: IntakeJournal) -> Origin:
    """Return the candidate's origin with what the folder that is read says of its time.

    That is nbgrader's timestamp.txt, nearest to the top; else what an earlier run has remembered of
    this very file.
    """
    origin, folders = candidate.origin, candidate.origin.path.split("/")[:-1]
    for depth in range(1, len(folders) + 1):
        with suppress(Unreadable):
            stamp = read_moment(read_text(download.joinpath(*folders[:depth], TIMESTAMP), 1), "UTC")
            if stamp is not None:
                return origin.model_copy(update={"handed_in": stamp.isoformat()})
    remembered = source.files.get(origin.path)
    if remembered is None or remembered.digest != origin.digest:
        return origin
    fields = remembered.model_dump(include={"platform", "order", "handed_in", "late", "named"})
    return origin.model_copy(update=fields)


def _surely_of_one(candidates: Sequence[Candidate], collected: Collected) -> list[Candidate]:
    """Return those of a download's only student that are surely of one, and say what is not.

    Files of one exercise that lie in one folder may be of several students: other words in their
    names may be those.
    """
    groups, sure = defaultdict[tuple[str, ...], list[Candidate]](list), list[Candidate]()
    for candidate in candidates:
        groups[candidate.origin.path.rpartition("/")[0], candidate.stem, candidate.ending].append(
            candidate
        )
    for group in groups.values():
        if len(group) < 2 or all(candidate.rank for candidate in group):
            sure += group
        else:
            problem = (
                "are of the same exercise, and may be of several students. Next: give each "
                "student a folder, there"
            )
            collected.not_taken.append(f"{group[0].origin.download}: {paths_of(group)} {problem}")
    return sure


def _of_one_claimant(claims: _Claims, collected: Collected) -> list[Candidate]:
    """Return what may be laid out of who claims to be one student: nothing of two persons of a
    platform, or of two archives.
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
    """Return the time, in ISO 8601, of the last commit of what lies in these folders; "" where no
    clone says it until then.
    """
    for i in reversed(range(len(folders) + 1)):
        clone = download.joinpath(*folders[:i])
        if (git := clone / ".git").is_dir() and not clone.is_symlink():
            is_left = git.is_symlink() or time.monotonic() > until
            return "" if is_left else _last_commit(git, "/".join(folders[i:]), until)
    return ""


def _last_commit(theirs: Path, folder: str, until: float) -> str:
    with TemporaryDirectory() as repository:
        for name in ("objects", "refs"):
            Path(repository, name).mkdir()
        Path(repository, "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
        variables = {"DIR": repository, "OBJECT_DIRECTORY": str(theirs.resolve() / "objects")}
        if (theirs / "shallow").is_file():  # of a clone without its whole history: where that ends
            variables["SHALLOW_FILE"] = str(theirs.resolve() / "shallow")
        # It reads one file of the clone's, and starts nothing.
        commit = _git(["rev-parse", "--verify", "HEAD"], {"DIR": str(theirs)}, until)
        command = ["log", "-1", "--format=%cI", "--end-of-options", commit, "--", folder or "."]
        return _git(command, variables, until) if commit else ""


def _git(arguments: list[str], variables: dict[str, str], until: float) -> str:
    """Return what git says, with no configuration but that of the repository in `variables`; ""
    where it says nothing.
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
