"""What a run grades, and how: all that a worker needs to become a judge."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..box.names import Device, Level


@dataclass(frozen=True)
class Plan:
    """One way of grading."""

    course: Path
    secret: bytes
    level: Level = Level.NAMESPACES
    seed: int = 0
    device: Device = Device.CPU
    exercises: tuple[str, ...] = ()  # ids; empty: all
