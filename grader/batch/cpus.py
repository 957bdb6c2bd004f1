"""A CPU for each judge.

A judge and its box take turns: one computes while the other waits. On one CPU they find in its cache what the other
has just written, and nobody is woken from sleep on another: a sixteenth of a right submission's CPU time.
"""

from __future__ import annotations

import os
import sys
from multiprocessing.queues import SimpleQueue

from .judge_process import start
from .plan import Plan


def one_for_each(jobs: int) -> list[int]:
    """So many CPUs, if exactly so many are ours; else none, for then the kernel shares them out better."""
    if sys.platform != "linux":
        return []
    ours = sorted(os.sched_getaffinity(0))
    return ours if len(ours) == jobs else []


def start_on_one(plan: Plan, cpus: SimpleQueue[int]) -> None:
    """Become a judge on the next of these CPUs, if there is one, with everything that the judge starts."""
    keep_to_one(cpus)
    start(plan)


def keep_to_one(cpus: SimpleQueue[int]) -> None:
    """Bind this process to the next of these CPUs, if there is one."""
    if sys.platform == "linux" and not cpus.empty():
        os.sched_setaffinity(0, {cpus.get()})
