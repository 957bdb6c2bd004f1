"""Make the students' class repository, and write it into a folder: whole or not at all, and over nobody's work."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from ..course import Course, CourseError, Exercise
from ..errors import CourseFault
from ..report.words import points
from ..submission import largest
from .leaks import finished_modules, leaks
from .packages import HASH_FILE, engine_wheel
from .release_exercises import write_changed
from .templates import as_they_are, filled

OWNER = re.compile(r"@[A-Za-z0-9_-]+(/[A-Za-z0-9_.-]+)?")
QUESTIONS = "grader/questions.md"  # of the course: what its students ask, for the class repository's README
PAGE = re.compile(r"\]\(\.\./\.\./(docs/[\w-]+\.md)\)")  # of the course, to which a lesson links
MANIFEST = ".github/released.json"  # lists the released files, so that the next release recognises them


def bundle(course: Course, exercises: Iterable[Path], owner: str) -> dict[str, bytes]:
    """Return every file of the class repository by its path, including the manifest. Raises CourseError.

    exercises: the paths of the files that `write_release` returned.
    """
    if not OWNER.fullmatch(owner):
        said = f"{owner!r} is not a login or team"
        raise CourseError(f"{said}. Next: course release --out DIR --owner @ada, or @school/team")
    files = {str(path.relative_to(course.root)): path.read_bytes() for path in exercises}
    files |= {str(path.relative_to(course.root)): path.read_bytes() for path in linked_pages(course)}
    files |= {name: text.encode() for name, text in finished_modules(course).items()}
    files["course.yaml"] = (course.root / "course.yaml").read_bytes()
    if (licence := course.root / "LICENSE").exists():
        files["LICENSE"] = licence.read_bytes()
    wheel = engine_wheel()
    words = _words(course, owner, min(wheel.keys() - {HASH_FILE}))
    files = dict(sorted({**files, **wheel, **dict(as_they_are("shared")), **dict(filled("class", words))}.items()))
    manifest = json.dumps({"owner": owner, "files": _digests(files)}, indent=1)
    return {**files, MANIFEST: f"{manifest}\n".encode()}


def linked_pages(course: Course) -> set[Path]:
    """Return the pages of docs/ to which lessons link: the class repository has them, too."""
    lessons = [exercise.solution.read_text(encoding="utf-8") for exercise in course.exercises]
    pages = {course.root / name for lesson in lessons for name in PAGE.findall(lesson)}
    return {page for page in pages if page.is_file()}


def _words(course: Course, owner: str, wheel: str) -> dict[str, str]:
    first = course.exercises[0]
    return {
        "owner": owner,
        "wheel": wheel,
        "own_questions": own.read_text(encoding="utf-8") if (own := course.root / QUESTIONS).exists() else "",
        "title": course.title,
        "limit": str(course.limits.source_kib),
        "notebook_limit": str(largest(".ipynb", course.limits.source_kib)),
        "first": first.id,
        "first_file": str(first.script.relative_to(course.root)),
        "first_notebook": str(first.notebook.relative_to(course.root)),
        "first_folder": str(first.assignment.exercises_folder.relative_to(course.root)),
        "call_seconds": f"{course.limits.seconds_per_call:g}",
        "attempt_seconds": f"{course.limits.seconds_per_attempt:g}",
        "name": _name_of(course, first),
        "commands": _command_lines(course, _name_of(course, first)),
        "attempts": "\n".join(
            f"/{p.relative_to(course.root)}" for e in course.exercises for p in (e.script, e.notebook)
        ),
        "exercises": "\n".join(
            f"| `{e.script.relative_to(course.root)}` | {e.title} | {points(e.points)} |" for e in course.exercises
        ),
    }


def _name_of(course: Course, exercise: Exercise) -> str:
    """Return the shortest that a command takes for it: its number, or its id where another assignment has that number, too."""
    number = f"{exercise.number:02d}"
    return number if sum(other.number == exercise.number for other in course.exercises) == 1 else exercise.id


def _command_lines(course: Course, first: str) -> str:
    """Return the README's lines about what a student can ask for, as far as the course has something for it."""
    lines = {
        "status": "the ladder: done, in progress, untouched, what is next",
        "check --watch": "check again at every save",
        f"hint {first}": "a question, then a pointer, then nearly the answer",
        f"trace {first}": "your own lines: what each does to shapes, and where every number goes",
        f"plot {first}": "expected, yours and the difference, as a picture",
    }
    able = next((_name_of(course, exercise) for exercise in course.exercises if exercise.train is not None), None)
    if able is not None:
        lines[f"train {able}"] = "your own attention learns to write, in a minute"
        lines["bench --quick"] = "attention by hand against SDPA on your machine, beside the lesson's figures"
    lines["--help"] = "all of them"
    width = max(map(len, lines))
    return "".join(f"    .venv/bin/course {command:<{width}} # {says}\n" for command, says in lines.items())


def _digests(files: Mapping[str, bytes]) -> dict[str, str]:
    return {name: hashlib.sha256(content).hexdigest() for name, content in files.items() if name != MANIFEST}


@dataclass(frozen=True)
class Earlier:
    """What an earlier release wrote to a folder: the digest of every file, and the owner that it named."""

    files: Mapping[str, str]
    owner: str | None = None

    def holds(self, files: Mapping[str, bytes]) -> bool:
        """Return whether it wrote just these files."""
        return _digests(files) == self.files


def earlier_release(folder: Path) -> Earlier:
    """Read the manifest of the folder's last release. Raises CourseFault if the folder contains anything else."""
    if not folder.exists():
        return Earlier({})
    if not folder.is_dir() or folder.is_symlink():
        raise CourseFault(f"{folder} is not a folder. Next: course release --out with a new folder's name")
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return Earlier({str(k): str(v) for k, v in manifest["files"].items()}, str(manifest["owner"]))
    except FileNotFoundError:
        if {path.name for path in folder.iterdir()} <= {".git"}:
            return Earlier({})
        said = f"{folder} holds other things than an earlier release: nothing is written"
        raise CourseFault(f"{said}. Next: course release --out with a new folder's name") from None
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        following = f"git -C {quote(str(folder))} checkout {MANIFEST}"
        raise CourseFault(f"{folder / MANIFEST} cannot be read: nothing is written. Next: {following}") from None


def hand_over(course: Course, folder: Path, files: Mapping[str, bytes]) -> list[str]:
    """Write these files, and remove those that only an earlier release wrote. Returns the paths that changed.

    Raises CourseFault, without having changed anything, if something hidden would be published, or if a file is no longer as it
    was released: then it is somebody's work.
    """
    earlier = earlier_release(folder)
    for sentence in leaks(course, files):
        following = f"take it out, then course release --out {quote(str(folder))}"
        raise CourseFault(f"{sentence}: nothing is written. Next: {following}")
    for name in sorted({*files, *earlier.files}):
        _demand_unchanged(folder, name, earlier.files.get(name), files.get(name))
    return _write(folder, files, earlier)


def _demand_unchanged(folder: Path, name: str, released: str | None, new: bytes | None) -> None:
    """Raise CourseFault unless the file is absent, as it was released, or as it will be released."""
    path = folder / name
    for part in (path, *path.relative_to(folder).parents):
        if (folder / part).is_symlink():
            raise CourseFault(f"{folder / part} is a link: nothing is written. Next: rm {quote(str(folder / part))}")
    if not path.exists() or name == MANIFEST:
        return
    content = path.read_bytes() if path.is_file() else None
    if content is not None and (content == new or hashlib.sha256(content).hexdigest() == released):
        return
    said = f"{path} has changed since it was released: nothing is written, because it may be somebody's work"
    raise CourseFault(f"{said}. Next: mv {quote(str(path))} elsewhere, then course release --out {quote(str(folder))}")


def _write(folder: Path, files: Mapping[str, bytes], earlier: Earlier) -> list[str]:
    """Write the files, the manifest last, so that an interrupted release can be repeated; remove folders that become empty."""
    others = {name: content for name, content in files.items() if name != MANIFEST}
    changed = [name for name, content in others.items() if write_changed(folder / name, content)]
    gone = [name for name in sorted(earlier.files.keys() - others.keys()) if (folder / name).exists()]
    for name in gone:
        (folder / name).unlink()
        for parent in Path(name).parents[:-1]:
            if any((folder / parent).iterdir()):
                break
            (folder / parent).rmdir()
    write_changed(folder / MANIFEST, files[MANIFEST])
    return [*changed, *gone]
