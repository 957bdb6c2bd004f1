"""From downloads to submitted/<student>/<assignment>/NN_name.py."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath

from ..course import Assignment, Course
from ..errors import CourseFault
from . import ENDINGS, shown
from .clones import clones, commit_time
from .downloads_by_folder import ilias, moodle, open_olat, sakai, schoology
from .downloads_by_name import blackboard, brightspace, canvas
from .folders import folders_of_students, is_of_one
from .found_files import Found, Limits, Refused, own_name
from .gradescope import gradescope
from .identify import Folders, NoFolder
from .lay_out import Candidate, Laid, Origin, digest_of, lay_out, read_memory
from .not_readable import Unread
from .notebook import without_outputs
from .platform import Contents, Download, HandedIn, Platform, unwrapped
from .read import largest
from .read_download import Reader
from .rivals import paths_of, tell_apart, thrown_together
from .roster import Roster
from .which_exercise import Exercises, NotAsked, NotPlaced, Reading, place_of

# Folders take what no other knows.
PLATFORMS = (
    *(gradescope, moodle, canvas, brightspace, blackboard),
    *(sakai, open_olat, schoology, clones, ilias),
    folders_of_students,
)


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
    reader, folders = Reader(limits or Limits()), Folders(roster, dict(memory.folders))
    exercises, left_out = Exercises(course, only), 0
    unread = Unread(exercises, out)
    readings: dict[str, Reading] = defaultdict(Reading)
    candidates: dict[tuple[str, str], list[Candidate]] = defaultdict(list)
    for download, read in _read_all(downloads, course, folders, reader, done):
        found: list[Candidate] = []
        closed: list[tuple[str, HandedIn]] = []
        for platform, contents in _read_as(read, course).items():
            done.platforms.setdefault(download.name, []).append(platform.name)
            _tell(done, download, contents.others)
            _tell(done, download, contents.closed_of_nobody)
            done.said += _returned(download, contents.feedback)
            closed += _closed(contents.handed_in, platform.name, download, folders, done)
            for each in (item for item in contents.handed_in if not item.file.closed):
                try:
                    reading = readings[f"{platform.name} {each.person.key}"]
                    candidate = _candidate(each, platform.name, download, folders, exercises, reading)
                except NotAsked:
                    left_out += 1
                except (NotPlaced, NoFolder) as error:
                    _tell(done, download, [Refused(each.file.path, str(error))])
                else:
                    found.append(candidate)
                    _tell_size(done, download, each, candidate, largest(candidate.ending, course.limits.source_kib))
        for candidate in _told_apart(done, found):
            candidates[candidate.student, candidate.stem].append(candidate)
        left_out += unread.add(closed, shown(download.name), {other.assignment for other in found}, memory)
    students = sorted({student for student, _ in (*candidates, *unread.names)})
    _require_known(students, roster, folders)
    try:
        for key in sorted(candidates):
            told = tell_apart(candidates[key], out, memory, readings[key[0]])
            done.laid += told.laid + (lay_out(told.clear, out, memory) if told.clear else [])
            done.not_taken += told.said
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


def _closed(
    handed_in: Iterable[HandedIn], platform: str, download: Path, folders: Folders, done: Collected
) -> Iterator[tuple[str, HandedIn]]:
    """Yield what cannot be read, with the folder of the student who handed it in."""
    for item in handed_in:
        if item.file.closed:
            try:
                yield folders.of(platform, item.person), item
            except NoFolder as error:
                _tell(done, download, [Refused(item.file.path, str(error))])


def _require_known(students: Sequence[str], roster: Roster | None, folders: Folders) -> None:
    """Raise CourseFault where there are students and the roster knows none of them."""
    if roster is not None and students and not folders.found:
        said = "Next: give --roster a file that has their ids, e-mails or names"
        raise CourseFault(f"{roster.knows_nobody(students)}. Nothing is laid out. {said}")


def _read_all(
    downloads: Sequence[Path], course: Course, folders: Folders, reader: Reader, done: Collected
) -> list[tuple[Path, Download]]:
    """Read all downloads before any is understood: an archive may be one of several students'. Raises CourseFault."""
    read = []
    for download in downloads:
        files = tuple(reader.read(download))
        if [file.path for file in files if file.closed] == [(download.name,)] and not folders.is_known(
            unwrapped(download.name)
        ):
            reader.refused += [Refused(file.path, file.closed) for file in files]  # it may be of a whole class
            files = ()
        read.append((download, Download(download.resolve().name, files, is_known=folders.is_known)))
        _tell(done, download, reader.refused)
        reader.refused.clear()
    if sum(is_of_one(each, course) for _, each in read) < 2:
        return read
    return [(path, replace(each, is_of_one=is_of_one(each, course))) for path, each in read]


def _read_as(download: Download, course: Course) -> dict[Platform, Contents]:
    """Return what each platform makes of the download; each sees what those before it left."""
    found, left = {}, list(download.files)
    for platform in PLATFORMS:
        contents = platform.read(left, download, course) if left else Contents()
        if paths := contents.paths:
            found[platform] = contents
            left = [file for file in left if file.path not in paths]
    return found


def _candidate(
    handed_in: HandedIn, platform: str, download: Path, folders: Folders, exercises: Exercises, reading: Reading
) -> Candidate:
    """Return the file as it may be laid out. Raises NotPlaced, NoFolder."""
    name = own_name(handed_in.name)
    ending = PurePath(name).suffix.lower()
    content = handed_in.file.content
    if ending not in ENDINGS or content is None:
        raise NotPlaced("is no script and no notebook. Next: ask for it as .py or .ipynb, if it was to be graded")
    if len(content) > largest(name, exercises.course.limits.source_kib) * 1024 and ending == ".ipynb":
        content = without_outputs(content)
    assignment, stem = place_of(exercises.of(name, content, reading))
    origin = Origin(
        platform=platform,
        order=handed_in.order,
        modified=handed_in.file.modified,
        digest=digest_of(content),
        download=shown(download.name),
        path="/".join(map(shown, handed_in.file.path)),
        handed_in=handed_in.time or (commit_time(download, handed_in.file.path) if platform == clones.name else ""),
        late=handed_in.late,
        named=handed_in.named,
    )
    named, plain = exercises.named(name) is not None, exercises.is_plain(name)
    in_place = plain and handed_in.file.path[-3:-1] == assignment.exercises_folder.relative_to(assignment.root).parts
    student = folders.of(platform, handed_in.person)
    person = handed_in.person.key if handed_in.named else ""
    archive = shown(str(download)) if handed_in.archive == download.name else shown(handed_in.archive)
    return Candidate(
        student, assignment, stem, ending, content, origin, handed_in.late, named, plain, in_place, person, archive
    )


def _told_apart(done: Collected, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """Return those of a download that are surely of the students they seem to be; a sentence for the others."""
    if len({other.student for other in candidates}) != 1 or any(
        other.origin.platform != folders_of_students.name for other in candidates
    ):
        return candidates
    mixed = thrown_together(candidates)
    said = "are of the same exercise, and may be of several students"
    for group in mixed.values():
        where = group[0].origin.download
        done.not_taken.append(f"{where}: {paths_of(group)} {said}. Next: give each student a folder, there")
    left_out = [candidate for group in mixed.values() for candidate in group]
    return [other for other in candidates if other not in left_out]


def _returned(download: Path, feedback: Sequence[Found]) -> list[str]:
    """Return what of a download went back to students, and is left out: each script and notebook, and how many files more."""
    attempts = [file for file in feedback if file.content is not None]
    said = "went back to the student as feedback, and is left out"
    each = [f"{shown(download.name)}: {'/'.join(map(shown, file.path))} {said}" for file in attempts]
    more = len(feedback) - len(attempts)
    return each + [f"{shown(download.name)}: other files that went back to students, and are left out: {more}"] * bool(
        more
    )


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
