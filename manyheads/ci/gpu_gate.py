"""Whether attempts behaved on a CPU, so that they may have the GPU."""

from __future__ import annotations

from collections.abc import Sequence

from ..result import Result

CLEAN = "clean"
UNFIT = {"crashed": "crashed", "timeout": "ran out of time"}


def why_not_on_a_gpu(results: Sequence[Result], refused: Sequence[str]) -> str:
    """One sentence, empty where nothing speaks against it."""
    if not results:
        return "Nothing is started."
    if refused:
        return "A file could not be taken."
    for result in results:
        for exercise in result.exercises:
            for check in exercise.checks:
                if check.outcome in UNFIT:
                    return f"An attempt ({exercise.id}) {UNFIT[check.outcome]} on the CPU."
    if not any(result.score for result in results):
        return "Nothing works on the CPU yet."
    return ""
