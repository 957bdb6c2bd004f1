"""Draw questions about an attempt, and prove them again in other processes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from ..errors import CourseFault
from ..judge.attempt_runner import AttemptRunner
from ..result import Diagnosed
from ..submission import proved_line
from .check_attempt import check_and_diagnose
from .question import ASKED, LETTERS, Option, Question
from .question_edits import edit_outcome, edit_with_outcome
from .question_inputs import easy_row, positions_moved
from .question_trace import axis_at_line, memory_at_line, origin_at_line, shape_at_line
from .question_versions import Material

_LINE = re.compile(r"\b([Ll])ine (\d+)\b")
MOST = 6  # of one template, from which one is drawn
Template = Callable[[Material], Iterator[Question | None]]
TEMPLATES: dict[str, Template] = {
    "shape_at_line": shape_at_line,
    "axis_at_line": axis_at_line,
    "memory_at_line": memory_at_line,
    "origin_at_line": origin_at_line,
    "edit_outcome": edit_outcome,
    "edit_with_outcome": edit_with_outcome,
    "positions_moved": positions_moved,
    "easy_row": easy_row,
}


def draw(material: Material, count: int = ASKED) -> list[Question]:
    """Return so many questions, of as many templates as there are. Fewer where the attempt gives no more."""
    drawn: list[Question] = []
    texts: set[str] = set()
    names = list(TEMPLATES)
    material.rng.shuffle(names)
    waiting = {name: _shuffled(material, TEMPLATES[name]) for name in names}
    while waiting and len(drawn) < count:
        for name in list(waiting):
            question = next(waiting[name], None)
            if question is None:
                del waiting[name]
            elif question.text not in texts and len(drawn) < count:
                texts.add(question.text)
                drawn.append(_as_the_student_sees(material, question))
    return drawn


def _shuffled(material: Material, template: Template) -> Iterator[Question]:
    """Yield some questions of a template in a random order, made when the first is asked for."""
    found = list(islice((q for q in template(material) if q is not None), MOST))
    material.rng.shuffle(found)
    yield from found


# What a wrong option is an instance of.


def misconception_of(material: Material, option: Option) -> Diagnosed | None:
    """Return the misconception of the version that gives an option; None where it has none by itself."""
    if option.edit is None:
        return None
    edited = replace(material.source, source=option.edit.after)
    attempt = AttemptRunner(material.box, edited, material.limits)
    try:
        if attempt.load() is not None:
            return None
        diagnosis = check_and_diagnose(material.fingerprints, attempt, edited.source, material.exercise)[1]
    finally:
        attempt.close()
    return diagnosis.named[0] if len(diagnosis.named) == 1 else None


@dataclass(frozen=True)
class Answered:
    """What is said of an answer. letter: "" where none was given."""

    letter: str
    is_right: bool
    why: str


def answered(material: Material, question: Question, letter: str) -> Answered:
    """Say why an answer is right; or why not, with the misconception that would give it, and that one's first hint."""
    if letter not in LETTERS[: len(question.options)] or not letter:
        return Answered("", False, "")
    option = question.options[LETTERS.index(letter)]
    if option is question.options[question.right]:
        return Answered(letter, True, option.cause)
    named = misconception_of(material, option)
    return Answered(letter, False, option.cause if named is None else f"{option.cause} {named.title} {named.hint}")


def in_full(question: Question) -> str:
    """Return the right answer in words."""
    right = question.options[question.right]
    return f"It is {LETTERS[question.right]}: {right.text}. {right.cause}"


def read_letters(said: str, count: int) -> list[str]:
    """Return the letters of answers such as BADCA or "b, a, -, c, a"; "-" where none is given. Raises CourseFault."""
    given = re.sub(r"[\s,]", "", said).upper()
    if not re.fullmatch(rf"[{LETTERS}-]{{{count}}}", given):
        letters = "A" * count
        raise CourseFault(
            f"{said!r} is not {count} letters from A to D, or - for none. Next: the same with letters such as {letters}"
        )
    return list(given)


def _as_the_student_sees(material: Material, question: Question) -> Question:
    """Return the question with lines of a notebook called by their cells."""

    def told(text: str) -> str:
        return _LINE.sub(lambda found: _place(found, material), text)

    if not material.source.cells:
        return question
    options = tuple(
        replace(o, text=told(o.text), cause=told(o.cause), shows=told(o.shows) if o.shows == o.text else o.shows)
        for o in question.options
    )
    wanted = told(question.wanted) if question.wanted == question.options[question.right].text else question.wanted
    return replace(question, text=told(question.text), code=told(question.code), options=options, wanted=wanted)


def _place(found: re.Match[str], material: Material) -> str:
    place = proved_line(material.source, int(found[2])).place
    return f"{found[1]}{place[1:]}"
