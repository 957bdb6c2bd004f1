"""Read a 7z archive, where py7zr is installed: another process makes a tar of it, within limits, which is read as any tar."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO

from ..submission import ENDINGS
from ..submission.left_over import ARCHIVES
from .found import Limits
from .member import BadArchive, BadMember, Member
from .seven_to_tar import ENCRYPTED, HEADER, TOO_LARGE, TOO_MANY
from .tars import tar_members

_SECONDS = 120
_SIGNATURE = b"7z\xbc\xaf\x27\x1c"
_NO_SEVEN = "it is damaged, or no 7z at all"
_TOO_LONG = "to open it takes longer than is waited for"
_SAID = {
    TOO_LARGE: "it unpacks to more than is read here",
    TOO_MANY: "it has more files than are read here",
    ENCRYPTED: "it is encrypted",
}


def seven_members(
    file: BinaryIO, limits: Limits, most: int, most_bytes: int
) -> Iterator[Member | tuple[str, BadMember]]:
    """Return the files of the archive, as `tar_members`. most: how many members it may list. Raises BadArchive."""
    if find_spec("py7zr") is None or find_spec("resource") is None:
        raise BadArchive("it is of a kind that is not opened here without `pip install 'manyheads[7z]'`")
    program = [sys.executable, "-I", str(Path(__file__).with_name("seven_to_tar.py"))]
    given = [str(most_bytes), str(most), *ENDINGS, *ARCHIVES]
    with tempfile.TemporaryFile() as seven, tempfile.TemporaryFile() as tar:
        file.seek(0)
        if file.read(len(_SIGNATURE)) != _SIGNATURE:
            raise BadArchive(_NO_SEVEN)
        file.seek(0)
        shutil.copyfileobj(file, seven)
        seven.seek(0)
        try:
            done = subprocess.run(
                [*program, *given], stdin=seven, stdout=tar, stderr=subprocess.DEVNULL, timeout=_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise BadArchive(_TOO_LONG) from None
        if done.returncode == -signal.SIGXCPU:
            raise BadArchive(_TOO_LONG)
        if done.returncode:
            raise BadArchive(_SAID.get(done.returncode, _NO_SEVEN))
        yield from tar_members(tar, limits, most_bytes + HEADER * most)
