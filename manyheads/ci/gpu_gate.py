"""Decide whether attempts may run on the GPU, from their results on a CPU."""

from __future__ import annotations

from collections.abc import Sequence

from ..report.labels import IDS, Labels
from ..result import Result

CLEAN = "clean"
EXCLUDED = {"crashed": "crashed", "timeout": "ran out of time"}


def why_not_on_a_gpu(results: Sequence[Result], refused: Sequence[str], labels: Labels = IDS) -> str:
    """One sentence that says why not; empty if they may."""
    if not results:
        return "Nothing is started."
    if refused:
        return "A file could not be taken."
    for result in results:
        for exercise in result.exercises:
            for check in exercise.checks:
                if check.outcome in EXCLUDED:
                    return f"An attempt ({labels.exercise(exercise.id)}) {EXCLUDED[check.outcome]} on the CPU."
    if not any(check.score for result in results for exercise in result.exercises for check in exercise.checks):
        return "Nothing works on the CPU yet."
    return ""
