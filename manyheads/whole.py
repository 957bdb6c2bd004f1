"""Write a file whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import CourseFault


def write_whole(path: Path, content: bytes, *, durable: bool = False) -> None:
    """Write the file, with its folder.

    Whatever stops this leaves the file as it was, and nothing beside it.

    durable: a power cut is among what may stop it; then the disk is waited for.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        # of a process that died with this number; a link would lead elsewhere
        partial.unlink(missing_ok=True)
        with naming(path), partial.open("xb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Give an OSError that names no file this one, for whoever tells it: a full disk does not say
    where.
    """
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


@contextmanager
def told_where(path: Path, next_step: str) -> Iterator[None]:
    """Tell an OSError as CourseFault: where it was, why, and what to do next."""
    try:
        yield
    except OSError as error:
        raise CourseFault(
            f"{path} cannot be written ({error.strerror}). Next: {next_step}"
        ) from None
