"""Tell why what was asked for cannot be written, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import CourseFault


@contextmanager
def told_where(path: Path, following: str) -> Iterator[None]:
    """Tell an OSError as CourseFault: where it was, why, and what to do next."""
    try:
        yield
    except OSError as error:
        raise CourseFault(f"{path} cannot be written ({error.strerror}). Next: {following}") from None
