"""A question about a student's own running code: one option is what the code does, each other one
has a reason why it is wrong.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rich.text import Text

from ..errors import CourseFault

LETTERS = "ABCD"
NONE, STOP = "-", "Q"  # in place of a letter: no answer, and the end
ASKED = 5  # questions at a time
NO_CLUE = "That is not it. Work it out on paper, one operation of the line at a time."


@dataclass(frozen=True)
class Option:
    """One option.

    Attributes:
        cause: Why it is wrong; of the right one, why it is right. It is told with the right answer.
        clue: What it would be the answer to, for a second try. It compares nothing with the right
            answer.
    """

    text: str
    cause: str
    clue: str = ""


@dataclass(frozen=True)
class Question:
    """right: the place of the right option.

    code: the line of the student's code that it is about.
    """

    text: str
    code: str
    options: tuple[Option, ...]
    correct_index: int


def question(
    rng: random.Random, text: str, code: str, correct: Option, distractors: Iterable[Option]
) -> Question | None:
    """Return the question with the first three wrong options that differ, in any order; None where
    there are fewer.
    """
    by_text = {correct.text: correct}
    for option in distractors:
        by_text.setdefault(option.text, option)
    options = list(by_text.values())[: len(LETTERS)]
    if len(options) < len(LETTERS):
        return None
    rng.shuffle(options)
    return Question(text, code, tuple(options), options.index(correct))


def read_letters(text: str, count: int, command: str) -> str:
    """Return the letters of answers such as BADCA or "b, a, -, c, a"; "-" where none is given.

    Raises CourseFault.

    command: the command that they were given to.
    """
    letters = re.sub(r"[\s,]", "", text).upper()
    if not re.fullmatch(rf"[{LETTERS}{NONE}]{{{count}}}", letters):
        next_step = f"{command} {'A' * count}"
        raise CourseFault(
            f"{text!r} is not {count} letters from A to D, or {NONE} for none. Next: {next_step}"
        )
    return letters


def question_lines(number: int, count: int, question: Question) -> Iterator[Text]:
    """Yield a question with its options."""
    yield Text(f"Question {number} of {count}", "bold")
    yield Text(f"  {question.code}", "cyan")
    yield Text(question.text)
    yield from (
        Text(f"  {letter}  {option.text}")
        for letter, option in zip(LETTERS, question.options, strict=True)
    )


def answer_lines(question: Question, letter: str, *, shows_right: bool) -> Iterator[Text]:
    """Yield why an answer is right; or why not, with the right one; or before a second try only a
    clue.

    letter: another than A to D is none.
    """
    correct, choice = question.options[question.correct_index], LETTERS.find(letter)
    if choice == question.correct_index:
        yield Text(f"✓ {correct.cause}", "green")
        return
    if choice >= 0:
        option = question.options[choice]
        yield Text(f"✗ {option.cause if shows_right else option.clue or NO_CLUE}", "red")
    if shows_right:
        yield Text(f"  It is {LETTERS[question.correct_index]}: {correct.text}. {correct.cause}")
