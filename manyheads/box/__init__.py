"""The sandbox: the isolated place that an attempt runs in. `open_box` opens one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .level_and_device_names import Device, Level

if TYPE_CHECKING:
    from pathlib import Path

    from .connection import Box
    from .worker.limits import Limits


def open_box(level: Level, limits: Limits, hidden: Path) -> Box:
    """Open a box of this level. Raises BoxUnavailable.

    Args:
        level: the level.
        limits: of each attempt.
        hidden: the course's folder, which is not visible inside.
    """
    if level is Level.NAMESPACES and limits.device == Device.CUDA:
        from .namespaces import GpuBox

        return GpuBox(limits, hidden)
    if level is Level.NAMESPACES:
        from .namespaces import NamespaceBox

        return NamespaceBox(limits, hidden)
    if level is Level.USER:
        from .without_namespaces import UserBox

        return UserBox()
    from .without_namespaces import ProcessBox

    return ProcessBox()
