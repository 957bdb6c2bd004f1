"""Write files atomically, and keep the contents of many files on disk while a command runs.

An interrupted write leaves either the old file or the new one. The files of a whole class are too
many to be held in memory.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Self

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


_ROOM = "make room on that disk, then the same command again"


def digest_of(content: bytes) -> str:
    """Return the digest by which a file is known again."""
    return hashlib.sha256(content).hexdigest()


class KeptContents:
    """Keeps each different content once, in one file that has no name and goes with the process.

    A context manager.
    """

    def __init__(self, folder: Path) -> None:
        """Keep contents on the disk of this folder. Raises CourseFault."""
        self._folder = folder
        with told_where(folder, _ROOM):
            self._file: IO[bytes] = TemporaryFile(dir=folder)  # noqa: SIM115, __exit__ closes it
        # by digest: where it begins, and how long it is
        self._places: dict[str, tuple[int, int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def keep(self, content: bytes) -> str:
        """Keep a content, and return its digest. Raises CourseFault where the disk is full."""
        digest = digest_of(content)
        if digest not in self._places:
            with told_where(self._folder, _ROOM):
                start = self._file.seek(0, os.SEEK_END)
                self._file.write(content)
                self._file.flush()
            self._places[digest] = start, len(content)
        return digest

    def read(self, digest: str) -> bytes:
        """Return the content with this digest, which was kept."""
        start, size = self._places[digest]
        self._file.seek(start)
        return self._file.read(size)

    def open(self, digest: str) -> IO[bytes]:
        """Return the content with this digest as a file."""
        return io.BytesIO(self.read(digest))
