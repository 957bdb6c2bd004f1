"""How much is read of what one person has handed in, and the error that says why something is not
read.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

MIB = 1024 * 1024
TOO_LARGE, TOO_MANY = "it unpacks to more than is read here", "it has more files than are read here"
TOO_SLOW = "it takes longer than is read here"
ENTRIES_PER_MEMBER = 8  # a virtual environment counts for no limit of files, and has up to 30,000


class Closed(Exception):
    """What is not read, or not taken.

    The text says why, and what comes next; it follows the path.
    """


def unopened(why: str) -> Closed:
    """Return the error for an archive that is not opened."""
    return Closed(
        f"is not opened: {why}. Next: unpack it by hand, look at it, then course collect that "
        "folder"
    )


@dataclass
class Limits:
    """How much may still be read of one person, or of a download.

    Attributes:
        attempt: the bytes of one file.
        size: the bytes of all files.
        members: the files, without what is noise, such as a virtual environment.
        seconds: how long all archives of one person may take.
        code: the characters that are parsed, in 5 s at most; 640 files in 60 KB of one student's
            zip took 6 minutes.
        until: the same as seconds, by the monotonic clock.
        entries: all that archives list: files, folders, noise, and headers about headers. 0: 8
            times the members.
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

    def for_persons(self, persons: int = 1) -> Limits:
        """Return what archives of so many may take, from now on."""
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
        """Why nothing more is read of an archive; "" where something may be."""
        if self.size < 0:
            return TOO_LARGE
        if self.members < 0 or self.entries < 0:
            return TOO_MANY
        return TOO_SLOW if time.monotonic() > self.until else ""

    def take(self, size: int = 0, members: int = 0, entries: int = 0) -> None:
        """Count what an archive holds, and look at the clock.

        Raises Closed where it is too much.
        """
        self.size -= size
        self.members -= members
        self.entries -= entries
        if self.spent:
            raise unopened(self.spent)
