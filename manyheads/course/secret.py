"""The course secret, from which hidden inputs are drawn: only its owner can read it, and no release contains it."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path
from shlex import quote

from .load import CourseError

FOLDER = ".course"  # beside course.yaml, ignored by git


def course_secret(root: Path) -> bytes:
    """Return the secret of the course in this folder, made if there is none. Raises CourseError if that fails."""
    path = root / FOLDER / "secret"
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with suppress(FileExistsError):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(secrets.token_hex(32))
        text, mode = path.read_bytes().strip(), path.stat().st_mode
    except OSError as error:
        said = f"can be neither read nor made ({error.strerror}). Next: chmod u+rw {quote(str(path))}"
        raise CourseError(f"{path} {said}") from None
    if len(text) < 32:
        said = f"holds no secret. Next: rm {quote(str(path))} (a new one is made; inputs will differ)"
        raise CourseError(f"{path} {said}")
    if mode & 0o077:
        raise CourseError(f"{path} can be read by others. Next: chmod 600 {quote(str(path))}")
    return text
