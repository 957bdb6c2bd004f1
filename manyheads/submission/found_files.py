"""What a download holds: files as bytes with checked paths, and a sentence for whatever was refused."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import BinaryIO

MIB = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    """How much of a download is read. What an attempt may weigh, course.yaml says: larger ones are laid out, not graded."""

    attempt: int = 16 * MIB  # the largest script, notebook or list of submissions
    archive: int = 256 * MIB  # the largest archive within a download
    inner: int = 128 * MIB  # what one archive within a download may unpack to
    inner_members: int = 5_000  # without what is noise, such as a virtual environment
    inner_listed: int = 40_000  # with it: what one archive within a download may list, by the size of its list
    total: int = 2048 * MIB  # what everything that is kept may weigh
    members: int = 500_000
    depth: int = 2  # archives within archives: a student's in the download's
    folders: int = 40  # folders within folders


@dataclass(frozen=True)
class Found:
    """A file of a download. path: its folders and name; an archive on the way is one of them. content: None if unread.

    closed: why it could not be read, though it would have been: what follows its name in a sentence.
    is_folder: whether it is a folder or an archive that could not be opened, and stands for what is in it.
    """

    path: tuple[str, ...]
    content: bytes | None
    modified: float = 0.0  # seconds, as far as the archive says
    closed: str = ""
    is_folder: bool = False

    @property
    def name(self) -> str:
        """The file's own name."""
        return self.path[-1]


@dataclass(frozen=True)
class Refused:
    """A sentence on what was not taken, and where it is."""

    path: tuple[str, ...]
    reason: str


# What browsers and mail programs put behind an ending that they do not know, and platforms before it: 04_x.py.txt, 04_x.ipynb-1.json.
_WRAPPED = re.compile(
    r"(?P<name>.+\.(?:py|ipynb))(?:[ _-]?\(?\d{1,4}\)?)?(?: ?\(\d{1,4}\))?\.(?:txt|json|download)",
    re.DOTALL | re.IGNORECASE,
)


def own_name(name: str) -> str:
    """Return the name of a script or a notebook without what was put behind its ending; any other name as it is."""
    match = _WRAPPED.fullmatch(name)
    return match["name"] if match else name


class TooMuch(Exception):
    """A limit is passed. The text says which."""


@dataclass
class Budget:
    """What may still be read. Spending more raises TooMuch."""

    bytes_left: int
    members_left: int
    within: Budget | None = field(default=None, repr=False)

    def share(self, most: Budget) -> Budget:
        """Return a budget within this one.

        Of that of all downloads it is a quarter of what is left at most: nobody's archives, however many, leave nothing
        for the others'.
        """
        size, members = most.bytes_left, most.members_left
        if self.within is None:
            size, members = min(size, self.bytes_left // 4), min(members, self.members_left // 4)
        return Budget(size, members, within=self)

    def spend(self, size: int = 0, members: int = 0) -> None:
        """Count bytes and members, here and in the budget around this one. Raises TooMuch."""
        self.bytes_left -= size
        self.members_left -= members
        if self.bytes_left < 0:
            raise TooMuch("it unpacks to more than is read here")
        if self.members_left < 0:
            raise TooMuch("it has more files than are read here")
        if self.within is not None:
            self.within.spend(size, members)


# A member of an archive: its path, checked, and how to read it. Archives come from students, so nothing is believed.

LONGEST = 255  # of a name, in characters


class BadMember(Exception):
    """The member is not taken. The text says why, for a sentence that begins with its path."""


class BadArchive(Exception):
    """The archive cannot be read. The text says why."""


@dataclass(frozen=True)
class Member:
    """A regular file in an archive. read: its content, at most so many bytes; raises BadMember."""

    path: tuple[str, ...]
    modified: float
    read: Callable[[int], bytes]


def safe_path(name: str, limits: Limits) -> tuple[str, ...]:
    """Return the parts of a member's path. Raises BadMember where it leads out of the archive, or could not be shown."""
    text = unicodedata.normalize("NFC", name.replace("\\", "/"))
    if text.startswith("/") or (len(text) > 1 and text[1] == ":" and text[0].isalpha()):
        raise BadMember("has an absolute path")
    parts = tuple(part for part in text.split("/") if part not in ("", "."))
    if ".." in parts:
        raise BadMember("has a path that leads out of the archive")
    if not parts or len(parts) > limits.folders or any(len(part) > LONGEST for part in parts):
        raise BadMember("has a path that is too long or empty")
    if not all(part.isprintable() for part in parts):
        raise BadMember("has a name that cannot be shown")
    return parts


def shortened(name: str) -> str:
    """Return a member's name for a sentence: one of 60,000 characters would drive everything else off the screen."""
    return name if len(name) <= LONGEST else f"{name[: LONGEST // 2]}…{name[-LONGEST // 4 :]}"


def read_at_most(file: BinaryIO, most: int) -> bytes:
    """Return the whole content. Raises BadMember if there is more than that."""
    data = file.read(most + 1)
    if len(data) > most:
        raise BadMember(f"is larger than {most // 1024:,} KiB")
    return data
