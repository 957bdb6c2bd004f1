"""Limit the reading of one person's files, and name the reason if a file is not read.

A download can hold the work of a whole class, and any file in it may be hostile. So each person
has a budget of bytes, files and seconds, and one student's archive cannot stop the others.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

MIB = 1024 * 1024
TOO_LARGE, TOO_MANY = "it unpacks to more than is read here", "it has more files than are read here"
TOO_SLOW = "it takes longer than is read here"
ENTRIES_PER_MEMBER = 8  # a virtual environment has up to 30,000 files, and none counts as a member


class Closed(Exception):
    """A file or an archive is not read, or not taken.

    The message continues a sentence that begins with the path. It gives the reason and the next
    step.
    """


def unopened(why: str) -> Closed:
    """Return the error for an archive that is not opened."""
    return Closed(
        f"is not opened: {why}. Next: unpack it by hand, look at it, then course collect that "
        "folder"
    )


@dataclass
class IntakeLimits:
    """How much may still be read of one person, or of a download.

    Attributes:
        attempt: bytes of one file.
        size: bytes of all files.
        members: number of files, without noise such as a virtual environment.
        seconds: time for all archives of one person.
        code: number of characters to parse. This many take 5 s at most. Without the limit, 640
            files in a student's zip of 60 KB took 6 minutes.
        until: the end of `seconds` on the monotonic clock.
        entries: number of entries in archives: files, folders, noise, and headers about headers.
            0 stands for `ENTRIES_PER_MEMBER` times the members.
    """

    attempt: int = 16 * MIB
    size: int = 128 * MIB
    members: int = 5_000
    seconds: float = 30
    code: int = 1_500_000
    until: float = float("inf")
    entries: int = 0

    def __post_init__(self) -> None:
        """Fill in the number of entries."""
        self.entries = self.entries or ENTRIES_PER_MEMBER * self.members

    def for_persons(self, persons: int = 1) -> IntakeLimits:
        """Return the limits for the archives of this many persons; the time starts now."""
        return replace(
            self,
            size=self.size * persons,
            members=self.members * persons,
            entries=self.entries * persons,
            until=time.monotonic() + self.seconds * persons,
        )

    @property
    def is_used_up(self) -> bool:
        """Whether there are no bytes or no files left."""
        return self.size < 0 or self.members < 0

    @property
    def spent(self) -> str:
        """The limit of an archive that is exceeded, as a sentence; "" if none is."""
        if self.size < 0:
            return TOO_LARGE
        if self.members < 0 or self.entries < 0:
            return TOO_MANY
        return TOO_SLOW if time.monotonic() > self.until else ""

    def take(self, size: int = 0, members: int = 0, entries: int = 0) -> None:
        """Count bytes, files and entries of an archive, and check the clock.

        Raises:
            Closed: a limit is exceeded.
        """
        self.size -= size
        self.members -= members
        self.entries -= entries
        if self.spent:
            raise unopened(self.spent)
