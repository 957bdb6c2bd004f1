"""Say why something in the submitted folder is not graded, and keep the reasons beside the results."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from ..course import Assignment, Course, Exercise
from ..errors import CourseFault
from ..whole import write_whole

# What lies in the submitted folder and is not graded, with the reason: shown after a run, and kept beside its results.

NAME = "not-graded.json"


class NotGraded(BaseModel):
    """A file or folder that is not graded. reason: a sentence that ends with what to do next."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str  # within the submitted folder, as it can be shown anywhere
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


_LIST = TypeAdapter(list[NotGraded])


def shown(name: str) -> str:
    """Return the name, or its escaped form where it could change what a terminal, a log or a page shows."""
    return name if name.isprintable() and "::" not in name else ascii(name)


def write_not_graded(others: Sequence[NotGraded], results: Path) -> None:
    """Write the list into a folder of results. Raises CourseFault."""
    path = results / NAME
    try:
        write_whole(path, _LIST.dump_json(list(others), indent=1) + b"\n")
    except OSError as error:
        raise CourseFault(f"{path} cannot be written ({error.strerror}). Next: give --out another folder") from None


def read_not_graded(results: Path) -> list[NotGraded]:
    """Return the list that the last run wrote; empty where there is none. Raises CourseFault."""
    path = results / NAME
    try:
        return _LIST.validate_json(path.read_bytes())
    except FileNotFoundError:
        return []
    except (OSError, ValidationError):
        raise CourseFault(f"{path} cannot be read. Next: remove it, then course grade again") from None


# Names that systems, editors and nbgrader leave beside what is handed in. They mean nothing, and nothing is said of
# them.

_NOISE = (
    ".DS_Store", "._*", "__MACOSX", "desktop.ini", "Thumbs.db", ".*.swp",
    "__pycache__", "*.pyc", ".ipynb_checkpoints", ".pytest_cache", ".mypy_cache", ".ruff_cache",
    ".venv", "site-packages", "dist-packages", "node_modules", ".tox", ".nox",  # a virtual environment, of whatever name
    ".course",  # what our own commands remember
    ".git", ".gitignore", ".gitattributes", ".gitkeep", ".vscode", ".idea",
    ".collected.json*", ".collecting",  # what `course collect` remembers
    "timestamp.txt", "submission_secret.txt",  # nbgrader's
)  # fmt: skip


def is_noise(name: str) -> bool:
    """Return whether a file or folder of this name is no part of what was handed in."""
    return any(fnmatchcase(name, pattern) for pattern in _NOISE)


# Why something in the submitted folder is not graded: a sentence for each file and folder that no submission takes.

ENDINGS = (".py", ".ipynb")
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".7z", ".rar", ".gz")
DEPTH, MOST = 4, 500  # how far below a student's folder exercises are looked for, and among how many entries
MOST_NAMED = 20  # entries of one folder that are named, each with its reason
LINK = "is a link, and links are not followed. Next: put the files themselves there"
_RENAME = "Next: rename it, then run the same command again"
DOT = f"begins with a dot, and such names are passed over. {_RENAME}"


@dataclass(frozen=True)
class LeftOver:
    """Finds what is left over in one submitted folder."""

    course: Course
    submitted: Path

    def at_top(self, path: Path) -> NotGraded:
        """Return a file, a link, or a name with a dot, beside the students' folders."""
        if path.name.startswith(".") and not path.is_symlink():
            return self._said(path, DOT)
        loose = f"is a loose file: nobody can tell whose it is. {self._collect}"
        other = "is no student's folder. Next: move it elsewhere, then run the same command again"
        return self._said(path, self._unopened(path) or (loose if path.name.lower().endswith(ENDINGS) else other))

    def closed(self, path: Path) -> NotGraded:
        """Return what may not be read: no points are given for it, and none are taken."""
        again = f"Next: chmod -R u+rwX {shlex.quote(shown(str(path)))}, then the same command again"
        return self._said(path, f"may not be read by who runs this. {again}")

    def of_student(self, folder: Path) -> Iterator[NotGraded]:
        """Yield what a student's folder holds beside assignments; one sentence for all of it where it holds no assignment."""
        ids = {assignment.id for assignment in self.course.assignments}
        entries = _entries(folder)
        graded = [path for path in entries if path.name in ids and path.is_dir() and not path.is_symlink()]
        others = [path for path in entries if path not in graded and not self._is_nbgraders(path)]
        if graded or len(others) == 1:
            yield from self.some(folder, (self._said(path, self._reason(path)) for path in others))
        elif not entries:
            yield self._said(folder, "is empty. Next: remove it, or put there what was handed in")
        elif others:
            first = min(others, key=self._weight)
            yield self._said(
                first, f"is not graded, nor is what lies beside it ({len(others) - 1} more): it {self._reason(first)}"
            )
        for path in graded:
            assignment = next(other for other in self.course.assignments if other.id == path.name)
            yield from self.of_assignment(assignment, path)

    def of_assignment(self, assignment: Assignment, folder: Path) -> Iterator[NotGraded]:
        """Yield what an assignment's folder holds beside files that have an exercise's name."""
        stems = (assignment.id, *(stem for exercise in assignment.exercises for stem in exercise.stems))
        known = {stem + ending for stem in stems for ending in ENDINGS}
        handed_out = {path.name for path in assignment.exercises_folder.glob("*")}
        entries = _entries(folder)
        if not entries:
            yield self._said(folder, "is empty: every exercise counts as missing. Next: put there what was handed in")
        there = {path.name for path in entries}
        others = [path for path in entries if path.name not in known | handed_out]
        yield from self.some(folder, (self._said(path, self._misplaced(assignment, path, there)) for path in others))

    def some(self, folder: Path, said: Iterator[NotGraded]) -> Iterator[NotGraded]:
        """Yield the first sentences on what a folder holds, and one that counts the others."""
        yield from islice(said, MOST_NAMED)
        if more := sum(1 for _ in said):
            yield self._said(folder, f"holds {more} more that are not graded. {self._collect}")

    def _unopened(self, path: Path) -> str:
        """Return why a link or an archive is not graded; "" for anything else."""
        if path.is_symlink():
            return LINK
        return f"is an archive, and `course grade` opens none. {self._collect}" if is_archive(path.name) else ""

    def _misplaced(self, assignment: Assignment, path: Path, there: set[str]) -> str:
        """Return why a file in an assignment's folder is not graded. there: the names beside it."""
        if unopened := self._unopened(path):
            return unopened
        if path.is_dir():
            return f"is a folder within an assignment's folder, and is not looked into. {self._collect}"
        is_attempt = path.name.lower().endswith(ENDINGS)
        for exercise in assignment.exercises if is_attempt else ():
            if is_of(path.name, exercise):
                proper = [exercise.stem + ending for ending in ENDINGS]
                if beside := [name for name in proper if name in there]:
                    return f"is not graded, for {beside[0]} stands beside it. Next: remove the one that does not count"
                return f"should be named {' or '.join(proper)}. {_RENAME}"
        whole = f", or to {assignment.id}{path.suffix.lower()}, if it holds several" if is_attempt else ""
        return f"has no exercise's name. Next: remove it, or rename it to the exercise that it is{whole}"

    def _is_nbgraders(self, path: Path) -> bool:
        """Return whether this is an assignment that nbgrader alone grades: it stands in source/, and not in course.yaml."""
        return path.is_dir() and not path.is_symlink() and (self.course.root / "source" / path.name).is_dir()

    def _reason(self, path: Path) -> str:
        """Return why an entry of a student's folder is not graded."""
        alike = next((a.id for a in self.course.assignments if plain(a.id) == plain(path.name)), None)
        if unopened := self._unopened(path):
            return unopened
        if alike and path.is_dir():
            return f"should be named {alike}. {_RENAME}"
        if alike:
            return f"is a file where a folder should be, {alike}/. {self._collect}"
        if path.name.startswith("."):
            return DOT
        if path.is_dir() and not _entries(path):
            return "is an empty folder. Next: remove it, or put there what was handed in"
        if path.is_dir() and self._holds_exercises(path):
            return f"has exercises one folder too deep, or more. {self._collect}"
        if path.is_dir():
            ids = ", ".join(assignment.id for assignment in self.course.assignments)
            return f"is no assignment of this course (there are: {ids}). {_RENAME}"
        if not path.name.lower().endswith(ENDINGS):
            return "is of no assignment. Next: remove it, then run the same command again"
        of = next((e.assignment.id for e in self.course.exercises if is_of(path.name, e)), "")
        move = f"Next: move it into a folder {of} beside it, then run the same command again"
        return f"lies outside an assignment's folder. {move if of else self._collect}"

    def _weight(self, path: Path) -> tuple[bool, bool, bool]:
        """Sort entries: first what says most about where the exercises are."""
        return (not self._reason(path).endswith(self._collect), not path.is_dir(), path.name.startswith("."))

    def _holds_exercises(self, folder: Path) -> bool:
        """Return whether an exercise, an assignment's folder or an archive is somewhere below."""
        ids, level = {plain(assignment.id) for assignment in self.course.assignments}, [folder]
        for _ in range(DEPTH):
            level = [path for entry in level for path in _entries(entry)]
            if len(level) > MOST:
                return True  # more than anybody can be told about
            for path in level:
                if plain(path.name) in ids or is_archive(path.name) or path.name.lower().endswith(ENDINGS):
                    return True
            level = [path for path in level if not path.is_symlink()]
        return False

    @property
    def _collect(self) -> str:
        return f"Next: course collect {shlex.quote(shown(str(self.submitted)))} --out collected, then course grade collected"

    def _said(self, path: Path, reason: str) -> NotGraded:
        parts = path.relative_to(self.submitted).parts
        return NotGraded(path="/".join(map(shown, parts)) or ".", reason=reason)


def is_archive(name: str) -> bool:
    """Return whether a file of this name is an archive, also one that nobody here can open."""
    return name.lower().endswith(ARCHIVES)


def is_of(name: str, exercise: Exercise) -> bool:
    """Return whether this file's name contains the exercise's id."""
    return exercise.id in name.lower().replace("-", "_").replace(" ", "_")


def plain(name: str) -> str:
    """Return a folder's name without what people spell differently: case, and what joins words."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def _entries(folder: Path) -> list[Path]:
    """Return what a folder holds, without what means nothing; nothing where it cannot be read."""
    try:
        return sorted(path for path in folder.iterdir() if not is_noise(path.name))
    except OSError:
        return []
