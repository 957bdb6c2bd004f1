"""Errors whose text is written for the person at the terminal.

`CourseFault` is the base of these errors; the commands print its text without a traceback. The
functions put parts of other errors into such a text: the file, the line, the type, the message.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from shlex import quote


class CourseFault(Exception):
    """Wrong usage, or a fault of the grader.

    The text describes the problem and ends with the command to run next.
    """


def restore(path: object, released_by: str = "an instructor") -> str:
    """Return the advice for a missing or damaged file that a release writes, in two sentences.

    Args:
        path: the file.
        released_by: the person who makes releases, for example "an instructor".
    """
    return f"As {released_by}, make it with course release. Next: git checkout {quote(str(path))}"


def location_of_error(
    error: BaseException | None, is_ours: Callable[[Path], bool]
) -> tuple[Path, int] | None:
    """Return the file and the line of an error, or None if no file that counts is involved.

    For a SyntaxError in a file that counts, this is the line that Python cannot parse. For other
    errors, it is the innermost line of the traceback in a file that counts.

    Args:
        error: the error, if any.
        is_ours: returns whether a file counts.
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


def describe_error(error: BaseException | None) -> str:
    """Return the type and the message of an error, such as "ValueError: …".

    The message of a SyntaxError is without the file and the line.
    """
    message = error.msg if isinstance(error, SyntaxError) else error
    return f"{type(error).__name__}: {message}"
