"""The interface of a box, and how to open one."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from .connection import Connection
from .names import BoxUnavailable, Level
from .worker.limits import CUDA, Limits

__all__ = ["Box", "BoxUnavailable", "Level", "open_box"]


class Box(Protocol):
    """Starts a fresh process for each attempt, one at a time."""

    level: Level

    def attempt(self, limits: Limits) -> Connection:
        """Return a connection to a new process that has run no student code."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None: ...


def open_box(level: Level, limits: Limits, hidden: Path) -> Box:
    """Open a box of this level. `hidden`: the course's folder, which is not visible inside. Raises BoxUnavailable."""
    if level is Level.NAMESPACES and limits.device == CUDA:
        from .gpu import GpuBox

        return GpuBox(limits, hidden)
    if level is Level.NAMESPACES:
        from .namespaces import NamespaceBox

        return NamespaceBox(limits, hidden)
    if level is Level.USER:
        from .forked import UserBox

        return UserBox()
    from .process import ProcessBox

    return ProcessBox()
