"""Write files atomically, and tell the person at the terminal what is wrong with a file.

An interrupted write leaves either the old file or the new one. `CourseFault` is the error of all
commands: its text says what is wrong, and which command to run next. `KeptContents` keeps the
contents of many files on disk, because the files of a whole class do not fit in memory. `zip_files`
packs files into an archive.
"""

from __future__ import annotations

import hashlib
import io
import os
import traceback
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from tempfile import TemporaryFile
from typing import IO, Self


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
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if frame.lineno is not None and is_ours(path):
            return path, frame.lineno
    return None


def describe_error(error: BaseException | None) -> str:
    """Return the type and the message of an error, such as "ValueError: …".

    The message of a SyntaxError is without the file and the line.
    """
    message = error.msg if isinstance(error, SyntaxError) else error
    return f"{type(error).__name__}: {message}"


def write_whole(path: Path, content: bytes, *, durable: bool = False) -> None:
    """Write the file, and make its folder if necessary.

    If an error stops the write, the old file is unchanged and no partial file is left. An OSError
    is passed on, with the name of a file.

    Args:
        path: the path of the file.
        content: its new content.
        durable: whether to wait for the disk. Then the old or the new file is complete even after a
            power cut.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        # An earlier process with this number may have left it. Through a link, the content would be
        # written to another file.
        partial.unlink(missing_ok=True)
        with name_in_error(path), partial.open("xb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


@contextmanager
def name_in_error(path: Path) -> Iterator[None]:
    """Add the path to an OSError of the block that names no file, and pass the error on.

    For example, the error of a full disk names no file.
    """
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


@contextmanager
def os_error_as_fault(path: Path, next_step: str) -> Iterator[None]:
    """Turn an OSError of the block into a CourseFault: path, cause and next step."""
    try:
        yield
    except OSError as error:
        raise CourseFault(
            f"{path} cannot be written ({error.strerror}). Next: {next_step}"
        ) from None


_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first date that a zip file can hold


def zip_files(files: Mapping[str, bytes], programs: Collection[str] = ()) -> bytes:
    """Return the bytes of a zip with these files. The same files give the same bytes.

    Args:
        files: the contents by name, in the order of the zip.
        programs: the names of the files that are executable.
    """
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.external_attr = (0o755 if name in programs else 0o644) << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED, 9)
    return out.getvalue()


_ROOM = "make room on that disk, then the same command again"


def digest_of(content: bytes) -> str:
    """Return the digest that identifies a file's content."""
    return hashlib.sha256(content).hexdigest()


class KeptContents:
    """Keeps each different content once, in a temporary file without a name.

    The file disappears when this context manager, or the process, ends.
    """

    def __init__(self, folder: Path) -> None:
        """Make the file, on the disk of this folder. Raises CourseFault if this fails."""
        self._folder = folder
        with os_error_as_fault(folder, _ROOM):
            self._file: IO[bytes] = TemporaryFile(dir=folder)  # noqa: SIM115, __exit__ closes it
        # digest -> (offset, length)
        self._spans: dict[str, tuple[int, int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def keep(self, content: bytes) -> str:
        """Keep a content, and return its digest. Raises CourseFault if it cannot be written."""
        digest = digest_of(content)
        if digest not in self._spans:
            with os_error_as_fault(self._folder, _ROOM):
                start = self._file.seek(0, os.SEEK_END)
                self._file.write(content)
                self._file.flush()
            self._spans[digest] = start, len(content)
        return digest

    def read(self, digest: str) -> bytes:
        """Return the kept content with this digest. Raises KeyError if there is none."""
        start, size = self._spans[digest]
        self._file.seek(start)
        return self._file.read(size)

    def open(self, digest: str) -> IO[bytes]:
        """Return the kept content with this digest as a file in memory. Raises KeyError."""
        return io.BytesIO(self.read(digest))
