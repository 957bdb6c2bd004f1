"""One attempt against the checks of one exercise: what a check is given, and how it is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from ..checks.draw import Draw, input_seed
from ..checks.implementation import Implementation, Runner
from ..checks.outcome import CheckOutcome
from ..checks.recording import RecordingRunner

FIXTURES = ("attempt", "reference", "draw")


@dataclass(frozen=True)
class CheckRun:
    """seed_parts: with the secret, what the inputs of every check are drawn from."""

    attempt: RecordingRunner
    reference: Runner
    secret: bytes
    seed_parts: tuple[str, ...]

    def fixture(self, name: str, check: str, attempt: Runner) -> Implementation | Draw:
        """The fixture of that name, one of FIXTURES, for the check function of that name."""
        if name == "draw":
            return Draw(input_seed(self.secret, *self.seed_parts, check))
        return Implementation(attempt if name == "attempt" else self.reference)


@dataclass(frozen=True)
class Check:
    """A hidden check as the judge calls it.

    name: of the function, with pytest's id of its parameters, such as "test_fill[small]".
    fixtures: those of FIXTURES that the function takes. parameters: its other arguments, by name.
    unattempted: its outcome while no attempt has been judged.
    """

    name: str
    function: Callable[..., Any]
    fixtures: tuple[str, ...]
    unattempted: CheckOutcome
    parameters: Mapping[str, object] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The check's name as results have it."""
        return self.unattempted.id

    def call(self, run: CheckRun, attempt: Runner) -> BaseException | None:
        """The exception that the check ended with; None where it passed. `attempt` answers in this check."""
        fixtures = {name: run.fixture(name, self.name, attempt) for name in self.fixtures}
        try:
            self.function(**fixtures, **self.parameters)
        except (Exception, pytest.skip.Exception) as error:
            return error
        return None
