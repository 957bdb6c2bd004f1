"""`course status`: the ladder of exercises."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from ..course import Course, Exercise
from ..report.functions import function_reports
from ..report.labels import label_of
from ..report.ladder import Rung, State, ladder
from ..report.next_steps import all_done
from ..result import ExerciseResult
from ..submission import AttemptSource
from .console import open_console
from .last_check import facts, last_result
from .options import AssignmentOption, CourseOption, FreshOption, course_of, exercises_named
from .own import check_one, from_here, is_started, own_attempt


def status(assignment: AssignmentOption = None, course: CourseOption = None, *, fresh: FreshOption = False) -> None:
    """Show which exercises are done, in progress or untouched, your points, and what is next.

    Example: `course status`
    """
    loaded = course_of(course)
    console = open_console()
    attempts = [(e, own_attempt(loaded, e)) for e in exercises_named(loaded, [], assignment)]
    results = _results(loaded, [a for a in attempts if is_started(*a)], console, fresh=fresh)
    rungs = [(e, _rung(e, source, results.get(e))) for e, source in attempts]
    console.print(ladder([rung for _, rung in rungs]))
    upcoming = next(((exercise, rung) for exercise, rung in rungs if rung.state != "done"), None)
    if upcoming is None:
        for line in all_done(loaded):
            console.print(line, soft_wrap=not console.is_terminal)
    elif upcoming[1].state == "untouched":
        console.print(f"Next: fill the stubs of {from_here(upcoming[0].script)}, then: course check {upcoming[0].id}")
    else:
        console.print(f"Next: course check {upcoming[0].id}")


def _results(
    course: Course, started: Sequence[tuple[Exercise, AttemptSource]], console: Console, *, fresh: bool
) -> dict[Exercise, ExerciseResult]:
    """The result of each attempt. Runs what has changed since its last check, or everything if `fresh`."""
    results = {e: kept for e, source in started if not fresh and (kept := last_result(e, source))}
    changed = [(e, source) for e, source in started if e not in results]
    if changed:
        from ..box.forked import open_own_box

        with open_own_box(meta=True) as box, console.status("checking what has changed"):
            results |= {e: check_one(course, e, source, box) for e, source in changed}
    return results


def _rung(exercise: Exercise, source: AttemptSource, result: ExerciseResult | None) -> Rung:
    named, most = (exercise.assignment.title, label_of(exercise)), exercise.points
    checks = facts(exercise).checks
    if result is None:
        asked = tuple((title, False) for _, title in checks)
        return Rung(*named, "missing" if source.missing else "untouched", 0, most, asked)
    passed = {check.id for check in result.checks if check.outcome == "passed"}
    asked = tuple((title, id in passed) for id, title in checks)
    state: State = "done" if result.is_done else "in progress"
    return Rung(*named, state, result.score or 0.0, most, asked, tuple(function_reports(result)), result.unseen)
