"""What a run grades, and how: all that a worker needs to become a judge."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ..box.names import Device, Level


@dataclass(frozen=True)
class GradePlan:
    """One way of grading."""

    course: Path
    secret: bytes = field(repr=False)  # dask writes what it was asked to do into its logs
    level: Level = Level.NAMESPACES
    seed: int = 0
    device: Device = Device.CPU
    exercises: tuple[str, ...] = ()  # ids; empty: all
