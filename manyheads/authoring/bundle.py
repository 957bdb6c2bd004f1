"""Make the content of the students' class repository. It holds nothing that is the instructor's."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..course import Course, CourseError, Exercise
from ..report.words import points
from ..submission import largest
from .templates import as_they_are, filled
from .wheel import HASH_FILE, engine_wheel

OWNER = re.compile(r"@[A-Za-z0-9_-]+(/[A-Za-z0-9_.-]+)?")
MANIFEST = ".github/released.json"  # lists the released files, so that the next release recognises them


def bundle(course: Course, exercises: Iterable[Path], owner: str) -> dict[str, bytes]:
    """Every file of the class repository by its path, including the manifest. Raises CourseError.

    exercises: the paths of the files that `write_release` returned.
    """
    if not OWNER.fullmatch(owner):
        raise CourseError(
            f"{owner!r} is not a login or team. Next: course release --out DIR --owner @ada, or @school/team"
        )
    files = {str(path.relative_to(course.root)): path.read_bytes() for path in exercises}
    files["course.yaml"] = (course.root / "course.yaml").read_bytes()
    if (licence := course.root / "LICENSE").exists():
        files["LICENSE"] = licence.read_bytes()
    wheel = engine_wheel()
    files |= (
        wheel
        | dict(as_they_are("shared"))
        | dict(filled("class", _words(course, owner, min(wheel.keys() - {HASH_FILE}))))
    )
    files = dict(sorted(files.items()))
    return {**files, MANIFEST: _manifest(files, owner)}


def _words(course: Course, owner: str, wheel: str) -> dict[str, str]:
    first = course.exercises[0]
    return {
        "owner": owner,
        "wheel": wheel,
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
            f"/{path.relative_to(course.root)}" for e in course.exercises for path in (e.script, e.notebook)
        ),
        "exercises": "\n".join(
            f"| `{e.script.relative_to(course.root)}` | {e.title} | {points(e.points)} |" for e in course.exercises
        ),
    }


def _name_of(course: Course, exercise: Exercise) -> str:
    """The shortest that a command takes for it: its number, or its id where another assignment has that number, too."""
    number = f"{exercise.number:02d}"
    return number if sum(each.number == exercise.number for each in course.exercises) == 1 else exercise.id


def _command_lines(course: Course, first: str) -> str:
    """The README's lines about what a student can ask for, as far as the course has something for it."""
    lines = {
        "status": "the ladder: done, in progress, untouched, what is next",
        "check --watch": "check again at every save",
        f"hint {first}": "a question, then a pointer, then nearly the answer",
        f"trace {first}": "your own lines: what each does to shapes, and where every number goes",
        f"plot {first}": "expected, yours and the difference, as a picture",
    }
    able = next((_name_of(course, each) for each in course.exercises if each.train is not None), None)
    if able is not None:
        lines[f"train {able}"] = "your own attention learns to write, in a minute; --page: with its heads, on a page"
        lines["bench --quick"] = "attention by hand against SDPA on your machine, beside the lesson's figures"
    if any(each.generate is not None for each in course.exercises):
        lines["generate"] = "it writes with your own cache, and without: the same text, in less time"
    measured = next((each.id for each in course.assignments if any(e.bench for e in each.exercises)), None)
    if measured is not None:
        lines[f"bench {measured}"] = "what your own code costs while one size grows; --out bench.png"
    lines["--help"] = "all of them"
    width = max(map(len, lines))
    return "".join(f"    .venv/bin/course {command:<{width}} # {says}\n" for command, says in lines.items())


def _manifest(files: Mapping[str, bytes], owner: str) -> bytes:
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    return (json.dumps({"owner": owner, "files": digests}, indent=1) + "\n").encode()
