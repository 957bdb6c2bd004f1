"""`course hint`: one step closer to the answer each time."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from ..course.secret import FOLDER
from .console import open_console
from .last_check import CHECKED_LAST, exercise_meant, fingerprint_path, last_result
from .options import CourseOption, course_of
from .own import check_one, is_started, missing_message, own_attempt

NOTE = "hints.json"  # records which steps were shown


def hint(
    exercise: Annotated[str | None, typer.Argument(help="Its id or file.", show_default=CHECKED_LAST)] = None,
    course: CourseOption = None,
    *,
    again: Annotated[bool, typer.Option("--again", help="Start with the first step again.")] = False,
) -> None:
    """Ask for a hint: a question first, then a pointer, then nearly the answer.

    Example: `course hint reshape_dance`
    """
    loaded = course_of(course)
    wanted = exercise_meant(loaded, exercise, "hint")
    source = own_attempt(loaded, wanted)
    console = open_console()
    if source.missing:
        console.print(missing_message(loaded, wanted), soft_wrap=True, markup=False)
        raise typer.Exit(1)
    if not is_started(wanted, source):
        _print(console, wanted.hint, f"course check {wanted.id}")
        return
    result = last_result(wanted, source)
    if result is None:
        from ..box.forked import open_own_box

        with (
            open_own_box(meta=True) as box,
            console.status(f"checking {wanted.id}"),
        ):  # the box first: it may fork only while there is no other thread, and the spinner is one
            result = check_one(loaded, wanted, source, box)
    if result.is_done:
        _print(console, f"{wanted.id} needs no hint: every check passes.", "course status")
        return
    from ..diagnosis.recording_file import read
    from ..tools.hints import next_hint

    content = read(fingerprint_path(wanted)).content
    given = next_hint(content, result, wanted.hint, loaded.root / FOLDER / NOTE, again=again)
    if given.title:
        console.print(given.title, soft_wrap=not console.is_terminal, markup=False)
    _print(console, given.sentence, f"course {'check' if given.last else 'hint'} {wanted.id}")


def _print(console: Console, sentence: str, following: str) -> None:
    console.print(sentence, soft_wrap=not console.is_terminal, markup=False)
    console.print(f"Next: {following}")
