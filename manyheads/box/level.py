"""How to open a box of a level."""

from __future__ import annotations

from pathlib import Path

from .connection import Box
from .names import BoxUnavailable, Level
from .worker.limits import CUDA, Limits

__all__ = ["Box", "BoxUnavailable", "Level", "open_box"]


def open_box(level: Level, limits: Limits, hidden: Path) -> Box:
    """Open a box of this level.

    `hidden`: the course's folder, which is not visible inside. Raises BoxUnavailable.
    """
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
