"""`course check --watch` and `course lsp`: check at every save, in a terminal or for an editor."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..course import Course, Exercise
from ..errors import CourseFault
from ..report.labels import label_of
from ..report.ladder import after_done, how_far
from ..report.terminal import fitted_report
from ..result import ExerciseResult
from .options import Console
from .own import check_evidence, check_one, done_exercises, from_here, is_started, own_attempt, problem_lines
from .progress import waiting

if TYPE_CHECKING:
    from ..box.level import Box

QUIET_MS = 30  # how long to wait for further changes, because editors save in several steps
State = tuple[tuple[str, int, int], ...]


def watch_exercises(course: Course, named: Sequence[Exercise], box: Box, console: Console) -> None:
    """Check the first of these exercises that is not done, then each one that is saved, until Ctrl-C; one done, go on to the next."""
    saved = {exercise.id: _state(exercise) for exercise in named}  # before the first check: a save meanwhile counts
    watching = _Watching(course, named, box, console)
    for first in named:  # the first that is not done, else the last
        result = watching.check(first)
        if not result.is_done:
            break
    with suppress(KeyboardInterrupt):  # Ctrl-C ends watching
        watching.show(first, result)
        for exercise in _saves(named, saved):
            watching.show(exercise, watching.check(exercise))


def watch_as_lines(course: Course, named: Sequence[Exercise], box: Box) -> None:
    """Print what is wrong with all that is begun, a line each, and again at every save, until Ctrl-C. Editors read it.

    A line before says that checking begins, and one behind that it has ended: in between stands all that is wrong, also with
    files that have not changed.
    """
    saved = {exercise.id: _state(exercise) for exercise in named}
    wrong: dict[str, list[str]] = {}

    def tell(*exercises: Exercise) -> None:
        print("checking what is saved", flush=True)
        for exercise in exercises:
            told = check_evidence(course, exercise, box)
            wrong[exercise.id] = list(problem_lines(told, from_here(course.root / told.file)))
        lines = [line for each in wrong.values() for line in each]
        print(*lines, f"checked {len(wrong)} of {len(named)}: {len(lines)} to mend", sep="\n", flush=True)

    with suppress(KeyboardInterrupt):
        tell(*(exercise for exercise in named if is_started(exercise, own_attempt(course, exercise))))
        for exercise in _saves(named, saved):
            tell(exercise)


@dataclass(frozen=True)
class _Watching:
    """Checks exercises on a terminal. done: those that were checked, by their ids, and whether they are done."""

    course: Course
    named: Sequence[Exercise]
    box: Box
    console: Console
    done: dict[str, bool] = field(default_factory=dict)

    def check(self, exercise: Exercise) -> ExerciseResult:
        with waiting(self.console, f"checking {label_of(exercise)}"):  # an endless loop takes until its limit
            result = check_one(self.course, exercise, own_attempt(self.course, exercise), self.box)
        self.done[exercise.id] = result.is_done
        return result

    def show(self, exercise: Exercise, result: ExerciseResult) -> None:
        if self.console.is_terminal:
            self.console.clear()
        after = after_done(exercise) if result.is_done else ()
        self.console.print(fitted_report(self.console, result, label_of(exercise), after))
        if result.is_done:
            self.console.print(how_far(self.course, done_exercises(self.course)))
        self.console.tell(self._what_next(exercise), style="dim")

    def _what_next(self, current: Exercise) -> str:
        """Return which file to save next: of this exercise until it is done, then of the next one that is not."""
        undone = (e for e in self.named if not self.done.get(e.id))
        following = current if not self.done[current.id] else next(undone, None)
        if following is None:
            return "Done. What you save is checked again. Ctrl-C ends this."
        title = "" if following == current else f"Go on with {following.title}. "
        return f"{title}Save {from_here(following.script)}, and it is checked. Ctrl-C ends this."


def _saves(named: Sequence[Exercise], saved: dict[str, State]) -> Iterator[Exercise]:
    """Yield each exercise whose script or notebook is another than in `saved`, which is kept up to date.

    What the operating system tells only says when to look, and it is looked at every second, too: it tells nothing of saves
    before it was asked to, nor on some network drives.
    """
    from watchfiles import watch

    told = watch(
        *{e.script.parent for e in named},
        debounce=10 * QUIET_MS,
        step=QUIET_MS,
        rust_timeout=1000,
        yield_on_timeout=True,
        recursive=False,
    )
    for _ in told:
        for exercise in named:
            now = _state(exercise)
            if now != saved[exercise.id]:
                saved[exercise.id] = now
                yield exercise


def _state(exercise: Exercise) -> State:
    """Return which of its script and its notebook are there, when each was written, and how long it is."""
    found = []
    for path in (exercise.script, exercise.notebook):
        with suppress(OSError):
            status = path.stat()
            found.append((path.name, status.st_mtime_ns, status.st_size))
    return tuple(found)


def lsp() -> None:
    """Serve an editor over standard input and output, by the Language Server Protocol. Your editor starts it.

    At each save it shows what is wrong at its line, with hints as code actions and shapes as inlay hints.

    Example: `course lsp`, as the command of a language server for Python
    """
    try:
        from .language_server import server_for
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pygls", "lsprotocol", "cattrs"):
            raise
        pip = f"{sys.executable} -m pip install --constraint constraints.txt pygls"
        raise CourseFault(f"course lsp needs pygls, which is not installed. Next: {pip}") from None
    from ..box.forked import open_own_box

    with open_own_box(meta=True) as box:
        output, sys.stdout = sys.stdout.buffer, sys.stderr  # what anything prints is no message
        server_for(box).start_io(stdout=output)
