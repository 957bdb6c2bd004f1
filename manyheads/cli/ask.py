"""`course ask`: questions about a student's own running code."""

from __future__ import annotations

import random
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from ..course import Course, CourseError, Exercise
from ..student.question import ASKED, LETTERS, Question, answer_lines, question_lines, read_letters
from .last_check import fingerprint_path, last_result
from .options import Console, CourseOption, course_of, exercise_named, open_console
from .own import check_one, done_exercises, own_attempt
from .progress import waiting

if TYPE_CHECKING:
    from ..box.level import Box

DONE_LAST = "the one that was done last"
_NONE, _STOP = "-", "Q"
_LARGEST_SEED = 1_000_000


def ask(
    exercise: Annotated[str | None, typer.Argument(help="Its id or file.", show_default=DONE_LAST)] = None,
    course: CourseOption = None,
    *,
    count: Annotated[int, typer.Option(min=1, max=20, help="How many questions.")] = ASKED,
    seed: Annotated[int | None, typer.Option(min=0, help="The same questions again [default: others].")] = None,
    letters: Annotated[str | None, typer.Option(help="Your answers, such as BADCA, in place of being asked.")] = None,
) -> None:
    """Answer questions about your own code: what each line makes, and what an edit of it would do.

    Example: `course ask reshape_dance`
    """
    from ..box.forked import open_own_box

    console, loaded = open_console(), course_of(course)
    wanted = _exercise_asked(loaded, exercise)
    seed = random.randrange(_LARGEST_SEED) if seed is None else seed
    with open_own_box(meta=True) as box, waiting(console, "reading your code"):
        questions = _own_questions(loaded, wanted, seed, count, box)
    same = f"course ask {wanted.id} --seed {seed}"
    given = "" if letters is None else read_letters(letters, len(questions), f"{same} --count {count} --letters")
    right = 0
    for number, question in enumerate(questions):
        console.print()
        console.tell(*question_lines(number + 1, len(questions), question))
        letter = given[number] if given else _letter(console)
        is_right = LETTERS.find(letter) == question.right
        right += is_right
        console.tell(*answer_lines(question, letter, shows_right=bool(given) or letter == _NONE))
        if not given and not is_right and letter in LETTERS:
            letter = _letter(console)
            console.tell(*answer_lines(question, letter, shows_right=True))
        if letter == _STOP:
            break
    console.tell(f"{right} of {len(questions)} at the first try.")
    console.tell(f"Next: {same if right < len(questions) else 'course status'}")
    if given and right < len(questions):
        raise typer.Exit(1)


def _exercise_asked(course: Course, name: str | None) -> Exercise:
    """Return the exercise with this name; without one, that which was done last. Raises CourseError."""
    if name is not None:
        return exercise_named(course, name, "ask")
    done = done_exercises(course)
    if not done:
        raise CourseError("no exercise is done yet, and questions come after a ✓. Next: course check")
    return max(done, key=lambda e: max(p.stat().st_mtime_ns for p in (e.script, e.notebook) if p.exists()))


def _own_questions(course: Course, exercise: Exercise, seed: int, count: int, box: Box) -> list[Question]:
    """Make questions about the student's attempt. Raises CourseError where it is not done, or its code gives none."""
    from ..diagnosis.recording_file import read
    from ..student.ask_questions import questions_about

    source = own_attempt(course, exercise)
    result = None if source.missing else last_result(exercise, source) or check_one(course, exercise, source, box)
    if result is None or not result.is_done:
        said = f"{exercise.id} is not done yet, and questions come after a ✓."
        raise CourseError(f"{said} Next: course check {exercise.id}")
    recorded, limits = read(fingerprint_path(exercise)), course.limits.for_worker()
    questions = questions_about(box, limits, exercise, recorded, source, seed, count)
    if not questions:
        raise CourseError(f"no question fits your code of {exercise.id}. Next: course trace {exercise.id}")
    return questions


def _forget_typed() -> None:
    """Drop what was typed on a terminal before it was asked for."""
    with suppress(ImportError, OSError, ValueError):
        import termios

        with suppress(termios.error):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def _letter(console: Console) -> str:
    while True:
        console.print("A, B, C or D (Enter: show it, q: stop): ", end="")
        _forget_typed()
        try:
            said = input().strip().upper()
        except EOFError:
            return _STOP
        if said in ("", _STOP, *LETTERS):
            return said or _NONE
