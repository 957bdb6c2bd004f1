"""What is graded already: one line a submission, noted once its result is on disk, with a key of all it was made from.

A run that was stopped goes on where it stopped, and a run that is repeated grades only what changed:
both look the key up. A line that a power cut tore is no line.
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
ENDS = (".py", ".ipynb")  # of what is handed in
SUFFIXES = (".py", ".yaml", ".json", ".safetensors")  # of what a course and the engine are made of
SOURCES = ("course.yaml", "solutions", "exercises", "grader")  # of the course: what a result depends on
ENGINE = Path(__file__).parents[1]


@dataclass(frozen=True)
class Journal:
    """The journal of one folder of results, for one way of grading."""

    folder: Path
    limit_kib: int  # the largest file that is read
    run: str  # the part of every key that is the same for all submissions
    lines: dict[str, str]  # "student/assignment" -> key

    def known(self, submission: Submission, key: str) -> Result | None:
        """The result that is on disk, if it has this key."""
        return self.on_disk(submission) if self.lines.get(_name(submission)) == key else None

    def on_disk(self, submission: Submission) -> Result | None:
        """The result that is there, whatever it was made from; None where none can be read."""
        try:
            path = result_path(self.folder, submission.student, submission.assignment.id)
            return Result.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            return None

    def note(self, submission: Submission, key: str) -> None:
        """Say that the result with this key is on disk. The key is from before it was graded: files may change meanwhile."""
        line = json.dumps([_name(submission), key])
        with (self.folder / NAME).open("a", encoding="utf-8") as file:
            file.write(f"\n{line}\n")  # a torn line before this one stays alone
            file.flush()
            os.fsync(file.fileno())

    def key(self, submission: Submission) -> str:
        """A hash of what was handed in, by whom, and of how it is graded."""
        return submission_key(submission, self.run, self.limit_kib)


def open_journal(folder: Path, course: Course, plan: GradePlan) -> Journal:
    """The journal of a folder, empty where there is none."""
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
    """A hash of what was handed in, by whom, and of a run's key."""
    names = (f"{e.stem}{end}" for e in submission.assignment.exercises for end in ENDS)
    return _hash([run, _name(submission), *(_handed_in(submission.folder / name, limit_kib) for name in names)])


def _handed_in(path: Path, limit_kib: int) -> str:
    """A hash of a file, or the sentence that says why there is none."""
    if not os.path.lexists(path):
        return "missing"
    try:
        return hashlib.sha256(read_bytes(path, limit_kib)).hexdigest()
    except Unreadable as error:
        return str(error)


def run_key(course: Course, plan: GradePlan) -> str:
    """A hash of all that two results of the same files may differ by: the course, the engine, versions, options, secret."""
    roots = [course.root / name for name in SOURCES]
    roots.append(ENGINE)
    files = sorted(path for root in roots for path in _files(root))
    options = (plan.level, plan.device, str(plan.seed), *plan.exercises)
    versions = [f"{name} {_version(name)}" for name in PACKAGES]
    secret = hashlib.sha256(b"journal" + plan.secret).hexdigest()
    return _hash(
        [secret, *options, *versions, *(f"{path} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in files)]
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
