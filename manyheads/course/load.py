"""Read course.yaml, other YAML files that people write, and the course's secret.

Every error names the file and the line.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from difflib import get_close_matches
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

from ..errors import CourseFault
from .file import CourseFile
from .model import Course

NAME, FOLDER = "course.yaml", ".course"  # the folder of the secret is beside it, and ignored by git
_ELSEWHERE = "Next: change to the course's folder, then: course status"
Model = TypeVar("Model", bound=BaseModel)


class CourseError(CourseFault):
    """course.yaml, or a file that it needs, is missing or wrong.

    The text ends with what to do next.
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
    """YAML's values, with dates as they are written.

    A value that its tag does not allow is told with its line.
    """

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        """Return what a node means."""
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
    """Return the line and the problem of bytes that are not UTF-8."""
    line = data.count(b"\n", 0, error.start) + 1
    return line, f"is not UTF-8 (byte {error.start}): save it as UTF-8"


def read_model(path: Path, model: type[Model], then: str) -> tuple[Model, Any]:
    """Return what the file says, and the same as `line_of` needs it.

    Raises CourseFault, and OSError.

    then: the command to run once the file is mended.
    """
    data, tree, line, reader = path.read_bytes(), None, 0, YAML()
    reader.Constructor = _Constructor
    try:
        tree = reader.load(data.decode("utf-8"))
        return model.model_validate(tree), tree
    except UnicodeDecodeError as error:
        line, problem = _not_utf8(data, error)
    except ReaderError as error:
        line, problem = (
            data.decode().count("\n", 0, error.position) + 1,
            "a character that YAML does not know",
        )
    except MarkedYAMLError as error:
        # of a bracket or quote, where it opens
        never_closed = error.context_mark and "stream" in (error.problem or "")
        mark = error.context_mark if never_closed else error.problem_mark or error.context_mark
        line, problem = (
            mark.line + 1 if mark else 1,
            ", ".join(filter(None, (error.context, error.problem))),
        )
    except ValidationError as error:
        # first a key that nobody knows, for it may be the one that another sentence misses
        errors = error.errors()
        main_error = next(
            (
                details
                for details in errors
                if details["type"] in ("extra_forbidden", "invalid_key")
            ),
            errors[0],
        )
        line, problem = (
            line_of(tree, main_error.get("ctx", {}).get("place", main_error["loc"])),
            _error_message(main_error, model),
        )
        if main_error["type"] == "model_type" and not main_error["loc"]:
            problem = (
                f"the file: {'it is empty' if tree is None else 'it has no keys'}, and needs "
                f"{_required_keys(model)}"
            )
    except (ArithmeticError, ValueError, RecursionError):
        # a character by a number that none has, or thousands of brackets
        problem = "cannot be read as YAML"
    where = f"{path}:{line}" if line else str(path)
    raise CourseFault(f"{where}: {problem}. Next: mend that line, then {then}") from None


def _required_keys(model: type[BaseModel]) -> str:
    return " and ".join(
        f"`{name}:`" for name, field in model.model_fields.items() if field.is_required()
    )


def line_of(tree: Any, location: Sequence[int | str]) -> int:
    """Return the line (from 1) of the deepest part of the place that the file contains."""
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
    """Return what pydantic says, with the key and what stands there.

    The line says in which row it is.
    """
    location, input_value = error.get("ctx", {}).get("place", error["loc"]), error["input"]
    last = max((i for i, step in enumerate(location) if isinstance(step, int)), default=-1)
    # a validator has brackets
    key = ".".join(str(step) for step in location[last + 1 :] if "[" not in str(step))
    if error["type"] == "value_error":  # a sentence of our own
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
    input_text = (
        f" (input: {ascii(input_value)[:50]})" if isinstance(input_value, str | int | float) else ""
    )
    return f"{key or 'the file'}: {error['msg']}{input_text}"


def _keys_beside(location: Sequence[int | str], model: type[BaseModel]) -> list[str]:
    """Return the keys that may stand where this place's last one does."""
    if issubclass(model, RootModel):
        model = _model_in(model.model_fields["root"].annotation) or model
    for step in location[:-1]:
        field = model.model_fields.get(str(step))
        model = _model_in(field.annotation) or model if field is not None else model
    return list(model.model_fields)


def _model_in(annotation: object) -> type[BaseModel] | None:
    """Return the model of a field, of its rows, or of what it holds if it is not None."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)


def course_secret(root: Path) -> bytes:
    """Return the secret, from which hidden inputs are drawn, made on first use.

    Raises CourseError if that fails.

    Only its owner can read it, and no release contains it.
    """
    path = root / FOLDER / "secret"
    named = quote(str(path))
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with suppress(FileExistsError):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(secrets.token_hex(32))
        text, mode = path.read_bytes().strip(), path.stat().st_mode
    except OSError as error:
        raise CourseError(
            f"{path} can be neither read nor made ({error.strerror}). Next: chmod u+rw {named}"
        ) from None
    if len(text) < 32:
        raise CourseError(
            f"{path} holds no secret. Next: rm {named} (a new one is made; inputs will differ)"
        )
    if mode & 0o077:
        raise CourseError(f"{path} can be read by others. Next: chmod 600 {named}")
    return text
