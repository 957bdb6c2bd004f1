"""Show questions, and what is said of answers, as styled lines for a terminal and a notebook."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from ..student.ask_questions import Answered, in_full
from ..student.question import LETTERS, Question


def question_lines(number: int, count: int, question: Question) -> Iterator[Text]:
    """Yield a question with its options."""
    yield Text(f"Question {number} of {count}", "bold")
    if question.code:
        yield Text(f"  {question.code}", "cyan")
    yield Text(question.text)
    yield from (Text(f"  {letter}  {option.text}") for letter, option in zip(LETTERS, question.options, strict=True))


def answer_lines(question: Question, answer: Answered, *, shows_right: bool) -> Iterator[Text]:
    """Yield what is said of an answer; where it is wrong, the right one too if that is asked for."""
    if answer.is_right:
        yield Text(f"✓ {answer.why}", "green")
        return
    if answer.letter:
        yield Text(f"✗ {answer.why}", "red")
    if shows_right:
        yield Text(f"  {in_full(question)}")
