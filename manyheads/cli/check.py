"""`course check` and `course lsp`: check a student's own attempts with the fault dictionary.

The check runs once, at every save, or for an editor.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal

from typer import Argument, Exit, Option

from ..course import Course, Exercise
from ..course.model import exercises_called
from ..files import CourseFault
from ..report.report_content import as_json, as_lines, label_of
from ..report.terminal import fitted_report, next_of, to_write
from ..student.check_and_keep_result import (
    Checks,
    OwnAttempt,
    done_exercises,
    read_own_attempt,
    state_of,
)
from ..student.hints import ALL_DONE, after_done, going_on, next_exercise, note_shown, welcome
from ..submission.newer_python import note_on_newer_python
from .options import (
    AssignmentOption,
    Console,
    CourseOption,
    FreshOption,
    JsonOption,
    exercises_named,
)
from .student import desk_of, result_with_hint

QUIET_MS = 30  # how long to wait for further changes, because editors save in several steps
BELOW = 7  # lines of the screen below the report, including the prompt


def check(
    exercises: Annotated[
        list[str] | None,
        Argument(help="Ids or files, or an assignment [default: all that are started]."),
    ] = None,
    assignment: AssignmentOption = None,
    course: CourseOption = None,
    watch: Annotated[
        bool, Option("--watch", help="Check again at every save, until Ctrl-C.")
    ] = False,
    fresh: FreshOption = False,
    json: JsonOption = False,
    format: Annotated[
        Literal["text", "lines"],
        Option("--format", help="lines: what is wrong, a line each, for an editor."),
    ] = "text",
) -> None:
    """Check your attempts, and name the misconception behind a mistake.

    Example: `course check 01`, or `course check --watch` while you write.
    """
    if watch and json:
        raise CourseFault(
            "--watch gives no JSON: ask for it after each save. Next: course check --json"
        )
    names = exercises or []
    is_text = format == "text" and not json
    desk, console = desk_of(course, fresh=fresh, quiet=not is_text)
    all_exercises = desk.course.exercises
    selected = exercises_named(desk.course, names, assignment)
    with desk:
        if watch:
            desk.box()  # before there are threads
            with suppress(KeyboardInterrupt):  # Ctrl-C ends watching
                watch_saves(desk, console if is_text else None, selected)
            return
        owns = [read_own_attempt(desk.course, exercise) for exercise in selected]
        begun = [attempt for attempt in owns if attempt.is_begun]
        if not names:
            owns = begun
        elif len(names) == 1 and len(exercises_called(all_exercises, names[0])) > 1:
            owns = begun or owns  # If two exercises have this number, prefer the begun one.
        if not is_text:
            results = [result_with_hint(desk, attempt) for attempt in owns]
            is_done = all(result and result.is_done for result in results)
            for text in [as_json(owns, results)] if json else as_lines(owns, results):
                print(text)
        elif owns:
            is_done = show(desk, console, owns, names)
        else:
            console.tell(*welcome(desk.course))
            is_done = True
    if not is_done:
        raise Exit(1)


def show(
    desk: Checks,
    console: Console,
    owns: Sequence[OwnAttempt],
    names: Sequence[str],
    *,
    is_last: bool = True,
) -> bool:
    """Print the result of each attempt, the student's progress and the next step.

    A terminal shows only one of several attempts in full: the first that is not done, or the last.

    Args:
        desk: Runs the checks.
        console: Prints the results.
        owns: The attempts.
        names: The names of exercises on the command line.
        is_last: Whether this is the end of the output. If not, the caller prints the step after ✓.

    Returns:
        Whether all attempts are done.
    """
    course = desk.course
    finished = set[Exercise]()
    next_step = ""
    for attempt in owns:
        note = attempt.judged_instead(names)
        if note:
            console.tell(f"note: {note}", style="dim")
        if attempt.source.missing:
            message, mends = attempt.source.problem.splitlines()
            console.tell(message, style="red")
            next_step = next_step or mends
            continue
        result = desk.result(attempt)
        is_whole = not console.is_terminal or (
            not next_step and (not result.is_done or attempt is owns[-1])
        )
        after = after_done(attempt.exercise) if result.is_done else ()
        report = fitted_report(
            console, result, label_of(attempt.exercise), after, len(owns) + BELOW
        )
        console.print(report if is_whole else report.renderables[0])
        if is_whole or result.is_done:
            note_shown(result, course.root)
        if is_whole and attempt.exercise not in desk.ran:
            console.tell("  unchanged since its last check; --fresh runs it again", style="dim")
        if result.is_done:
            finished.add(attempt.exercise)
        else:
            next_step = next_step or next_of(attempt, result)
    console.tell(class_news(course), style="dim")
    console.tell(note_on_newer_python(course.root), style="dim")
    if finished:
        recorded = done_exercises(course)
        if finished - recorded:
            message = "note: this result cannot be kept here, and course status will not know of it"
            console.tell(
                f"{message}. Free some space, or copy the folder to where you may write.",
                style="dim",
            )
        console.tell(f"{len(recorded | finished)} of {len(course.exercises)} done.")
        if is_last and not next_step:
            next_step = going_on(course, recorded | finished, owns[-1].exercise)
    console.tell(next_step)
    return len(finished) == len(owns)


def class_news(course: Course) -> str:
    """Return a note about changes of the class repository that git has fetched but not merged.

    The note names the exercises. It is "" if there are no changes, or if git cannot tell.
    """

    def changed_files(*options: str) -> list[str]:
        command = [
            "git",
            "-C",
            str(course.root),
            "diff",
            "--name-only",
            "--relative",
            *options,
            "HEAD...@{upstream}",
        ]
        with suppress(OSError, subprocess.SubprocessError):  # no git, no upstream, or a slow disk
            return subprocess.run(
                command, capture_output=True, text=True, timeout=1, check=True
            ).stdout.splitlines()
        return []

    names = changed_files()
    if not names:
        return ""
    scripts = {
        exercise.script.relative_to(course.root).as_posix(): exercise.stem
        for exercise in course.exercises
    }
    # the files in which a line of code has changed, not only the lesson's text
    stubs = changed_files("-G", "^[[:space:]]*[^#[:space:]]")
    changes = [
        f"{stem}'s {'stub' if name in stubs else 'lesson'}"
        for name, stem in scripts.items()
        if name in names
    ]
    return (
        f"note: the class repository is newer: {', '.join(changes) or 'other files'}. Your work "
        "stays: git pull"
    )


def watch_saves(desk: Checks, console: Console | None, selected: Sequence[Exercise]) -> None:
    """Check the first of these exercises that is not done, then each one that is saved.

    For a student, all exercises of the course are watched, because the student goes on to the next
    ones. For an editor, each save prints one line for every problem of the selected exercises that
    are started, including files that have not changed. A line before these problems marks the
    beginning of the check, and a line after them its end.

    Args:
        desk: Runs the checks.
        console: Prints for a student. It is None for an editor.
        selected: The exercises that the command line names.
    """
    course = desk.course
    finished = done_exercises(desk.course)
    first_exercise = next(
        (exercise for exercise in selected if exercise not in finished), selected[-1]
    )
    for exercise in _saves(course.exercises if console else selected, first_exercise):
        if console is None:
            print("checking what is saved", flush=True)
            attempts = [read_own_attempt(course, candidate) for candidate in selected]
            owns = [attempt for attempt in attempts if attempt.is_started]
            lines = list(as_lines(owns, [result_with_hint(desk, attempt) for attempt in owns]))
            print(
                *lines,
                f"checked {len(owns)} of {len(selected)}: {len(lines)} to mend",
                sep="\n",
                flush=True,
            )
            continue
        if console.is_terminal:
            console.clear()
        _show_and_go_on(desk, console, exercise)
        console.tell("What you save is checked. Ctrl-C ends this.", style="dim")


def _show_and_go_on(desk: Checks, console: Console, exercise: Exercise) -> None:
    """Print the result of an exercise.

    After a ✓ the next exercise follows: its result, or the function to write if it is not begun.
    """
    course = desk.course
    names = [exercise.id]
    attempt = read_own_attempt(course, exercise)
    finished = set[Exercise]()
    while show(desk, console, [attempt], names, is_last=False):
        finished.add(attempt.exercise)
        upcoming = next_exercise(course, finished | done_exercises(course), attempt.exercise)
        if upcoming is None:
            console.tell(ALL_DONE)
            return
        attempt = read_own_attempt(course, upcoming)
        names = [upcoming.id]
        console.print()
        if not attempt.is_begun:
            stub = to_write(attempt, next(iter(upcoming.shapes), ""))
            console.tell(f"Go on with {label_of(upcoming)}: write {stub}.")
            return


def _saves(watched: Sequence[Exercise], first_exercise: Exercise) -> Iterator[Exercise]:
    """Yield the first exercise, then each exercise when its script or notebook has changed.

    A notice of the operating system only starts a look at the files. The files are also looked at
    every second, because there are no notices of saves before the watch began, nor on some network
    drives.
    """
    from watchfiles import watch

    def state() -> dict[Exercise, str]:
        return {
            exercise: state_of(exercise.script) + state_of(exercise.notebook)
            for exercise in watched
        }

    saved = state()  # before the first check, so that a save during it counts
    yield first_exercise
    quiet = dict[str, Any](debounce=10 * QUIET_MS, step=QUIET_MS, rust_timeout=1000)
    folders = {exercise.script.parent for exercise in watched if exercise.script.parent.is_dir()}
    for _ in watch(*folders, **quiet, yield_on_timeout=True, recursive=False):
        previous = saved
        saved = state()
        yield from (exercise for exercise in watched if saved[exercise] != previous[exercise])


def lsp() -> None:
    """Serve an editor by the Language Server Protocol.

    Your editor starts it, and speaks to it over standard input and output. At each save it shows
    what is wrong at its line, with hints as code actions and shapes as inlay hints.

    Example: `course lsp`, as the command of a language server for Python
    """
    try:
        from .language_server import server_for
    except ModuleNotFoundError as error:
        pip = f"{sys.executable} -m pip install --constraint constraints.txt pygls"
        raise CourseFault(
            f"course lsp needs pygls, and there is no {error.name}. Next: {pip}"
        ) from None
    from ..box.without_namespaces import open_own_box

    with open_own_box(meta=True) as box:
        # printed text must not mix with messages
        output = sys.stdout.buffer
        sys.stdout = sys.stderr
        server_for(box).start_io(stdout=output)
