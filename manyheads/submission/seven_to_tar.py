"""Write a tar of a 7z archive: standard input to standard output, in a process with little memory and time.

A program of its own, which imports nothing of ours: python seven_to_tar.py BYTES MEMBERS ENDING…. What has none of the endings is written
empty, by its name alone. It ends with one of the statuses below, and with any other where the archive is damaged.
"""

from __future__ import annotations

import io
import sys
import tarfile
from typing import Any

TOO_LARGE, TOO_MANY, ENCRYPTED = 3, 4, 5
HEADER = 2048  # bytes of the tar for each member, beside its content
_MEMORY, _SECONDS = 1024 * 1024 * 1024, 60


def main(most_bytes: int, most_members: int, endings: tuple[str, ...]) -> None:
    """Write the tar. Exits with a status where a limit is passed."""
    import resource

    import py7zr
    from py7zr.helpers import get_sanitized_output_path

    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    longest = most_bytes + HEADER * most_members
    resource.setrlimit(resource.RLIMIT_FSIZE, (longest, longest))
    with py7zr.SevenZipFile(sys.stdin.buffer) as archive, tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as tar:
        if archive.needs_password():
            sys.exit(ENCRYPTED)
        files = [file for file in archive.files if not file.is_directory]
        if len(archive.files) > most_members:
            sys.exit(TOO_MANY)
        wanted = [file for file in files if file.is_file and file.filename.lower().endswith(endings)]
        writer = _bounded_writer(most_bytes)
        if wanted:
            archive.extract(targets=[name.filename for name in wanted], factory=writer)
        for each in files:
            place = get_sanitized_output_path(each.filename, None).as_posix()
            _add(tar, each, writer.members[place].content.getvalue() if each in wanted else b"")


def _bounded_writer(most_bytes: int) -> Any:
    """Return what py7zr writes members to, which keeps them by their names, and exits where they are too large."""
    from py7zr.io import Py7zIO, WriterFactory

    left = most_bytes

    class Kept(Py7zIO):  # type: ignore[misc]
        """Keeps a member, as long as there is room."""

        def __init__(self) -> None:
            self.content = io.BytesIO()

        def write(self, s: bytes | bytearray) -> int:
            nonlocal left
            left -= len(s)
            if left < 0:
                sys.exit(TOO_LARGE)
            return self.content.write(s)

        def read(self, size: int | None = None) -> bytes:
            return self.content.read(size)

        def seek(self, offset: int, whence: int = 0) -> int:
            return self.content.seek(offset, whence)

        def flush(self) -> None:
            pass

        def size(self) -> int:
            return len(self.content.getbuffer())

    class Writer(WriterFactory):  # type: ignore[misc]
        """Hands out where members go, and keeps them by their names."""

        def __init__(self) -> None:
            self.members: dict[str, Kept] = {}

        def create(self, filename: str) -> Kept:
            return self.members.setdefault(filename, Kept())

    return Writer()


def _add(tar: tarfile.TarFile, each: Any, content: bytes) -> None:
    info = tarfile.TarInfo(each.filename)
    info.mtime = int(each.lastwritetime.totimestamp()) if each.lastwritetime is not None else 0
    info.size = len(content)
    info.type = tarfile.REGTYPE if each.is_file else tarfile.SYMTYPE
    tar.addfile(info, io.BytesIO(content))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), tuple(sys.argv[3:]))
