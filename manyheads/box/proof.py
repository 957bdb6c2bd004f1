"""Prove an isolation level in this box before it is claimed."""

from __future__ import annotations

from ..course import Course
from .canary import run_canary
from .level import Box, BoxUnavailable, Level
from .reach import find_reached


def prove(box: Box, course: Course, device: str = "cpu") -> None:
    """Run the canary, if the level promises isolation. Raises BoxUnavailable, which says what leaked."""
    if box.level is Level.PROCESS:  # it promises limits and a deadline only
        return
    run = find_reached if box.level is Level.USER else run_canary
    report = run(box, course.limits.for_worker(device), course.root, course.hidden_files())
    if report.leaks:
        leaked = "; ".join(report.leaks)
        raise BoxUnavailable(
            f"level {box.level} leaks here: a canary {leaked}. Nothing was graded. Next: course doctor"
        )
    if report.error:
        raise BoxUnavailable(f"level {box.level} cannot be proved here ({report.error}). Next: course doctor")
