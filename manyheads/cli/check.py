"""`course check`: a student's own attempts, against recorded answers, once or at every save. `course lsp`: the same for an editor."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal

from typer import Argument, Exit, Option

from ..course import Course, Exercise
from ..course.model import exercises_called
from ..errors import CourseFault
from ..report.labels import label_of
from ..report.terminal import after_done, fitted_report, following, how_far, next_after, welcome
from ..report.words import attempt_words, defined_on
from ..result import ExerciseResult
from ..student.hints import note_first
from ..student.own_attempt import Own, done_exercises, from_here, read_own, state_of
from ..submission import proved_line
from . import options
from .learn import Desk, check_own, json_of, problem_lines
from .options import course_of, exercises_named

_DONE = "Done. What you save is checked again"
QUIET_MS = 30  # how long to wait for further changes, because editors save in several steps


def check(
    exercises: Annotated[
        list[str] | None, Argument(help="Ids or files, or an assignment [default: all that are started].")
    ] = None,
    assignment: options.AssignmentOption = None,
    course: options.CourseOption = None,
    watch: Annotated[bool, Option("--watch", help="Check again at every save, until Ctrl-C.")] = False,
    fresh: options.FreshOption = False,
    as_json: options.JsonOption = False,
    format: Annotated[
        Literal["text", "lines"], Option("--format", help="lines: what is wrong, a line each, for an editor.")
    ] = "text",
) -> None:
    """Check your own attempts, and name the misconception behind a mistake.

    Example: `course check reshape_dance`, or `course check --watch` while you write.
    """
    names, is_text = exercises or [], format == "text" and not as_json
    desk = Desk(course_of(course), fresh=fresh, quiet=not is_text)
    every = desk.course.exercises
    named = exercises_named(desk.course, names, assignment)
    if watch and as_json:
        raise CourseFault("--watch gives no JSON: ask for it after each save. Next: course check --json")
    with desk:
        if watch:
            desk.box()  # before there are threads
            with suppress(KeyboardInterrupt):  # Ctrl-C ends watching
                watch_saves(desk, named, as_lines=not is_text)
            return
        owns = [read_own(desk.course, exercise) for exercise in named]
        begun = [own for own in owns if own.is_begun]
        if not names:
            owns = begun
        elif len(names) == 1 and len(exercises_called(every, names[0])) > 1:
            owns = begun or owns  # of one number in two assignments, what is begun is meant
        if not is_text:
            results = [check_own(desk, own) for own in owns]
            lines = [line for own, result in zip(owns, results, strict=True) for line in problem_lines(own, result)]
            shown = json_of(owns, results) if as_json else "\n".join(lines)
            print(shown, end="\n" * bool(shown))
            if not all(result and result.is_done for result in results):
                raise Exit(1)
        elif owns:
            _show(desk, owns, names)
        else:
            desk.console.tell(*welcome(desk.course, str(from_here(every[0].script))))


def _show(desk: Desk, owns: Sequence[Own], names: Sequence[str]) -> None:
    """Print the result of each attempt, how far the student is, and what comes next. Exits where something is not done."""
    course, console, news = desk.course, desk.console, class_news(desk.course)
    done, next_ = show_each(desk, owns, names, 5 + 2 * bool(news))
    console.tell(*[news] * bool(news), style="dim")
    kept = done_exercises(course) if done else set()
    if {*done} - kept:
        said = "this result cannot be kept here, and course status will not know of it"
        console.say(f"note: {said}. Free some space, or copy the folder to where you may write.", style="dim")
    console.tell(*[how_far(course, kept := kept | {*done})] * bool(done))
    if next_:
        console.tell(next_)
        raise Exit(1)
    upcoming = following(course, kept, done[-1])
    where = f"go on with {upcoming.title}, in {from_here(upcoming.script)}" if upcoming else ""
    console.tell(f"Next: {where}, then: course check {upcoming.id}" if upcoming else "All done.")


def class_news(course: Course) -> str:
    """Return what git has fetched of the class repository and not merged, by exercise; "" where that is nothing, or unknown."""

    def changed(*options: str) -> list[str]:
        command = ["git", "-C", str(course.root), "diff", "--name-only", "--relative", *options, "HEAD...@{upstream}"]
        with suppress(OSError, subprocess.SubprocessError):  # no git, no upstream, or a slow disk
            return subprocess.run(command, capture_output=True, text=True, timeout=1, check=True).stdout.splitlines()
        return []

    if not (names := changed()):
        return ""
    scripts = {each.script.relative_to(course.root).as_posix(): each.stem for each in course.exercises}
    stubs = changed("-G", "^[[:space:]]*[^#[:space:]]")  # a line of code, and not of the lesson's text alone
    told = [f"{stem}'s {'stub' if name in stubs else 'lesson'}" for name, stem in scripts.items() if name in names]
    return f"note: the class repository is newer: {', '.join(told) or 'other files'}. Your work stays: git pull"


def show_each(desk: Desk, owns: Sequence[Own], names: Sequence[str], below: int = 5) -> tuple[list[Exercise], str]:
    """Print the result of each attempt. Returns what is done, and what comes next for the first that is not.

    On a terminal, of several attempts one is shown whole: the first that is not done, or the last.
    names: those that were given; of what is named it is told why it works, also unchanged. below: lines.
    """
    console, done, next_ = desk.console, list[Exercise](), ""
    for own in owns:
        if said := own.judged_instead(names):
            console.say(f"note: {said}", style="dim")
        if own.source.missing:
            said, _, following = own.source.problem.partition("\nNext: ")
            console.say(said, style="red")
            next_ = next_ or f"Next: {following}"
            continue
        exercise, result = own.exercise, desk.result(own)
        is_whole = not console.is_terminal or (not next_ and (not result.is_done or own is owns[-1]))
        is_old = exercise not in desk.ran
        after = after_done(exercise) if result.is_done and is_whole and (names or not is_old) else ()
        report = fitted_report(console, result, label_of(exercise), after, len(owns) + below)
        console.print(report if is_whole else report.renderables[0])
        if is_whole:
            note_first(result, desk.course.root)
            console.tell(*["  unchanged since its last check; --fresh runs it again"] * is_old, style="dim")
        if result.is_done:
            done.append(exercise)
        else:
            next_ = next_ or _next_of(own, result)
    return done, next_


def _next_of(own: Own, result: ExerciseResult) -> str:
    """Return what comes next for an attempt that is not done: the next function, where all that is written is right."""
    id_, source = own.exercise.id, own.source
    if attempt_words(result).gives_hint:
        return f"Next: course hint {id_}"
    if any(f.state not in ("right", "so_far", "waiting", "unwritten") for f in result.functions):
        return next_after(result) or f"Next: course hint {id_}"
    name = next((function.name for function in result.functions if function.state == "unwritten"), "")
    line = defined_on(source.source, name)
    where = f"{name}, on {proved_line(source, line).place} of {own.path}" if line else name
    return f"Next: {where and f'write {where}, then: '}course check {id_}"


def watch_saves(desk: Desk, named: Sequence[Exercise], *, as_lines: bool) -> None:
    """Check the first of these exercises that is not done, then each one that is saved; one done, go on to the next.

    as_lines: print what is wrong with all that is begun, a line each, for editors. A line before says that checking begins, and
    one behind that it has ended: in between stands all that is wrong, also with files that have not changed.
    """
    course, console, known = desk.course, desk.console, done_exercises(desk.course)
    for exercise in _saves(named, next((each for each in named if each not in known), named[-1])):
        if as_lines:
            print("checking what is saved", flush=True)
            owns = [own for each in named if (own := read_own(course, each)).is_started]
            lines = [line for own in owns for line in problem_lines(own, check_own(desk, own))]
            print(*lines, f"checked {len(owns)} of {len(named)}: {len(lines)} to mend", sep="\n", flush=True)
            continue
        if console.is_terminal:
            console.clear()
        done, _ = show_each(desk, [read_own(course, exercise)], [exercise.id])
        known = known | {*done} if done else known - {exercise}
        console.tell(*[how_far(course, known)] * len(done))
        upcoming = next((each for each in (exercise, *named) if each not in known), None)
        title = f"Go on with {upcoming.title}. " if upcoming not in (exercise, None) else ""
        what = f"{title}Save {from_here(upcoming.script)}, and it is checked" if upcoming else _DONE
        console.tell(f"{what}. Ctrl-C ends this.", style="dim")


def _saves(named: Sequence[Exercise], first: Exercise) -> Iterator[Exercise]:
    """Yield the first, then each exercise whose script or notebook has changed since.

    What the operating system tells only says when to look, and it is looked at every second, too: it tells nothing of saves
    before it was asked to, nor on some network drives.
    """
    from watchfiles import watch

    def state() -> dict[Exercise, str]:
        return {each: state_of(each.script) + state_of(each.notebook) for each in named}

    saved = state()  # before the first check: a save meanwhile counts
    yield first
    quiet = dict[str, Any](debounce=10 * QUIET_MS, step=QUIET_MS, rust_timeout=1000)
    for _ in watch(*{each.script.parent for each in named}, **quiet, yield_on_timeout=True, recursive=False):
        before, saved = saved, state()
        yield from (each for each in named if saved[each] != before[each])


def lsp() -> None:
    """Serve an editor over standard input and output, by the Language Server Protocol. Your editor starts it.

    At each save it shows what is wrong at its line, with hints as code actions and shapes as inlay hints.

    Example: `course lsp`, as the command of a language server for Python
    """
    try:
        from .language_server import server_for
    except ModuleNotFoundError as error:
        pip = f"{sys.executable} -m pip install --constraint constraints.txt pygls"
        raise CourseFault(f"course lsp needs pygls, and there is no {error.name}. Next: {pip}") from None
    from ..box.forked import open_own_box

    with open_own_box(meta=True) as box:
        output, sys.stdout = sys.stdout.buffer, sys.stderr  # what anything prints is no message
        server_for(box).start_io(stdout=output)
