"""One attempt and the checks of one exercise: which fixtures a check gets, and how it is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from ..box.worker.form import Form
from ..checks.draw import Draw, Drawn, input_seed
from ..checks.implementation import Implementation, Runner
from ..checks.outcome import CheckOutcome
from ..checks.recording import RecordingRunner
from .memory import Memory

FIXTURES = ("attempt", "reference", "draw")


@dataclass(frozen=True)
class CheckRun:
    """What all checks of one exercise share.

    seed_parts: with the secret, they determine the inputs of every check.
    memory: of earlier attempts with the same inputs.
    forms: what functions and classes return, by their names, where that is not one tensor.
    drawn: a list to which everything that the checks draw is added.
    """

    attempt: RecordingRunner
    reference: Runner
    secret: bytes
    seed_parts: tuple[str, ...]
    memory: Memory = field(default_factory=Memory)
    forms: Mapping[str, Form] = field(default_factory=dict)
    drawn: list[Drawn] | None = None

    def fixture(self, name: str, check: str, attempt: Runner) -> Implementation | Draw:
        """The fixture `name`, one of FIXTURES, for the check function `check`."""
        if name == "draw":
            return Draw(input_seed(self.secret, *self.seed_parts, check), self.drawn)
        return Implementation(attempt if name == "attempt" else self.reference, forms=self.forms)


@dataclass(frozen=True)
class Check:
    """A hidden check, ready to be called.

    name: the function's name with pytest's id of its parameters, for example "test_fill[small]".
    fixtures: the FIXTURES that the function takes. parameters: its other arguments, by name.
    unattempted: its outcome before an attempt is judged.
    """

    name: str
    function: Callable[..., Any]
    fixtures: tuple[str, ...]
    unattempted: CheckOutcome
    parameters: Mapping[str, object] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The check's id in results."""
        return self.unattempted.id

    def call(self, run: CheckRun, attempt: Runner) -> BaseException | None:
        """Call the check, with `attempt` as its runner. Returns the exception that ended it, None if it passed."""
        fixtures = {name: run.fixture(name, self.name, attempt) for name in self.fixtures}
        try:
            self.function(**fixtures, **self.parameters)
        except (Exception, pytest.skip.Exception) as error:
            return error
        return None
