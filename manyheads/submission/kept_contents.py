"""Contents of files that one command reads, kept on the disk and not in memory: the files of a
whole class are too many.
"""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Self

from ..whole import told_where

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
