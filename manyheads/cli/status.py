"""`course status`: the ladder of exercises."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from ..course import Course, Exercise
from .options import CourseOption, course_of, exercises_named
from .own import check_one, fingerprint_path, is_done, is_started, own_attempt

if TYPE_CHECKING:
    from ..box.level import Box
    from ..report.ladder import Rung


def status(course: CourseOption = None) -> None:
    """Show which exercises are done, in progress or untouched, your points, and what is next.

    Example: `course status`
    """
    from ..box.forked import open_own_box
    from ..report.ladder import ladder

    loaded = course_of(course)
    console = Console(highlight=False)
    with open_own_box() as box, console.status("checking what is started"):
        rungs = [(e, _rung(loaded, e, box)) for e in exercises_named(loaded, [])]
    console.print(ladder([rung for _, rung in rungs]))
    upcoming = next(((exercise, rung) for exercise, rung in rungs if rung.state != "done"), None)
    if upcoming is None:
        console.print("All done.")
    elif upcoming[1].state == "untouched":
        console.print(f"Next: fill the stubs of {upcoming[1].stem}, then: course check {upcoming[0].id}")
    else:
        console.print(f"Next: course check {upcoming[0].id}")


def _rung(course: Course, exercise: Exercise, box: Box) -> Rung:
    from ..public.file import read
    from ..report.ladder import Rung

    source = own_attempt(course, exercise)
    stem, title, most = exercise.stem, exercise.title, exercise.points
    checks = sorted(read(fingerprint_path(exercise)).content.checks, key=lambda c: c.layer)
    if source.missing or not is_started(exercise, source):
        asked = tuple((check.title, False) for check in checks)
        return Rung(stem, title, "missing" if source.missing else "untouched", 0, most, asked)
    result = check_one(course, exercise, source, box)
    passed = {check.id for check in result.checks if check.outcome == "passed"}
    done = is_done(result)
    asked = tuple((check.title, check.id in passed) for check in checks)
    return Rung(stem, title, "done" if done else "in progress", most if done else result.score, most, asked)
