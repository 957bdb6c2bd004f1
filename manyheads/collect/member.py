"""A member of an archive: its path, checked, and how to read it. Archives come from students, so nothing is believed."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

from .found import Limits

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
    """The parts of a member's path. Raises BadMember where it leads out of the archive, or could not be shown."""
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
    """A member's name for a sentence: one of 60,000 characters would drive everything else off the screen."""
    return name if len(name) <= LONGEST else f"{name[: LONGEST // 2]}…{name[-LONGEST // 4 :]}"


def read_at_most(file: BinaryIO, most: int) -> bytes:
    """The whole content. Raises BadMember if there is more than that."""
    data = file.read(most + 1)
    if len(data) > most:
        raise BadMember(f"is larger than {most // 1024:,} KiB")
    return data
