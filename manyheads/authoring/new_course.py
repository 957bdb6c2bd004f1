"""Write a small complete course with the engine as one file, or the skeleton of an exercise.

`init_course` is behind `course init`, and `new_exercise` behind `course new`, which can replace an
assignment, such as the example of `course init`. Changes in YAML files keep all other lines with
their comments.
"""

from __future__ import annotations

import json
import keyword
import re
import shutil
import symtable
import unicodedata
from collections.abc import Container, Iterable, Sequence
from pathlib import Path
from shlex import quote
from textwrap import indent
from typing import NamedTuple

from ruamel.yaml import YAML, CollectionNode, MappingNode, Node, SequenceNode

from ..course import Assignment, Course, CourseError, Exercise
from ..diagnosis import load_bank
from ..files import write_whole
from .class_repository import HASH_FILE, engine_wheel
from .templates import as_they_are, filled_templates

FILL = "FILL:"  # the mark of a place to fill; `course verify` finds those that are left
# for each library: the import of a skeleton, the type that its functions take and return, and the
# conversion of a drawn tensor in a check
LIBRARIES = {
    "torch": {"library": "torch", "short": "torch", "type": "torch.Tensor", "given": ""},
    "numpy": {"library": "numpy as np", "short": "np", "type": "np.ndarray", "given": ".numpy()"},
}
_ID = re.compile(r"[a-z][a-z0-9_]*")
_BY_HAND = "Next: change course.yaml by hand"


def new_exercise(
    course: Course,
    assignment: str,
    exercise: str,
    library: str = "torch",
    replaced: Assignment | None = None,
) -> list[Path]:
    """Write the skeleton of an exercise, its row in course.yaml and its texts.

    Args:
        course: The course.
        assignment: The id of an existing or a new assignment.
        exercise: The id of the new exercise.
        library: One of LIBRARIES.
        replaced: Another assignment, or None. Its rows, files and examples are removed when
            everything is written, and so are the texts of its misconceptions that no remaining
            exercise has.

    Returns:
        The paths of the written files, course.yaml and grader/texts.yaml among them.

    Raises:
        CourseError: An id is invalid, no function can have the exercise's name, the exercise or one
            of its files exists, the form of course.yaml does not allow adding a row, or a bank
            cannot be loaded.
        OSError: A file cannot be read or written. If nothing or only a part is written, nothing is
            removed.
    """
    if invalid := [id_ for id_ in (assignment, exercise) if not _ID.fullmatch(id_)]:
        problem = f"{invalid[0]!r} is not an id: use lower case letters, digits and underscores"
        raise CourseError(f"{problem}. Next: course new {_as_id(assignment)}/{_as_id(exercise)}")
    if exercise in _names_taken(library):
        problem = (
            f"no function can be called {exercise} here: Python or the skeleton has that name "
            "already"
        )
        raise CourseError(f"{problem}. Next: course new {assignment}/{exercise}_of")
    if any(peer.id == exercise for peer in course.exercises):
        raise CourseError(f"the exercise {exercise} exists already. Next: course verify {exercise}")
    existing = [peer for peer in course.exercises if peer.assignment.id == assignment]
    number = len(existing) + 1
    words = {
        "id": exercise,
        "title": exercise.replace("_", " ").capitalize(),
        "number": str(number),
        "stem": f"{number:02d}_{exercise}",
        "assignment": assignment,
        "assignment_title": assignment.replace("_", " ").capitalize(),
        **LIBRARIES[library],
    }
    rendered = {name: content.decode() for name, content in filled_templates("exercise", words)}
    files = {
        course.root / "solutions" / assignment / f"{words['stem']}.py": rendered["solution.py"],
        course.root / "grader" / "checks" / f"test_{exercise}.py": rendered["checks.py"],
        course.root / "grader" / "misconceptions" / f"{exercise}.py": rendered["misconceptions.py"],
        course.root / "grader" / "right" / exercise / "another_way.py": rendered["right.py"],
    }
    if (path := next(filter(Path.exists, files), None)) is not None:
        raise CourseError(
            f"{path} exists already: nothing is written. Next: mv {quote(str(path))} elsewhere"
        )
    row = rendered["row.yaml"]
    if not existing:
        row = rendered["assignment.yaml"] + indent(row, " " * 4)
    settings, texts = course.root / "course.yaml", course.root / "grader" / "texts.yaml"
    settings_text = settings.read_text(encoding="utf-8")
    files[settings] = _with_row(settings_text, assignment if existing else None, row)
    earlier_texts = texts.read_text(encoding="utf-8") if texts.exists() else ""
    files[texts] = earlier_texts + rendered["texts.yaml"]
    if replaced is not None:
        files[settings] = _without_row(files[settings], replaced.id)
        files[texts] = _without_texts(files[texts], _misconceptions_only_of(course, replaced))
    for path, text in files.items():
        write_whole(path, text.encode())
    if replaced is not None:
        _remove_files(replaced)
    return list(files)


def _as_id(name: str) -> str:
    """Return an id that is similar to a name: "Über uns" gives "uber_uns".

    If no letter of the name can be in an id, return "median".
    """
    letters = unicodedata.normalize("NFKD", name.casefold())
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return re.sub(r"[^a-z0-9]+", "_", plain).strip("_").lstrip("0123456789_") or "median"


def _names_taken(library: str) -> set[str]:
    """Return the names that an exercise's function must not have.

    These are Python's keywords and all names in the skeleton's files. A skeleton with such a
    function would not run, or would call the function instead of, for example, `print`.
    """
    own_name = "the_function"
    words = ("id", "title", "number", "stem", "assignment", "assignment_title")
    filled_words = dict.fromkeys(words, own_name) | LIBRARIES[library]
    reserved = {*keyword.kwlist}
    for name, content in filled_templates("exercise", filled_words):
        if name.endswith(".py"):
            reserved |= _names_in(symtable.symtable(content.decode(), name, "exec"))
    return reserved - {own_name}


def _names_in(scope: symtable.SymbolTable) -> set[str]:
    names = {*scope.get_identifiers()}
    for inner_scope in scope.get_children():
        names |= _names_in(inner_scope)
    return names


def _misconceptions_only_of(course: Course, assignment: Assignment) -> set[str]:
    """Return the ids of the misconceptions that no exercise outside the assignment has.

    Raises CourseError if a bank cannot be loaded.
    """
    remaining = [peer for peer in course.exercises if peer.assignment is not assignment]
    return _misconceptions(assignment.exercises) - _misconceptions(remaining)


def _misconceptions(exercises: Iterable[Exercise]) -> set[str]:
    return {mutant.id for exercise in exercises for mutant in load_bank(exercise).mutants}


def _without_row(settings: str, assignment: str) -> str:
    """Return the text of course.yaml without the row of an assignment. Raises CourseError."""
    row = _child(_child(YAML().compose(settings), "assignments"), assignment)
    return _without_spans(settings, [_Span(row, row)])


def _without_texts(texts: str, ids: Container[str]) -> str:
    """Return the text of texts.yaml without the texts of these misconceptions."""
    root = YAML().compose(texts)
    entries = root.value if isinstance(root, MappingNode) else ()
    return _without_spans(texts, [_Span(key, value) for key, value in entries if key.value in ids])


def _remove_files(assignment: Assignment) -> None:
    """Remove the files and examples of an assignment, as far as they exist."""
    root = assignment.root
    folders = [
        root / "solutions" / assignment.id,
        *root.glob(f"examples/submitted/*/{assignment.id}"),
        assignment.exercises_folder,
    ]
    for exercise in assignment.exercises:
        folders += [exercise.right_folder, exercise.wrong_folder]
        exercise.checks.unlink(missing_ok=True)
        exercise.misconceptions.unlink(missing_ok=True)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


class _Span(NamedTuple):
    """The lines of a YAML file from the first line of a node to the last line of another one."""

    start: Node
    end: Node


def _without_spans(text: str, spans: Iterable[_Span]) -> str:
    """Return a YAML text without the lines of these spans. Comments after a span are kept."""
    lines = text.splitlines(keepends=True)
    removed = set[int]()
    for span in spans:
        removed.update(range(span.start.start_mark.line, _end(lines, span.end)))
    return "".join(line for number, line in enumerate(lines) if number not in removed)


def _end(lines: Sequence[str], node: Node) -> int:
    """Return the line after a node, before the blank lines and comments that follow the node."""
    end: int = node.end_mark.line + (
        node.end_mark.column > 0 and not isinstance(node, CollectionNode)
    )
    while not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#"):
        end -= 1
    return end


def _with_row(text: str, assignment: str | None, row: str) -> str:
    """Return the text of course.yaml with a new row. Raises CourseError.

    Args:
        text: The text of course.yaml.
        assignment: The id of the assignment that gets the row as its last exercise, or None to add
            the row as the last assignment.
        row: The lines of the row, without indentation.
    """
    rows = _child(YAML().compose(text), "assignments")
    if assignment is not None:
        rows = _child(_child(rows, assignment), "exercises")
    if not isinstance(rows, SequenceNode) or rows.flow_style or not rows.value:
        raise CourseError(
            f"course.yaml lists its exercises in a way that no row can be added to. {_BY_HAND}"
        )
    lines = (text if text.endswith("\n") else f"{text}\n").splitlines(keepends=True)
    end = _end(lines, rows.value[-1])
    return "".join([*lines[:end], indent(row, " " * rows.start_mark.column), *lines[end:]])


def _child(node: Node | None, key: str) -> Node:
    """Return the value of a key, or the row of a list with this id. Raises CourseError."""
    for name, value in node.value if isinstance(node, MappingNode) else ():
        if name.value == key:
            return value  # type: ignore[no-any-return]
    for row in node.value if isinstance(node, SequenceNode) else ():
        if _child(row, "id").value == key:
            return row  # type: ignore[no-any-return]
    raise CourseError(f"course.yaml has no {key!r} where it is needed. {_BY_HAND}")


def init_course(folder: Path, title: str) -> list[Path]:
    """Write a new course with this title, and return the paths of its files.

    Raises CourseError if the folder contains anything but a git repository, or if the engine is not
    installed. Nothing is written then.
    """
    if folder.exists() and (
        not folder.is_dir() or {path.name for path in folder.iterdir()} - {".git"}
    ):
        raise CourseError(
            f"{folder} is not empty: nothing is written. Next: course init with a new folder's name"
        )
    engine = engine_wheel(templates=True)
    words = {"title": title, "wheel": next(name for name in engine if name != HASH_FILE)}
    files = {**engine, **dict(as_they_are("shared")), **dict(filled_templates("course", words))}
    files["course.yaml"] = files["course.yaml"].replace(b"Averages", json.dumps(title).encode(), 1)
    for name, content in files.items():
        write_whole(folder / name, content)
    return [folder / name for name in files]
