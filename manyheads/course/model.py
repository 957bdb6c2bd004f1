"""A course for the rest of the engine: assignments, exercises and their files; and how to load one.

Loading reads course.yaml, other YAML files that people write, and the course's secret. Every error
names the file and the line.
"""

from __future__ import annotations

import ast
import os
import re
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, RootModel, ValidationError
from pydantic_core import ErrorDetails
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.constructor import RoundTripConstructor
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.reader import ReaderError

from ..box.worker.result_form import Form
from ..files import CourseFault
from ..printable_text import visible_line
from .course_yaml_schema import AssignmentRow, CourseFile, ExerciseRow, Signature, parse_signature

# a step of pydantic's location that is no key: function-after[check(), int]
_VALIDATOR = re.compile(r"[a-z-]+\[.*|constrained-str")
FIGURES = "figures"  # the name of a folder beside the lessons


def with_neighbours(path: Path) -> list[Path]:
    """Return the file, then the existing files beside it that it imports by `from ._name import …`.

    Indirect imports count, too. A file that cannot be read or parsed has no imports here; running
    it shows the error.
    """
    files = {path}
    todo = [path]
    while todo:
        try:
            tree = ast.parse(todo.pop().read_text(encoding="utf-8"))
        except (OSError, ValueError, SyntaxError):
            continue
        imports = [
            node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level == 1
        ]
        names = {node.module or alias.name for node in imports for alias in node.names}
        neighbours = {path.with_name(f"{name.split('.')[0]}.py") for name in names} - files
        todo += [neighbour for neighbour in neighbours if neighbour.exists()]
        files.update(todo)
    return [path, *sorted(files - {path})]


@dataclass(unsafe_hash=True)
class Exercise:
    """One gradable unit. It knows its assignment, its row in course.yaml, and its files."""

    assignment: Assignment
    number: int  # in the assignment, from 1
    row: ExerciseRow = field(hash=False)

    def __post_init__(self) -> None:
        """Copy fields of the row, and work out the paths of the exercise's files."""
        assignment, number, row = self.assignment, self.number, self.row
        self.root = root = assignment.root  # the course's folder
        self.id, self.title, self.points, self.train = row.id, row.title, row.points, row.train
        # hint: for a check without a hint; why: shown once every check passes, or ""
        self.hint, self.why = row.hint, row.why
        # the names of the functions and classes whose shapes course.yaml gives
        self.shapes = tuple(row.shapes)
        self.stem = stem = f"{number:02d}_{row.id}"  # the file name without its suffix
        earlier = (name if name[:2].isdigit() else f"{number:02d}_{name}" for name in row.was)
        self.stems = (stem, *earlier)  # the names that its file may have, without suffix
        # the single source of the exercise
        self.solution = root / "solutions" / assignment.id / f"{stem}.py"
        self.script = assignment.exercises_folder / f"{stem}.py"  # the stub that a student gets
        self.notebook = self.script.with_suffix(".ipynb")  # the stub as a notebook
        recorded = f"{stem}.safetensors"
        # the fault dictionary, for students' machines
        self.fingerprints = self.script.parent / "fingerprints" / recorded
        # the attention of a small model of the reference
        self.trained = self.script.parent / "trained" / recorded
        self.checks = root / "grader" / "checks" / f"test_{row.id}.py"  # the hidden checks
        self.misconceptions = root / "grader" / "misconceptions" / f"{row.id}.py"  # the mutants

    def signatures(self, name: str) -> tuple[Signature, ...]:
        """Return the signatures that course.yaml lists for a function or class, or () if none."""
        listed = self.row.shapes.get(name, ())
        return tuple(
            parse_signature(text) for text in ((listed,) if isinstance(listed, str) else listed)
        )

    @cached_property
    def forms(self) -> dict[str, Form]:
        """The structure of each result that is not one tensor, by function or class."""
        return {
            name: form
            for name in self.shapes
            if (form := self.signatures(name)[0].form) is not None
        }

    @property
    def figure_sources(self) -> list[Path]:
        """The pictures of its lesson, beside its source: figures/04_reshape_dance.svg."""
        return sorted((self.solution.parent / FIGURES).glob(f"{self.stem}*"))

    @property
    def figures(self) -> tuple[Path, ...]:
        """The paths of these pictures beside the students' notebook, which refers to them."""
        return tuple(self.script.parent / FIGURES / path.name for path in self.figure_sources)

    @property
    def right_folder(self) -> Path:
        """The folder of the attempts that must earn all points."""
        return self.root / "grader" / "right" / self.id

    @property
    def wrong_folder(self) -> Path:
        """The folder of the attempts that must lose points."""
        return self.root / "grader" / "wrong" / self.id

    def right_attempts(self) -> list[Path]:
        """Return the attempts that must earn all points."""
        return sorted(self.right_folder.glob("*.py"))

    def wrong_attempts(self) -> list[Path]:
        """Return the attempts that must lose points, and that no mutant reproduces."""
        return sorted(self.wrong_folder.glob("*.py"))

    def recorded_from(self) -> list[Path]:
        """Return every file from which the fault dictionary is recorded.

        The list includes the neighbours that these files import (`with_neighbours`). Some of the
        files may be missing, and a file may be listed twice.
        """
        graders = (self.checks, self.checks.with_name("conftest.py"), self.misconceptions)
        attempts = (self.solution, *self.right_attempts(), *self.wrong_attempts())
        return [path for file in (*graders, *attempts) for path in with_neighbours(file)]


@dataclass(unsafe_hash=True)
class Assignment:
    """Exercises, in the order in which students do them."""

    root: Path  # the course's folder
    row: AssignmentRow = field(hash=False)

    def __post_init__(self) -> None:
        self.id, self.title = self.row.id, self.row.title
        self.exercises_folder = self.root / "exercises" / self.id  # what students get
        # the most that a submission can earn
        self.points = sum(exercise.points for exercise in self.row.exercises)
        self.exercises = tuple(
            Exercise(self, number, row) for number, row in enumerate(self.row.exercises, 1)
        )


@dataclass(unsafe_hash=True)
class Course:
    """A course, and the folder that holds it."""

    root: Path
    file: CourseFile = field(hash=False)

    def __post_init__(self) -> None:
        self.title, self.limits = self.file.title, self.file.limits  # limits: of one attempt
        self.texts = self.root / "grader" / "texts.yaml"  # of every misconception
        self.assignments = tuple(Assignment(self.root, row) for row in self.file.assignments)
        self.exercises = tuple(
            exercise for assignment in self.assignments for exercise in assignment.exercises
        )

    def hidden_files(self) -> list[Path]:
        """Return the files that no student may see: all of solutions/ and grader/ with content."""
        paths = (path for name in ("solutions", "grader") for path in (self.root / name).rglob("*"))
        return sorted(
            p
            for p in paths
            if p.is_file() and "__pycache__" not in p.parts and p.read_bytes().strip()
        )


def exercises_called(exercises: Sequence[Exercise], name: str) -> list[Exercise]:
    """Return the exercises with this id, file name or number, in their order.

    Folders, suffixes and leading zeros do not count: 4, 04_merge.py and merge name the same
    exercise. A number may match one exercise of each assignment.
    """
    plain_name = _plain(Path(name).stem)
    return [
        e for e in exercises if plain_name in (e.id, _plain(e.stem), _plain(e.stem.split("_")[0]))
    ]


def unknown(exercises: Sequence[Exercise], name: str) -> str:
    """Return one sentence about an unknown name of an exercise, with the nearest known name."""
    ids = {alias: e.id for e in exercises for alias in (e.id, _plain(e.stem))}
    return f"there is no exercise {name!r}; {nearest_or_all(_plain(Path(name).stem), ids)}"


class UnknownAssignment(CourseFault):
    """A name matches no assignment, or several.

    The message is one sentence, without the next step.
    """


def assignment_named(course: Course, name: str | None, *, in_part: bool = False) -> Assignment:
    """Return the assignment with this id or title; without a name, the only one of the course.

    An equal id comes first, then an id or title that differs only in its case. With `in_part`, a
    part of the id or title is enough if no assignment matches completely.

    Raises:
        UnknownAssignment: no assignment matches, or several.
    """
    assignments = course.assignments
    if not name:
        if len(assignments) == 1:
            return assignments[0]
        raise UnknownAssignment(
            "of which assignment? There are:"
            f" {', '.join(assignment.id for assignment in assignments)}."
        )
    folded_name = name.casefold()
    names = {assignment: (assignment.id, assignment.title.casefold()) for assignment in assignments}
    matches = [assignment for assignment in assignments if assignment.id == name] or [
        assignment for assignment in assignments if folded_name in names[assignment]
    ]
    if in_part and not matches:
        matches = [a for a in assignments if _is_part(folded_name, names[a])]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UnknownAssignment(
            f"{name!a} may be any of these assignments: {', '.join(m.id for m in matches)}."
        )
    ids_by_name = {
        alias: assignment.id for assignment in assignments for alias in names[assignment]
    }
    raise UnknownAssignment(
        f"there is no assignment {name!a}; {nearest_or_all(folded_name, ids_by_name)}"
    )


def _is_part(text: str, names: Sequence[str]) -> bool:
    return any(text in name for name in names)


def nearest_or_all(name: str, ids: dict[str, str]) -> str:
    """Return "did you mean mean?", or all names if none is similar.

    Args:
        name: the unknown name.
        ids: the name to show, by each known name.
    """
    near = get_close_matches(name, ids, 1)
    return (
        f"did you mean {ids[near[0]]}?"
        if near
        else f"there are: {', '.join(dict.fromkeys(ids.values()))}."
    )


def _plain(name: str) -> str:
    return name.lstrip("0") or name  # 1_scores for 01_scores


NAME, FOLDER = "course.yaml", ".course"  # the folder of the secret is beside it, and ignored by git
_ELSEWHERE = "Next: change to the course's folder, then: course status"
Model = TypeVar("Model", bound=BaseModel)


class CourseError(CourseFault):
    """course.yaml, or a file that it needs, is missing or wrong.

    The message ends with the next step.
    """


def find_course(start: Path) -> Path:
    """Return the nearest folder that holds a course.yaml: `start` or one above it.

    Raises CourseError.
    """
    start = start.resolve()
    for folder in (start, *start.parents):
        if (folder / NAME).is_file():
            return folder
    raise CourseError(f"no {NAME} in {start} or above it. {_ELSEWHERE}")


def load_course(root: Path) -> Course:
    """Load the course in this folder. Raises CourseError."""
    path = root / NAME
    try:
        return Course(root.resolve(), read_model(path, CourseFile, "course status")[0])
    except OSError as error:
        raise CourseError(f"{path} cannot be read ({error.strerror}). {_ELSEWHERE}") from None
    except CourseFault as error:
        raise CourseError(str(error)) from None


class _Constructor(RoundTripConstructor):
    """Reads the values of YAML. Dates stay texts.

    The error about a value that does not fit its tag names the line.
    """

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        """Return the value of a node."""
        try:
            return super().construct_object(node, deep)
        except (ArithmeticError, AttributeError, LookupError, ValueError):
            problem = f"{str(node.value)[:40]!a} cannot be read as {node.tag.rpartition(':')[2]}"
            raise MarkedYAMLError(problem=problem, problem_mark=node.start_mark) from None


_Constructor.add_constructor("tag:yaml.org,2002:timestamp", RoundTripConstructor.construct_yaml_str)


def demand_utf8(course: Course) -> None:
    """Raise CourseError if a Python file of the course's authors is not in UTF-8."""
    sources = [*course.root.glob("solutions/**/*.py"), *course.root.glob("grader/**/*.py")]
    for path in sorted(sources):
        data = path.read_bytes()
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            line, problem = _not_utf8(data, error)
            raise CourseError(
                f"{path}:{line}: {problem}. Next: mend that line, then the same command again"
            ) from None


def _not_utf8(data: bytes, error: UnicodeDecodeError) -> tuple[int, str]:
    """Return the line (from 1) of bytes that are not UTF-8, and the end of a sentence about it."""
    line = data.count(b"\n", 0, error.start) + 1
    return line, f"is not UTF-8 (byte {error.start}): save it as UTF-8"


def read_model(path: Path, model: type[Model], next_command: str) -> tuple[Model, Any]:
    """Return the content of a YAML file as a model, and as the tree that `line_of` needs.

    Args:
        path: the file.
        model: the model.
        next_command: the command to run after the file is corrected.

    Raises:
        CourseFault: the content is wrong. The text names the file and the line.
        OSError: the file cannot be read.
    """
    data = path.read_bytes()
    tree = None
    line = 0
    reader = YAML()
    reader.Constructor = _Constructor
    try:
        tree = reader.load(data.decode("utf-8"))
        return model.model_validate(tree), tree
    except UnicodeDecodeError as error:
        line, problem = _not_utf8(data, error)
    except ReaderError as error:
        line = data.decode().count("\n", 0, error.position) + 1
        problem = "a character that YAML does not know"
    except MarkedYAMLError as error:
        # a bracket or quote that is never closed: the line where it opens
        never_closed = error.context_mark and "stream" in (error.problem or "")
        mark = error.context_mark if never_closed else error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        problem = ", ".join(filter(None, (error.context, error.problem)))
    except ValidationError as error:
        # An unknown key comes first: it may be the misspelled form of a missing one.
        errors = error.errors()
        main_error = next(
            (
                details
                for details in errors
                if details["type"] in ("extra_forbidden", "invalid_key")
            ),
            errors[0],
        )
        line = line_of(tree, main_error.get("ctx", {}).get("place", main_error["loc"]))
        problem = _error_message(main_error, model)
        if main_error["type"] == "model_type" and not main_error["loc"]:
            problem = (
                f"the file: {'it is empty' if tree is None else 'it has no keys'}, and needs "
                f"{_required_keys(model)}"
            )
    except (ArithmeticError, ValueError, RecursionError):
        # an invalid character number, or thousands of brackets
        problem = "cannot be read as YAML"
    location = f"{path}:{line}" if line else str(path)
    raise CourseFault(f"{location}: {problem}. Next: mend that line, then {next_command}") from None


def _required_keys(model: type[BaseModel]) -> str:
    return " and ".join(
        f"`{name}:`" for name, field in model.model_fields.items() if field.is_required()
    )


def line_of(tree: Any, location: Sequence[int | str]) -> int:
    """Return the line (from 1) of the deepest part of a location that the file contains.

    Args:
        tree: the content of the file, as `read_model` returns it.
        location: keys and indices, from the outside in: ("assignments", 0, "due").
    """
    line = 1
    for step in location:
        if isinstance(tree, CommentedMap) and step in tree:
            line = tree.lc.key(step)[0] + 1
        elif isinstance(tree, CommentedSeq) and isinstance(step, int) and step < len(tree):
            line = tree.lc.item(step)[0] + 1
        else:
            break
        tree = tree[step]
    return line


def _error_message(error: ErrorDetails, model: type[BaseModel]) -> str:
    """Return pydantic's message, with the key and the value.

    Indices of rows are left out, because the line shows the row.
    """
    location = error.get("ctx", {}).get("place", error["loc"])
    input_value = error["input"]
    last_index = max((i for i, step in enumerate(location) if isinstance(step, int)), default=-1)
    steps = (visible_line(str(step)) for step in location[last_index + 1 :])
    key = ".".join(step for step in steps if not _VALIDATOR.fullmatch(step))
    if error["type"] == "value_error":  # the message of our own validator
        return ": ".join(filter(None, (key, error["msg"].removeprefix("Value error, "))))
    if error["type"] == "tuple_type":
        return (
            f"{key or 'the file'} should be a list: each row begins with a dash, or all stand "
            "in [brackets]"
        )
    if error["type"] == "missing":
        return f"{key} is missing"
    if error["type"] == "extra_forbidden":
        keys = _keys_beside(location, model)
        near = get_close_matches(str(location[-1]), keys, 1)
        return f"{key}: there is no such key; " + (
            f"did you mean {near[0]}?" if near else f"there are {', '.join(keys)}"
        )
    message = _in_plain_words(error) or error["msg"]
    input_text = (
        f" (input: {ascii(input_value)[:50]})" if isinstance(input_value, str | int | float) else ""
    )
    return f"{key or 'the file'}: {message}{input_text}"


def _in_plain_words(error: ErrorDetails) -> str:
    """Return the problem of an empty or too small value, or of no text; "" for other problems."""
    type_ = error["type"]
    limits = error.get("ctx", {})
    if error["input"] is None:
        return "nothing is written after it"
    if type_ == "string_type":
        return "should be a text: write it in quotes"
    if type_ == "string_too_short":
        return "the text is empty"
    if type_ in ("float_type", "float_parsing", "int_type", "int_parsing"):
        return "should be a number"
    if type_ == "greater_than":
        return f"should be more than {limits['gt']:g}"
    if type_ == "greater_than_equal":
        return f"should be at least {limits['ge']:g}"
    if type_ == "too_short":
        return f"should have at least {limits['min_length']} row"
    return ""


def _keys_beside(location: Sequence[int | str], model: type[BaseModel]) -> list[str]:
    """Return the keys that are allowed in place of the last key of this location."""
    if issubclass(model, RootModel):
        model = _model_in(model.model_fields["root"].annotation) or model
    for step in location[:-1]:
        field = model.model_fields.get(str(step))
        model = _model_in(field.annotation) or model if field is not None else model
    return list(model.model_fields)


def _model_in(annotation: object) -> type[BaseModel] | None:
    """Return the model of a field, of its rows, or of its value if it is optional."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)


def course_secret(root: Path) -> bytes:
    """Return the secret from which hidden inputs are drawn, and create its file on first use.

    Only its owner can read the file, and no release contains it.

    Raises:
        CourseError: the file cannot be created or read, is too short, or can be read by others.
    """
    path = root / FOLDER / "secret"
    quoted = quote(str(path))
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with suppress(FileExistsError):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(secrets.token_hex(32))
        text = path.read_bytes().strip()
        mode = path.stat().st_mode
    except OSError as error:
        raise CourseError(
            f"{path} can be neither read nor made ({error.strerror}). Next: chmod u+rw {quoted}"
        ) from None
    if len(text) < 32:
        raise CourseError(
            f"{path} holds no secret. Next: rm {quoted} (a new one is made; inputs will differ)"
        )
    if mode & 0o077:
        raise CourseError(f"{path} can be read by others. Next: chmod 600 {quoted}")
    return text
