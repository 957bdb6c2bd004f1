"""Errors whose text is written for the person at the terminal."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from shlex import quote


class CourseFault(Exception):
    """Wrong usage, or a fault of the grader.

    The text says what is wrong and which command to run next.
    """


def restore(path: object, released_by: str = "an instructor") -> str:
    """Return what is to be done next where a file that a release writes is missing or damaged."""
    return f"As {released_by}, make it with course release. Next: git checkout {quote(str(path))}"


def place_of(
    error: BaseException | None, is_ours: Callable[[Path], bool]
) -> tuple[Path, int] | None:
    """Return the file, and its line, at which an error was raised, or which Python cannot parse;
    None if it is not ours.

    is_ours: which files count. Of several, the innermost is meant.
    """
    if error is None:
        return None
    if (
        isinstance(error, SyntaxError)
        and error.filename
        and error.lineno
        and is_ours(Path(error.filename))
    ):
        return Path(error.filename), error.lineno
    frames = (
        (Path(frame.filename), frame.lineno)
        for frame in reversed(traceback.extract_tb(error.__traceback__))
    )
    return next(((path, line) for path, line in frames if line is not None and is_ours(path)), None)


def described(error: BaseException | None) -> str:
    """Return the type and the message of an error, without the place, which stands elsewhere."""
    message = error.msg if isinstance(error, SyntaxError) else error
    return f"{type(error).__name__}: {message}"
