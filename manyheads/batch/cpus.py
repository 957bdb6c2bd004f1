"""A CPU for each judge.

A judge and its box take turns: one computes while the other waits. On one CPU they find in its cache what the other
has just written, and nobody is woken from sleep on another: a sixteenth of a right submission's CPU time.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Sequence

from .judge_process import start
from .plan import GradePlan


def one_for_each(jobs: int) -> list[int]:
    """So many CPUs, if exactly so many are ours; else none, for then the kernel shares them out better."""
    if sys.platform != "linux":
        return []
    ours = sorted(os.sched_getaffinity(0))
    return ours if len(ours) == jobs else []


def start_on_one(plan: GradePlan, cpus: Sequence[int]) -> None:
    """Become a judge on one of these CPUs, if there are any, with everything that the judge starts."""
    keep_to_one(cpus)
    start(plan)


def keep_to_one(cpus: Sequence[int]) -> None:
    """Bind this process to one of these CPUs: as many processes as CPUs, started in a row, have one each.

    By the number that multiprocessing gives to every process it starts.
    """
    number = multiprocessing.current_process().name.rpartition("-")[2]
    if sys.platform == "linux" and cpus and number.isdigit():
        os.sched_setaffinity(0, {cpus[int(number) % len(cpus)]})
