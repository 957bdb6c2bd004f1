"""`course check --watch`: check at every save, and go on to the next exercise when one is done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from ..course import Course, Exercise
from ..report.labels import label_of
from ..report.next_steps import after_done, how_far
from ..report.terminal import exercise_report
from .own import check_one, done_exercises, from_here, is_started, own_attempt

if TYPE_CHECKING:
    from ..box.level import Box

QUIET_MS = 30  # how long to wait for further changes, because editors save in several steps
Named = Exercise


def watch_exercises(course: Course, named: Sequence[Named], box: Box, console: Console) -> None:
    """Check the first of these exercises that is not done, then each one that is saved, until Ctrl-C."""
    done: dict[str, bool] = {}
    current = _first_to_do(course, named, box, done)
    if current is None:
        console.print("All done. Next: course status")
        return
    with suppress(KeyboardInterrupt):  # Ctrl-C ends watching
        _show(console, course, named, box, current, done)
        for saved in _saves(named):
            _show(console, course, named, box, saved, done)


def _first_to_do(course: Course, named: Sequence[Named], box: Box, done: dict[str, bool]) -> Named | None:
    """The first exercise that is not done. Records the others in `done`."""
    for exercise in named:
        source = own_attempt(course, exercise)
        started = is_started(exercise, source)
        done[exercise.id] = started and check_one(course, exercise, source, box).is_done
        if not done[exercise.id]:
            return exercise
    return None


def _show(
    console: Console, course: Course, named: Sequence[Named], box: Box, current: Named, done: dict[str, bool]
) -> None:
    exercise = current
    result = check_one(course, exercise, own_attempt(course, exercise), box)
    done[exercise.id] = result.is_done
    if console.is_terminal:
        console.clear()
    console.print(
        exercise_report(result, label=label_of(exercise), after=after_done(exercise) if result.is_done else ())
    )
    if result.is_done:
        console.print(how_far(course, done_exercises(course)))
    console.print(_what_next(named, current, done), style="dim", soft_wrap=True)


def _what_next(named: Sequence[Named], current: Named, done: dict[str, bool]) -> str:
    """The message about the next file: this exercise until it is done, then the next one that is not."""
    undone = (e for e in named if not done.get(e.id))
    following = current if not done[current.id] else next(undone, None)
    if following is None:
        return "All done. Ctrl-C ends this."
    title = "" if following == current else f"{following.title}, in "
    return f"Next: {title}{from_here(following.script)}. Save it, and it is checked. Ctrl-C ends this."


def _saves(named: Sequence[Named]) -> Iterator[Named]:
    """The exercise of each file that is saved, script or notebook."""
    from watchfiles import watch

    files = {(e.assignment.id, e.stem): e for e in named}
    folders = {e.script.parent for e in named}
    for changes in watch(*folders, debounce=10 * QUIET_MS, step=QUIET_MS, rust_timeout=1000, recursive=False):
        paths = [Path(path) for _, path in changes if path.endswith((".py", ".ipynb"))]
        for saved in sorted({(path.parent.name, path.stem) for path in paths} & files.keys()):
            yield files[saved]
