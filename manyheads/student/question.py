"""A question about a student's own running code: one option is what the code does, each other one is what other code does."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # torch, which a command that refuses need not import
    from ..box.worker.answers import Reply, Traced
    from ..box.worker.messages import Call, TraceCall
    from ..diagnosis.edit_text import Edit

LETTERS = "ABCD"
OPTIONS = len(LETTERS)
ASKED = 5  # questions at a time


class Version(Protocol):
    """One version of the code in a process of its own: the student's, or one with an edit."""

    def reply(self, call: Call) -> Reply:
        """Return its reply to a call. Raises AttemptEnded."""

    def traced(self, call: TraceCall) -> Traced:
        """Return the trace of a call. Raises AttemptEnded."""


Observe = Callable[[Version, Version], str]  # what a version shows, beside the student's own


@dataclass(frozen=True)
class Option:
    """One option. cause: why it is wrong; of the right one, why it is right.

    edit: the version of the student's code that gives it; None: no edit is needed to say so. observe: how anybody can see
    it in that version; None where `cause` says all. shows: what is seen there.
    """

    text: str
    cause: str
    edit: Edit | None = None
    observe: Observe | None = None
    shows: str = ""


@dataclass(frozen=True)
class Question:
    """template: which kind of question it is. wanted: what the right option shows. code: lines of the student's code."""

    template: str
    text: str
    options: tuple[Option, ...]
    wanted: str
    code: str = ""

    @property
    def right(self) -> int:
        """The place of the right option."""
        return next(place for place, option in enumerate(self.options) if option.shows == self.wanted)

    @property
    def is_sound(self) -> bool:
        """Whether it has four options, no two of them equal, one of them right, and each with its cause."""
        texts, right = {option.text for option in self.options}, [o for o in self.options if o.shows == self.wanted]
        return len(texts) == len(self.options) == OPTIONS and len(right) == 1 and all(o.cause for o in self.options)


def ask(
    template: str, text: str, right: Option, wrong: Sequence[Option], rng: random.Random, code: str = ""
) -> Question | None:
    """Return the question with the first three wrong options that differ, in any order; None where there are fewer.

    What a wrong option shows is its text, if nothing else is said.
    """
    right = replace(right, shows=right.shows or right.text)
    options, texts = [right], {right.text}
    for option in wrong:
        if option.text not in texts and len(options) < OPTIONS:
            texts.add(option.text)
            options.append(replace(option, shows=option.shows or option.text))
    rng.shuffle(options)
    question = Question(template, text, tuple(options), right.shows, code)
    return question if question.is_sound else None
