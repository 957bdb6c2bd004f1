"""Questions about a student's own running code, their text, and the letters of the answers.

Each question has four options. One is the code's result; every other option has a reason why it is
wrong. `ask_about_own_code` makes the questions.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rich.text import Text

from ..files import CourseFault

LETTERS = "ABCD"
NONE, STOP = "-", "Q"  # in place of a letter: no answer, and the end of the questions
ASKED = 5  # questions at a time
NO_CLUE = "That is not it. Work it out on paper, one operation of the line at a time."


@dataclass(frozen=True)
class Option:
    """One option.

    Attributes:
        text: The text of the option.
        cause: The reason why the option is wrong or right, shown together with the right answer.
        clue: A sentence shown before a second try, if a student chose this option. It does not
            compare the option with the right answer. If empty, NO_CLUE is shown.
    """

    text: str
    cause: str
    clue: str = ""


@dataclass(frozen=True)
class Question:
    """A question with its options.

    Attributes:
        text: The question.
        code: The line of the student's code that it is about.
        options: The options, in the order in which they are shown.
        correct_index: The index of the right option.
    """

    text: str
    code: str
    options: tuple[Option, ...]
    correct_index: int


def question(
    rng: random.Random, text: str, code: str, correct: Option, distractors: Iterable[Option]
) -> Question | None:
    """Return a question with the right option and three wrong ones, in random order.

    The wrong options are the first three whose texts differ from one another and from the right
    one. Return None if there are fewer.

    Args:
        rng: Decides the order.
        text: The question.
        code: The line of the student's code that it is about.
        correct: The right option.
        distractors: The wrong options, the best first.
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
    """Return the answers "BADCA" or "b, a, -, c, a" as one letter A to D each; "-" is no answer.

    Args:
        text: The answers.
        count: The number of questions.
        command: The command that received them, for the message.

    Raises:
        CourseFault: The text does not have `count` such letters, apart from spaces and commas.
    """
    letters = re.sub(r"[\s,]", "", text).upper()
    if not re.fullmatch(rf"[{LETTERS}{NONE}]{{{count}}}", letters):
        next_step = f"{command} {'A' * count}"
        raise CourseFault(
            f"{text!r} is not {count} letters from A to D, or {NONE} for none. Next: {next_step}"
        )
    return letters


def question_lines(number: int, count: int, question: Question) -> Iterator[Text]:
    """Yield the lines of a question: its number, the line of code, its text, and the options."""
    yield Text(f"Question {number} of {count}", "bold")
    yield Text(f"  {question.code}", "cyan")
    yield Text(question.text)
    yield from (
        Text(f"  {letter}  {option.text}")
        for letter, option in zip(LETTERS, question.options, strict=True)
    )


def answer_lines(question: Question, letter: str, *, shows_right: bool) -> Iterator[Text]:
    """Yield the lines below an answer: why it is right or wrong, and the right answer if shown.

    Without an answer, there is no line about it.

    Args:
        question: The question.
        letter: The answer. Any other letter than A to D counts as no answer.
        shows_right: Whether to show the right answer after a wrong one or none. If false, there
            is a second try, and only a clue is shown.
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
