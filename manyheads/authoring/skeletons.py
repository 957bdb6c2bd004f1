"""Write what a new author starts from: a small complete course, or the skeleton of an exercise."""

from __future__ import annotations

import re
from pathlib import Path
from shlex import quote

import yaml
from pydantic import ValidationError

from ..course import Course, CourseError
from ..course.file import CourseFile
from ..course.load import Loader
from ..whole import write_whole
from .packages import HASH_FILE, engine_wheel
from .templates import as_they_are, filled

FILL = "FILL:"  # the mark of a place to fill; `course verify` finds those that are left
_ID = re.compile(r"[a-z][a-z0-9_]*")
_BY_HAND = "Next: write the row into course.yaml by hand"


def new_exercise(course: Course, assignment: str, exercise: str) -> list[Path]:
    """Write the skeleton, its row in course.yaml and its texts. Returns the paths of the files.

    assignment: the id of an existing or a new assignment.

    Raises CourseError, without having written anything, if an id is invalid, the exercise or one of its files exists, or
    the form of course.yaml does not allow adding a row.
    """
    for id_ in (assignment, exercise):
        if not _ID.fullmatch(id_):
            raise CourseError(
                f"{id_!r} is not an id: use lower case letters, digits and underscores. Next: course new averages/median"
            )
    if any(other.id == exercise for other in course.exercises):
        raise CourseError(f"the exercise {exercise} exists already. Next: course verify {exercise}")
    there = next((other for other in course.assignments if other.id == assignment), None)
    number = len(there.exercises) + 1 if there else 1
    words = {
        "id": exercise,
        "title": exercise.replace("_", " ").capitalize(),
        "number": str(number),
        "stem": f"{number:02d}_{exercise}",
        "assignment": assignment,
        "assignment_title": assignment.replace("_", " ").capitalize(),
    }
    made = {name: content.decode() for name, content in filled("exercise", words)}
    files = {
        course.root / "solutions" / assignment / f"{number:02d}_{exercise}.py": made["solution.py"],
        course.root / "grader" / "checks" / f"test_{exercise}.py": made["checks.py"],
        course.root / "grader" / "misconceptions" / f"{exercise}.py": made["misconceptions.py"],
        course.root / "grader" / "right" / exercise / "another_way.py": made["right.py"],
    }
    for path in files:
        if path.exists():
            raise CourseError(f"{path} exists already: nothing is written. Next: mv {quote(str(path))} elsewhere")
    row = made["row.yaml"] if there else made["assignment.yaml"] + _indented(made["row.yaml"], 4)
    settings, texts = course.root / "course.yaml", course.root / "grader" / "texts.yaml"
    files[settings] = _with_row(settings.read_text(encoding="utf-8"), assignment if there else None, row)
    files[texts] = (texts.read_text(encoding="utf-8") if texts.exists() else "") + made["texts.yaml"]
    for path, text in files.items():
        write_whole(path, text.encode())
    return list(files)


def _with_row(text: str, assignment: str | None, row: str) -> str:
    """course.yaml with the row added at the end of this assignment, or of the list of assignments. Comments are kept."""
    rows = _child(yaml.compose(text, yaml.SafeLoader), "assignments")
    if assignment is not None:
        found = (each for each in rows.value if _child(each, "id").value == assignment)
        rows = _child(next(found, None), "exercises")
    if not isinstance(rows, yaml.SequenceNode) or rows.flow_style or not rows.value:
        raise CourseError(f"course.yaml lists its exercises in a way that no row can be added to. {_BY_HAND}")
    lines = text.splitlines(keepends=True)
    end = rows.value[-1].end_mark.line
    while end > 0 and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    if lines[end - 1][-1:] != "\n":
        lines[end - 1] += "\n"
    changed = "".join([*lines[:end], _indented(row, rows.start_mark.column), *lines[end:]])
    try:
        CourseFile.model_validate(Loader(changed).get_single_data())
    except (yaml.YAMLError, ValidationError) as error:
        raise CourseError(f"course.yaml would become invalid ({str(error).splitlines()[0]}). {_BY_HAND}") from None
    return changed


def _child(node: yaml.Node | None, key: str) -> yaml.Node:
    for name, value in node.value if isinstance(node, yaml.MappingNode) else ():
        if name.value == key:
            return value  # type: ignore[no-any-return]
    raise CourseError(f"course.yaml has no {key!r} where it is needed. {_BY_HAND}")


def _indented(text: str, columns: int) -> str:
    return "".join(f"{' ' * columns}{line}\n" for line in text.splitlines())


# `course init`: write a small complete course to a new folder, with the engine as one file.


def init_course(folder: Path, title: str) -> list[Path]:
    """Write the course. Returns the paths of its files.

    Raises CourseError, without having written anything, if the folder contains anything but a git repository.
    """
    if folder.exists() and (not folder.is_dir() or {path.name for path in folder.iterdir()} - {".git"}):
        raise CourseError(f"{folder} is not empty: nothing is written. Next: course init with a new folder's name")
    engine = engine_wheel(templates=True)
    words = {"title": title, "wheel": next(name for name in engine if name != HASH_FILE)}
    files = {**engine, **dict(as_they_are("shared")), **dict(filled("course", words))}
    for name, content in files.items():
        write_whole(folder / name, content)
    return [folder / name for name in files]
