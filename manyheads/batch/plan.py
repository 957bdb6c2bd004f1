"""The plan of a grading run: everything that a worker needs to become a judge."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ..box.names import Device, Level


@dataclass(frozen=True)
class GradePlan:
    """The options of a grading run.

    seed: of everybody's inputs. It is 0 where each student has a run of their own (Gradescope, nbgrader's commands), so that
    the same code has the same points in all of them. The run of a pull request draws from a secret of its own.
    """

    course: Path
    secret: bytes = field(repr=False)  # not in the repr, which dask writes to its logs
    level: Level = Level.NAMESPACES
    seed: int = 0
    device: Device = Device.CPU
    exercises: tuple[str, ...] = ()  # ids; empty: all
    lines: bool = True  # whether to search for the line that is wrong
