"""The journal: a line for each submission whose result is on disk, with a hash of everything that the result depends on.

With it a stopped run continues where it stopped, and a repeated run grades only what has changed. An incomplete line,
which a power cut can leave, is ignored.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from pydantic import ValidationError

from ..course import Course
from ..result import Result, result_path
from ..submission import Submission, Unreadable, read_bytes
from .plan import GradePlan

NAME = ".journal"
PACKAGES = ("torch", "numpy", "einops", "pytest")
ENDS = (".py", ".ipynb")  # the suffixes of attempts
SUFFIXES = (
    ".py",
    ".yaml",
    ".json",
    ".safetensors",
)  # the suffixes of the files that a course and the engine consist of
SOURCES = ("solutions", "exercises", "grader")  # the parts of the course that a result depends on, course.yaml besides
ENGINE = Path(__file__).parents[1]


@dataclass(frozen=True)
class Journal:
    """The journal of one folder of results, for one grading plan."""

    folder: Path
    limit_kib: int  # the largest file that is read
    run: str  # the part of the key that all submissions share
    lines: dict[str, str]  # "student/assignment" -> key

    def known(self, submission: Submission, key: str) -> Result | None:
        """The result on disk, if the journal has this key for it."""
        return self.on_disk(submission) if self.lines.get(_name(submission)) == key else None

    def on_disk(self, submission: Submission) -> Result | None:
        """The result on disk, whatever its key; None if none can be read."""
        try:
            path = result_path(self.folder, submission.student, submission.assignment.id)
            return Result.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            return None

    def note(self, submission: Submission, key: str) -> None:
        """Record that the result with this key is on disk. The key was computed before grading, as files may change since."""
        line = json.dumps([_name(submission), key])
        with (self.folder / NAME).open("a", encoding="utf-8") as file:
            file.write(f"\n{line}\n")  # the leading newline ends an incomplete line
            file.flush()
            os.fsync(file.fileno())

    def key(self, submission: Submission) -> str:
        """A hash of the submitted files, the student, and the run's key."""
        return submission_key(submission, self.run, self.limit_kib)


def open_journal(folder: Path, course: Course, plan: GradePlan) -> Journal:
    """Read the journal of a folder; it is empty if there is none."""
    lines: dict[str, str] = {}
    path = folder / NAME
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else ():
        try:
            name, key = json.loads(line)
        except ValueError:
            continue
        lines[str(name)] = str(key)
    return Journal(folder, course.limits.source_kib, run_key(course, plan), lines)


def submission_key(submission: Submission, run: str, limit_kib: int) -> str:
    """A hash of the submitted files, the student, and the run's key."""
    names = (f"{e.stem}{end}" for e in submission.assignment.exercises for end in ENDS)
    return _hash([run, _name(submission), *(_handed_in(submission.folder / name, limit_kib) for name in names)])


def _handed_in(path: Path, limit_kib: int) -> str:
    """A hash of a file, or the sentence that says why it cannot be read."""
    if not os.path.lexists(path):
        return "missing"
    try:
        return hashlib.sha256(read_bytes(path, limit_kib)).hexdigest()
    except Unreadable as error:
        return str(error)


def run_key(course: Course, plan: GradePlan) -> str:
    """A hash of everything else that a result depends on: the course, the engine, versions, options, the secret."""
    roots = [course.root / name for name in SOURCES]
    roots.append(ENGINE)
    files = sorted(path for root in roots for path in _files(root))
    options = (plan.level, plan.device, str(plan.seed), str(plan.lines), *plan.exercises)
    versions = [f"{name} {_version(name)}" for name in PACKAGES]
    secret = hashlib.sha256(b"journal" + plan.secret).hexdigest()
    return _hash(
        [
            secret,
            _rows(course),
            *options,
            *versions,
            *(f"{path} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in files),
        ]
    )


def _rows(course: Course) -> str:
    """course.yaml without what changes no result: dates, and what a gradebook gets."""
    decided = {"due", "late"}
    return course.file.model_dump_json(
        exclude={"assignments": {"__all__": decided}, "late": True, "time_zone": True, "not_handed_in": True}
    )


def _files(root: Path) -> Iterable[Path]:
    if root.is_file():
        return [root]
    return (path for path in root.rglob("*") if path.suffix in SUFFIXES and "__pycache__" not in path.parts)


def _name(submission: Submission) -> str:
    return f"{submission.student}/{submission.assignment.id}"


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "none"


def _hash(parts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()
