"""Bind each judge to a CPU.

A judge and its box alternate: one computes while the other waits. On the same CPU each finds in the cache what the other
has just written, and no other CPU has to wake up. That saves a sixteenth of the CPU time of a right submission.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence


def one_for_each(jobs: int) -> Sequence[int | None]:
    """Return a CPU for each judge if this process may use exactly `jobs` CPUs; else None, for the kernel schedules better."""
    ours = _ours()
    return ours if len(ours) == jobs else [None] * jobs


def usable() -> int:
    """How many CPUs this process may use."""
    return len(_ours()) or os.cpu_count() or 1


def _ours() -> list[int]:
    """The CPUs that this process may use, by their numbers; none where the system does not tell."""
    return sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else []
