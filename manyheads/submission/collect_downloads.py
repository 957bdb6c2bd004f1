"""From downloads to submitted/<student>/<assignment>/NN_name.py."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath

from ..course import Assignment, Course
from ..errors import CourseFault
from . import ENDINGS, is_noise, is_reserved, is_student, shown
from .clones import clones, commit_time
from .folders import folders_of_students, is_of_one
from .gradescope import gradescope
from .lay_out import Candidate, Laid, Origin, digest_of, lay_out, read_memory, surely_of_one, tell_apart
from .not_readable import Unread
from .notebook import without_outputs
from .platforms import (
    ALONE,
    ILIAS,
    PLATFORMS,
    Contents,
    Download,
    HandedIn,
    Person,
    Read,
    person_called,
    unwrapped,
)
from .read import largest
from .read_download import Found, Limits, Reader, Refused, own_name
from .roster import Roster, Student, folded
from .which_exercise import Exercises, NotAsked, NotPlaced, Reading, place_of

CLONES, FOLDERS = "clones", "folders"
# Each sees what those before it left. Folders take what no other knows.
_READS: dict[str, Read] = {
    "Gradescope": gradescope,
    **{platform.name: platform.read for platform in PLATFORMS},
    CLONES: clones,
    ILIAS.name: ILIAS.read,
    FOLDERS: folders_of_students,
}


UNSAFE = re.compile(r'[\x00-\x1f/\\:*?"<>|]')


class NoFolder(Exception):
    """No folder can have this person's name. The text says why."""


@dataclass
class Folders:
    """Gives each person a folder, and no two persons the same.

    taken: the person's key for each folder given, also by earlier runs; by the folder's name as no file system tells two apart.
    """

    roster: Roster | None = None
    taken: dict[str, str] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)  # sentences, by person
    found: bool = False  # whether the roster knows anybody

    def of(self, platform: str, person: Person) -> str:
        """Return the name of this person's folder. Raises NoFolder."""
        key, row = f"{platform} {person.key}", self._row(person)
        if row is not None:
            self.found = True
            before = next((folder for folder, taken in self.taken.items() if taken == key), None)
            if before is not None and before != folded(row.id):
                said = f"was collected as {before!a} before, without this roster. Next: remove that folder"
                self.said[row.id] = said
            # The roster says whose it is, whatever an earlier run took it for.
            self.taken[folded(row.id)] = f"roster {row.id}"
            return row.id
        name = UNSAFE.sub("_", person.folder).strip(" .")
        if not is_student(name) or is_noise(name) or is_reserved(name):
            said = "is of somebody whose name cannot be a folder's. Next: give --roster a file with that person"
            raise NoFolder(said)
        before = self.taken.setdefault(folded(name), key)
        if before != key and not before.startswith(f"{key}{ALONE}") and not key.startswith(f"{before}{ALONE}"):
            apart = "Next: give --roster a file that tells them apart, or all archives at once"
            raise NoFolder(f"would go to {name!a}, where the files of somebody else are. {apart}")
        if self.roster is not None:
            self.said[name] = "is not on the roster: no id, e-mail address or name fits. Next: complete the roster"
            if same := ", ".join(row.id for row in self.roster.named(person.name)):
                said = f"several on the roster have this name ({same}). Next: rename the folder to the right id"
                self.said[name] = f"is not known: {said}"
        return name

    def is_known(self, name: str) -> bool:
        """Return whether somebody on the roster has this id or name."""
        return self._row(person_called(name)) is not None

    def _row(self, person: Person) -> Student | None:
        """Return the person's row of the roster, if there is one and only one."""
        roster, ids = self.roster, dict(person.ids)
        if roster is None:
            return None
        parts = ids.get("github", "").split("-")  # a repository's name may end with the user's: hw1-ada-l is of ada-l
        users = ("-".join(parts[i:]) for i in range(1, len(parts)))
        found = roster.with_id(**ids) or roster.with_id(id=person.folder)
        found = found or next((row for user in users if (row := roster.with_id(github=user))), None)
        if found is None and len(named := roster.named(person.name)) == 1:
            found = named[0]
        if found is not None:
            return found
        # A school's id or a login before the name, as Brightspace writes both: 23304308 Lovelace, al1 Ada Lovelace. A word
        # without a digit may be the name of somebody else: then the rest has to be that student's name.
        word, _, rest = person.name.partition(" ")
        student = roster.with_id(id=word, sis_id=word, login=word) if rest else None
        is_id = student is None or any(letter.isdigit() for letter in word) or student in roster.named(rest)
        return student if is_id else None


@dataclass
class Collected:
    """What became of everything. not_taken, said: sentences, each with what to do next."""

    laid: list[Laid] = field(default_factory=list)
    not_taken: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    platforms: dict[str, list[str]] = field(default_factory=dict)  # by download


def collect(
    course: Course,
    downloads: Sequence[Path],
    out: Path,
    roster: Roster | None = None,
    limits: Limits | None = None,
    only: Assignment | None = None,
) -> Collected:
    """Lay out the downloads. only: of which assignment files are taken. Run again it changes nothing. Raises CourseFault; nothing is written before all is read."""
    _refuse_out(out, downloads)
    memory, done = read_memory(out), Collected()
    folders = Folders(roster, dict(memory.folders))
    exercises, left_out = Exercises(course, only), 0
    unread = Unread(exercises, out)
    readings: dict[str, Reading] = defaultdict(Reading)
    candidates: dict[tuple[str, str], list[Candidate]] = defaultdict(list)
    for path, download in _read_all(downloads, course, folders, Reader(limits or Limits()), done):
        found, closed, others = _files_of(path, download, exercises, folders, readings, done)
        sure = found
        if len({each.student for each in found}) == 1 and {each.origin.platform for each in found} == {FOLDERS}:
            sure, sentences = surely_of_one(found)
            done.not_taken += sentences
        for candidate in sure:
            candidates[candidate.student, candidate.stem].append(candidate)
        left_out += others + unread.add(closed, shown(path.name), {other.assignment for other in found}, memory)
    students = sorted({student for student, _ in (*candidates, *unread.names)})
    if roster is not None and students and not folders.found:
        said = "Next: give --roster a file that has their ids, e-mails or names"
        raise CourseFault(f"{roster.knows_nobody(students)}. Nothing is laid out. {said}")
    try:
        for key in sorted(candidates):
            clear, laid, unclear = tell_apart(candidates[key], out, memory, readings[key[0]])
            done.laid += laid + (lay_out(clear, out, memory) if clear else [])
            done.not_taken += unclear
        unread.record(memory, {(key[0], found[0].assignment.id) for key, found in candidates.items()})
    finally:
        memory.folders = folders.taken
        if students:
            memory.write(out)
    done.not_taken += unread.not_taken
    done.said += unread.said
    done.said += [f"{shown(student)}: {sentence}" for student, sentence in sorted(folders.said.items())]
    done.said += [f"of other assignments, and left out: {left_out}"] * bool(left_out)
    return done


def _read_all(
    downloads: Sequence[Path], course: Course, folders: Folders, reader: Reader, done: Collected
) -> list[tuple[Path, Download]]:
    """Read all downloads before any is understood: an archive may be one of several students'. Raises CourseFault."""
    read = []
    for download in downloads:
        files = reader.read(download)
        for file in files:
            if file.path == (download.name,) and file.closed and not folders.is_known(unwrapped(download.name)):
                reader.refused.append(Refused(file.path, file.closed))  # it may be of a whole class
                files = [other for other in files if other is not file]
        read.append((download, Download(download.resolve().name, tuple(files), is_known=folders.is_known)))
        _tell(done, download, reader.refused)
        reader.refused.clear()
    if sum(is_of_one(each, course) for _, each in read) < 2:
        return read
    return [(path, replace(each, is_of_one=is_of_one(each, course))) for path, each in read]


def _contents_of(download: Download, course: Course) -> Iterator[tuple[str, Contents]]:
    """Yield what each platform makes of the download."""
    left = list(download.files)
    for name, read in _READS.items():
        contents = read(left, download, course) if left else Contents()
        if paths := contents.paths:
            yield name, contents
            left = [file for file in left if file.path not in paths]


def _files_of(
    path: Path,
    download: Download,
    exercises: Exercises,
    folders: Folders,
    readings: Mapping[str, Reading],
    done: Collected,
) -> tuple[list[Candidate], list[tuple[str, HandedIn]], int]:
    """Return what may be laid out, what cannot be read, with its student, and how many files are of other assignments."""
    found: list[Candidate] = []
    closed: list[tuple[str, HandedIn]] = []
    left_out = 0
    for platform, contents in _contents_of(download, exercises.course):
        done.platforms.setdefault(path.name, []).append(platform)
        _tell(done, path, contents.others)
        _tell(done, path, contents.closed_of_nobody)
        done.said += _returned(path, contents.feedback)
        for each in contents.handed_in:
            try:
                if each.file.closed:
                    closed.append((folders.of(platform, each.person), each))
                else:
                    reading = readings[f"{platform} {each.person.key}"]
                    found.append(_candidate(each, platform, path, folders, exercises, reading))
                    _tell_size(
                        done, path, each, found[-1], largest(found[-1].ending, exercises.course.limits.source_kib)
                    )
            except NotAsked:
                left_out += 1
            except (NotPlaced, NoFolder) as error:
                _tell(done, path, [Refused(each.file.path, str(error))])
    return found, closed, left_out


def _candidate(
    handed_in: HandedIn, platform: str, download: Path, folders: Folders, exercises: Exercises, reading: Reading
) -> Candidate:
    """Return the file as it may be laid out. Raises NotPlaced, NoFolder, NotAsked."""
    file, name = handed_in.file, own_name(handed_in.name)
    ending, content = PurePath(name).suffix.lower(), handed_in.file.content
    if ending not in ENDINGS or content is None:
        raise NotPlaced("is no script and no notebook. Next: ask for it as .py or .ipynb, if it was to be graded")
    if len(content) > largest(name, exercises.course.limits.source_kib) * 1024 and ending == ".ipynb":
        content = without_outputs(content)
    assignment, stem = place_of(exercises.of(name, content, reading))
    origin = Origin(
        platform=platform,
        order=handed_in.order,
        modified=file.modified,
        digest=digest_of(content),
        download=shown(download.name),
        path="/".join(map(shown, file.path)),
        handed_in=handed_in.time or (commit_time(download, file.path) if platform == CLONES else ""),
        late=handed_in.late,
        named=handed_in.named,
    )
    is_plain = exercises.is_plain(name)
    return Candidate(
        student=folders.of(platform, handed_in.person),
        assignment=assignment,
        stem=stem,
        ending=ending,
        content=content,
        origin=origin,
        is_named=exercises.named(name) is not None,
        is_plain=is_plain,
        is_in_place=is_plain and file.path[-3:-1] == assignment.exercises_folder.relative_to(assignment.root).parts,
        person=handed_in.person.key if handed_in.named else "",
        archive=shown(str(download)) if handed_in.archive == download.name else shown(handed_in.archive),
    )


def _returned(download: Path, feedback: Sequence[Found]) -> Iterator[str]:
    """Yield what of a download went back to students, and is left out: each script and notebook, and how many files more."""
    attempts = [file for file in feedback if file.content is not None]
    for file in attempts:
        path = "/".join(map(shown, file.path))
        yield f"{shown(download.name)}: {path} went back to the student as feedback, and is left out"
    if more := len(feedback) - len(attempts):
        yield f"{shown(download.name)}: other files that went back to students, and are left out: {more}"


def _tell_size(done: Collected, download: Path, handed_in: HandedIn, candidate: Candidate, most: int) -> None:
    """Say where outputs were left out, and what is too large to be graded. most: KiB."""
    path, before = "/".join(map(shown, handed_in.file.path)), len(handed_in.file.content or b"")
    if len(candidate.content) > most * 1024:
        reason = f"is laid out and will earn nothing: it has {before // 1024:,} KiB, and at most {most:,} are read"
        _tell(done, download, [Refused(handed_in.file.path, f"{reason}. Next: ask for a smaller file")])
    elif len(candidate.content) < before:
        said = f"{path} has {before // 1024:,} KiB, and at most {most:,} are read: its outputs are left out"
        done.said.append(f"{shown(download.name)}: {said}")


def _tell(done: Collected, download: Path, refused: Iterable[Refused]) -> None:
    where = shown(download.name)
    done.not_taken += [f"{where}: {'/'.join(map(shown, refusal.path))} {refusal.reason}" for refusal in refused]


def _refuse_out(out: Path, downloads: Sequence[Path]) -> None:
    """Raise CourseFault where the folder to fill is no folder, or is read at the same time."""
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise CourseFault(f"{out} is no folder. Next: give --out another name")
    target = out.resolve()
    for download in downloads:
        if target == download.resolve() or target.is_relative_to(download.resolve()):
            raise CourseFault(f"{out} is in {download}, which is read. Next: give --out a folder elsewhere")
