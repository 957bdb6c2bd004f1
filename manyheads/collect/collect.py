"""From downloads to submitted/<student>/<assignment>/NN_name.py."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from ..course import Assignment, Course
from ..errors import CourseFault
from ..submission import ENDINGS, shown
from ..submission.roster import Roster
from .blackboard import Blackboard
from .brightspace import Brightspace
from .canvas import Canvas
from .clones import Clones
from .commits import commit_time
from .exercise import Exercises, NotAsked, NotPlaced
from .folders import Folders as StudentFolders
from .found import Limits, Refused
from .google import Google
from .gradescope import Gradescope
from .identify import Folders, NoFolder
from .lay_out import Candidate, Laid, digest_of, lay_out
from .memory import Origin, read_memory
from .moodle import Moodle
from .platform import Contents, Download, HandedIn, Platform
from .read import Reader
from .teams import Teams

# Folders take what no other knows.
PLATFORMS: tuple[Platform, ...] = (
    *(Gradescope(), Moodle(), Canvas(), Brightspace(), Blackboard(), Teams(), Google(), Clones()),
    StudentFolders(),
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
    candidates: dict[tuple[str, str], list[Candidate]] = defaultdict(list)
    for download in downloads:
        read = Download(download.resolve().name, tuple(reader.read(download)))
        _tell(done, download, reader.refused)
        reader.refused.clear()
        for platform, contents in _read_as(read, course).items():
            done.platforms.setdefault(download.name, []).append(platform.name)
            _tell(done, download, contents.others)
            for each in contents.handed_in:
                try:
                    candidate = _candidate(each, platform.name, download, folders, exercises)
                except NotAsked:
                    left_out += 1
                except (NotPlaced, NoFolder) as error:
                    _tell(done, download, [Refused(each.file.path, str(error))])
                else:
                    candidates[candidate.student, candidate.exercise.id].append(candidate)
    try:
        for key in sorted(candidates):
            done.laid += lay_out(candidates[key], out, memory)
    finally:
        memory.folders = folders.taken
        if candidates:
            memory.write(out)
    done.said = [f"{shown(student)}: {sentence}" for student, sentence in sorted(folders.said.items())]
    done.said += [f"of other assignments, and left out: {left_out}"] * bool(left_out)
    return done


def _read_as(download: Download, course: Course) -> dict[Platform, Contents]:
    """What each platform makes of the download; each sees what those before it left."""
    found, left = {}, list(download.files)
    for platform in PLATFORMS:
        contents = platform.read(left, download, course) if left else Contents()
        if paths := contents.paths:
            found[platform] = contents
            left = [file for file in left if file.path not in paths]
    return found


def _candidate(each: HandedIn, platform: str, download: Path, folders: Folders, exercises: Exercises) -> Candidate:
    """The file as it may be laid out. Raises NotPlaced, NoFolder."""
    ending = PurePath(each.name).suffix.lower()
    content = each.file.content
    if ending not in ENDINGS or content is None:
        raise NotPlaced("is no script and no notebook. Next: ask for it as .py or .ipynb, if it was to be graded")
    exercise = exercises.of(each.name, content)
    origin = Origin(
        platform=platform,
        order=each.order,
        modified=each.file.modified,
        digest=digest_of(content),
        download=shown(download.name),
        path="/".join(map(shown, each.file.path)),
        handed_in=each.time or (commit_time(download, each.file.path) if platform == Clones.name else ""),
        late=each.late,
        named=each.named,
    )
    return Candidate(folders.of(platform, each.person), exercise, ending, content, origin, each.late)


def _tell(done: Collected, download: Path, refused: Iterable[Refused]) -> None:
    where = shown(download.name)
    done.not_taken += [f"{where}: {'/'.join(map(shown, each.path))} {each.reason}" for each in refused]


def _refuse_out(out: Path, downloads: Sequence[Path]) -> None:
    """Raise CourseFault where the folder to fill is no folder, or is read at the same time."""
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise CourseFault(f"{out} is no folder. Next: give --out another name")
    target = out.resolve()
    for download in downloads:
        if target == download.resolve() or target.is_relative_to(download.resolve()):
            raise CourseFault(f"{out} is in {download}, which is read. Next: give --out a folder elsewhere")
