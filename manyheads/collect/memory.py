"""What `course collect` remembers in the folder that it fills: where each file came from, and whose each folder is."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from ..errors import CourseFault
from ..whole import write_whole

NAME = ".collected.json"


class Origin(BaseModel):
    """Where a file came from. order: as its platform orders attempts.

    handed_in: when, in ISO 8601, where the platform says. late: whether it says late.
    named: what the platform called it, for feedback that goes back.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    platform: str
    order: float
    modified: float
    digest: str
    download: str
    path: str
    handed_in: str = ""
    late: bool = False
    named: str = ""

    def is_newer_than(self, other: Origin) -> bool:
        """Whether this is a later attempt: by the platform's order where both are of one platform, else by time."""
        if self.platform == other.platform and self.order != other.order:
            return self.order > other.order
        return self.modified > other.modified


class Memory(BaseModel):
    """The whole of it. files: by path. folders: whose each is.

    not_readable: names of what was handed in and cannot be read, by student and assignment.
    """

    model_config = ConfigDict(extra="forbid")

    files: dict[str, Origin] = {}
    folders: dict[str, str] = {}
    not_readable: dict[str, dict[str, list[str]]] = {}

    def write(self, out: Path) -> None:
        """Write it, if it has changed."""
        content = f"{self.model_dump_json(indent=1)}\n".encode()
        path = out / NAME
        if not path.is_file() or path.read_bytes() != content:
            write_whole(path, content)


def read_memory(out: Path) -> Memory:
    """What is remembered; nothing in a new folder. Raises CourseFault."""
    path = out / NAME
    if path.is_symlink():
        raise CourseFault(f"{path} is a link. Next: give --out another folder")
    try:
        return Memory.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return Memory()
    except (OSError, ValidationError):
        raise CourseFault(f"{path} cannot be read. Next: give --out another folder") from None
