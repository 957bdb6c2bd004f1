"""Write the exercise files of a pull request as a submission."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from ..course import Assignment, Course
from ..errors import CourseFault
from .head import Head
from .runner import PullRequest

ENDS = (".py", ".ipynb")
ABOUT = "collected.json"


class Collected(BaseModel):
    """Which pull request was collected."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    student: str
    number: int
    head: str
    refused: tuple[str, ...]  # a sentence for each file that is not taken


def collect(course: Course, asked: PullRequest, remote: str, token: str, out: Path) -> Collected:
    """Write OUT/<student>/<assignment>/NN_name.py and .ipynb as the head has them. Raises HeadError, CourseFault."""
    if out.exists() and any(out.iterdir()):
        raise CourseFault(f"{out} is not empty. Next: rm -r {out}")
    wanted = dict(_wanted(course))
    refused = []
    with tempfile.TemporaryDirectory() as folder:
        head = Head(Path(folder), remote, asked.head, token, course.limits.source_kib)
        for entry in head.entries(list(wanted)):
            if entry.refused:
                refused.append(entry.refused)
                continue
            path = out / asked.student / wanted[entry.path].id / Path(entry.path).name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(entry.content)
    for assignment in course.assignments:  # also if nothing was handed in
        (out / asked.student / assignment.id).mkdir(parents=True, exist_ok=True)
    collected = Collected(student=asked.student, number=asked.number, head=asked.head, refused=tuple(refused))
    (out / ABOUT).write_text(collected.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return collected


def read_collected(folder: Path) -> Collected:
    """Read what `collect` wrote. Raises CourseFault."""
    try:
        return Collected.model_validate_json((folder / ABOUT).read_bytes())
    except (OSError, ValidationError):
        raise CourseFault(f"{folder} holds no collected pull request. Next: course ci collect --out {folder}") from None


def _wanted(course: Course) -> Iterator[tuple[str, Assignment]]:
    """Every path that is read, with its assignment. No other path is read."""
    for assignment in course.assignments:
        for exercise in assignment.exercises:
            for end in ENDS:
                yield f"exercises/{assignment.id}/{exercise.stem}{end}", assignment
