"""One attempt's turn at the checks of one file: what checks are given, and the shortest way to call one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .candidate import Candidate, Performer
from .draw import Draw, input_seed
from .subject import Subject


@dataclass(frozen=True)
class Turn:
    """One attempt's turn at the checks of one file."""

    checks: Path
    subject: Subject
    reference: Performer
    secret: bytes
    seed_parts: tuple[str, ...]

    def given(self, fixture: str, check: str, attempt: Performer | None = None) -> Candidate | Draw:
        """The fixture of that name, for the check of that name: "attempt", "reference" or "draw".

        `attempt`: what stands for the subject in this check.
        """
        if fixture == "draw":
            return Draw(input_seed(self.secret, *self.seed_parts, check))
        return Candidate(attempt or self.subject if fixture == "attempt" else self.reference)


@dataclass(frozen=True)
class PlainCheck:
    """A check that asks for nothing of pytest's: pytest's own protocol costs more than most checks do."""

    id: str  # of the check
    name: str  # of the function
    function: Callable[..., Any]
    fixtures: tuple[str, ...]

    def call(self, turn: Turn, attempt: Performer) -> BaseException | None:
        """What it ended with, None where it passed."""
        try:
            self.function(**{fixture: turn.given(fixture, self.name, attempt) for fixture in self.fixtures})
        except (Exception, pytest.skip.Exception) as error:
            return error
        return None


def check_id(item: pytest.Item) -> str:
    """The check's name as results have it."""
    return item.name.removeprefix("test_")


def plain_check(item: pytest.Item) -> PlainCheck | None:
    """The item as a plain function of a turn's fixtures; None where it is more, or has a time limit of its own."""
    if not isinstance(item, pytest.Function) or item.cls is not None or item.get_closest_marker("timeout") is not None:
        return None
    if not set(item.fixturenames) <= {"attempt", "reference", "draw", "request"}:
        return None
    fixtures = tuple(inspect.signature(item.obj).parameters)
    return None if "request" in fixtures else PlainCheck(check_id(item), item.name, item.obj, fixtures)
