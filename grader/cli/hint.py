"""`course hint`: one step nearer to the answer each time it is asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ..course import Exercise
from ..course.secret import FOLDER
from ..result import ExerciseResult
from .check import check_one, fingerprint_path, is_begun, own_attempt
from .options import CourseOption, course_of, exercise_named

Steps = tuple[str, ...]


def hint(
    exercise: Annotated[str, typer.Argument(help="Its id or file.")],
    course: CourseOption = None,
    *,
    again: Annotated[bool, typer.Option("--again", help="Start with the first step again.")] = False,
) -> None:
    """Ask for a hint: a question first, then a pointer, then nearly the answer.

    Example: `course hint reshape_dance`
    """
    loaded = course_of(course)
    assignment, wanted = exercise_named(loaded, exercise, "hint")
    source = own_attempt(loaded, assignment, wanted)
    console = Console(highlight=False)
    if not is_begun(loaded, assignment, wanted, source):
        _print(console, wanted.hint, f"course check {wanted.id}")
        return
    result = check_one(loaded, assignment, wanted, source)
    if all(check.outcome == "passed" for check in result.checks):
        _print(console, f"{wanted.id} needs no hint: every check passes.", "course status")
        return
    about, title, steps = _steps(fingerprint_path(loaded, assignment, wanted), result, wanted)
    given = next_step(loaded.root / FOLDER / "hints.json", wanted.id, about, len(steps), again=again)
    if title:
        console.print(title, soft_wrap=True, markup=False)
    following = f"course hint {wanted.id}" if given < len(steps) else f"course check {wanted.id}"
    _print(console, f"Hint {given} of {len(steps)}: {steps[given - 1]}", following)


def _steps(fingerprints: Path, result: ExerciseResult, exercise: Exercise) -> tuple[str, str, Steps]:
    """What the hints are about, its title, and the steps: of the misconception, or of the first failing check."""
    from ..public.file import read

    for named in result.diagnosis:
        words = read(fingerprints).content.words.get(named.id)
        if words:
            return named.id, named.title, words.hints
    first = next(check for check in result.checks if check.outcome != "passed")
    steps = tuple(dict.fromkeys(step for step in (first.hint, exercise.hint) if step))
    return first.id, f"Not yet: it {first.title}", steps


def next_step(path: Path, exercise: str, about: str, steps: int, *, again: bool = False) -> int:
    """The step to show, noted in this file. Another mistake starts with its own first step."""
    try:
        noted = dict(json.loads(path.read_text(encoding="utf-8")))
        before = noted.get(exercise, {})
        seen = int(before["step"]) if before.get("about") == about and not again else 0
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        noted, seen = {}, 0  # nobody has asked yet, or the note is damaged: begin with the first step
    step = min(seen + 1, steps)
    noted[exercise] = {"about": about, "step": step}
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_text(json.dumps(noted), encoding="utf-8")
    return step


def _print(console: Console, sentence: str, following: str) -> None:
    console.print(sentence, soft_wrap=True, markup=False)
    console.print(f"Next: {following}")
