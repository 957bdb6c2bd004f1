"""Isolation levels, and what every box offers."""

from __future__ import annotations

from enum import StrEnum
from types import TracebackType
from typing import Protocol, Self

from .connection import Connection
from .worker.limits import Limits


class Level(StrEnum):
    """How far student code is kept from everything else. Written in every result."""

    NAMESPACES = "namespaces"  # bubblewrap as an unprivileged uid, own namespaces for each attempt, seccomp, rlimits
    PROCESS = "process"  # a process of its own, rlimits and a deadline: for a student's own check


class BoxUnavailable(Exception):
    """This machine cannot give the level that was asked for. The text ends with the command to run next."""


class Box(Protocol):
    """Opens connections to fresh attempts' processes, one at a time."""

    level: Level
    start_seconds: float  # what a fresh process may take before it reads its first message

    def attempt(self, limits: Limits) -> Connection:
        """A connection to a new process that no student code has touched."""

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None: ...


def open_box(level: Level) -> Box:
    """The box of that level. Raises BoxUnavailable."""
    if level is Level.NAMESPACES:
        from .namespaces import NamespaceBox

        return NamespaceBox()
    from .process import ProcessBox

    return ProcessBox()
