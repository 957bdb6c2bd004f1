"""A question about a student's own running code.

One option is the code's result. Every other option has a reason why it is wrong.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rich.text import Text

from ..course_fault import CourseFault

LETTERS = "ABCD"
NONE, STOP = "-", "Q"  # in place of a letter: no answer, and the end
ASKED = 5  # questions at a time
NO_CLUE = "That is not it. Work it out on paper, one operation of the line at a time."


@dataclass(frozen=True)
class Option:
    """One option.

    Attributes:
        text: The option.
        cause: Why it is wrong or right. It is shown with the right answer.
        clue: A question that this option would answer, shown before a second try. It does not
            compare the option with the right answer.
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
    """Return the question with the first three wrong options that differ, in random order.

    None if there are fewer.
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
    """Return the letters of answers such as BADCA or "b, a, -, c, a"; "-" is no answer.

    Args:
        text: The answers.
        count: The number of questions.
        command: The command that received them, for the message.

    Raises:
        CourseFault: The text is not `count` letters.
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
    """Yield the reason why an answer is right or wrong.

    Args:
        question: The question.
        letter: The answer. Any other letter than A to D counts as no answer.
        shows_right: Whether to show the right answer. Before a second try, only a clue is shown.
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
