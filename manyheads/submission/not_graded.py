"""What lies in the submitted folder and is not graded, with the reason: shown after a run, and kept beside its results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from ..errors import CourseFault
from ..whole import write_whole

NAME = "not-graded.json"


class NotGraded(BaseModel):
    """A file or folder that is not graded. reason: a sentence that ends with what to do next."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str  # within the submitted folder, as it can be shown anywhere
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


_LIST = TypeAdapter(list[NotGraded])


def shown(name: str) -> str:
    """The name, or its escaped form where it could change what a terminal, a log or a page shows."""
    return name if name.isprintable() and "::" not in name else ascii(name)


def write_not_graded(found: Sequence[NotGraded], results: Path) -> None:
    """Write the list into a folder of results. Raises CourseFault."""
    path = results / NAME
    try:
        write_whole(path, _LIST.dump_json(list(found), indent=1) + b"\n")
    except OSError as error:
        raise CourseFault(f"{path} cannot be written ({error.strerror}). Next: give --out another folder") from None


def read_not_graded(results: Path) -> list[NotGraded]:
    """The list that the last run wrote; empty where there is none. Raises CourseFault."""
    path = results / NAME
    try:
        return _LIST.validate_json(path.read_bytes())
    except FileNotFoundError:
        return []
    except (OSError, ValidationError):
        raise CourseFault(f"{path} cannot be read. Next: remove it, then course grade again") from None
