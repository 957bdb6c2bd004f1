"""The students' class repository, as bytes: all that it holds, and nothing that is the instructor's."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from string import Template

from ..course import Course, CourseError
from ..report.words import points

ENGINE = Path(__file__).parents[1]
TEMPLATES = Path(__file__).parent / "class_repository"
OWNER = re.compile(r"@[A-Za-z0-9_-]+(/[A-Za-z0-9_.-]+)?")
MANIFEST = ".github/released.json"  # what a release wrote, so that a later one knows its own files
COPIED = (  # from the engine's repository, as they are
    ".github/workflows/grade.yml",
    "LICENSE",
    "constraints.txt",
    "pyproject.toml",
    "tools/allow-namespaces",
    "tools/build-venv",
    "tools/find-python",
    "tools/system-install",
)


class _Words(Template):
    """`@@name` is filled in: what a Makefile and a workflow mean by a dollar stays theirs."""

    delimiter = "@@"


def bundle(course: Course, exercises: Iterable[Path], owner: str) -> dict[str, bytes]:
    """Every file of the class repository by its path, the manifest among them. Raises CourseError.

    exercises: the files that `write_release` has written.
    """
    if not OWNER.fullmatch(owner):
        raise CourseError(
            f"{owner!r} is no login or team. Next: course release --out DIR --owner @ada, or @school/team"
        )
    files = {str(path.relative_to(course.root)): path.read_bytes() for path in exercises}
    files["course.yaml"] = (course.root / "course.yaml").read_bytes()
    files |= dict(engine()) | dict(_copied()) | dict(_templates(course, owner))
    files = dict(sorted(files.items()))
    return {**files, MANIFEST: _manifest(files, owner)}


def engine() -> Iterable[tuple[str, bytes]]:
    """The package, but for what only makes a release."""
    for path in sorted(ENGINE.rglob("*")):
        inside = path.relative_to(ENGINE)
        if not path.is_file() or TEMPLATES in path.parents:
            continue
        if "__pycache__" in inside.parts or path.name.startswith(".") or path.suffix == ".pyc":
            continue
        yield f"manyheads/{inside}", path.read_bytes()


def _copied() -> Iterable[tuple[str, bytes]]:
    for name in COPIED:
        try:
            yield name, (ENGINE.parent / name).read_bytes()
        except OSError:
            raise CourseError(
                f"{name} is not beside the engine: a class repository is made from a checkout of the course, not from "
                "an installed package. Next: course release --out DIR, in the course's own repository"
            ) from None


def _templates(course: Course, owner: str) -> Iterable[tuple[str, bytes]]:
    assignment = course.assignments[0]
    first = assignment.exercises[0]
    words = {
        "owner": owner,
        "title": course.title,
        "limit": str(course.limits.source_kib),
        "first": first.id,
        "first_file": f"exercises/{assignment.id}/{first.stem}.py",
        "attempts": "\n".join(
            f"/{path.relative_to(course.root)}" for e in course.exercises for path in (e.script, e.notebook)
        ),
        "exercises": "\n".join(
            f"| `exercises/{a.id}/{e.stem}.py` | {e.title} | {points(e.points)} |"
            for a in course.assignments
            for e in a.exercises
        ),
    }
    for path in sorted(TEMPLATES.rglob("*")):
        if path.is_file():
            text = _Words(path.read_text(encoding="utf-8"))
            yield str(path.relative_to(TEMPLATES)), text.substitute(words).encode()


def _manifest(files: Mapping[str, bytes], owner: str) -> bytes:
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    return (json.dumps({"owner": owner, "files": digests}, indent=1) + "\n").encode()
