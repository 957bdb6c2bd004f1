"""Show questions, and what is said of answers, as styled lines for a terminal and a notebook."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from ..student.question import LETTERS, Question


def question_lines(number: int, count: int, question: Question) -> Iterator[Text]:
    """Yield a question with its options."""
    yield Text(f"Question {number} of {count}", "bold")
    yield Text(f"  {question.code}", "cyan")
    yield Text(question.text)
    yield from (Text(f"  {letter}  {option.text}") for letter, option in zip(LETTERS, question.options, strict=True))


def answer_lines(question: Question, letter: str, *, shows_right: bool) -> Iterator[Text]:
    """Yield why an answer is right; or why not, and the right one if that is asked for. letter: another than A to D is none."""
    right, place = question.options[question.right], LETTERS.find(letter)
    if place == question.right:
        yield Text(f"✓ {right.cause}", "green")
        return
    if place >= 0:
        yield Text(f"✗ {question.options[place].cause}", "red")
    if shows_right:
        yield Text(f"  It is {LETTERS[question.right]}: {right.text}. {right.cause}")
