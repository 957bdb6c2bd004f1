"""Runners that answer many calls together, and the record of calls and replies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..box.connection import AttemptEnded
from ..box.worker.answers import Reply
from ..box.worker.messages import Build, Call
from .implementation import Runner


def target_of(call: Call) -> str:
    """Return the name of the function that is called, or of the class that is built."""
    return call.subject.target if isinstance(call.subject, Build) else call.subject


@dataclass(frozen=True)
class Question:
    """A call, and the id of the check that asks it."""

    check: str
    call: Call


@dataclass(frozen=True)
class Exchange:
    """A call as the check wrote it, and the reply."""

    check: str
    call: Call
    reply: Reply


class BatchRunner(Runner, Protocol):
    """A runner that can execute many calls together."""

    def execute_all(self, questions: Sequence[Question]) -> list[Reply | AttemptEnded]:
        """Return a reply to each question, or the AttemptEnded of a call that ended the process."""


class RecordingRunner(BatchRunner, Protocol):
    """A runner for an attempt, or for trusted code in its place, that records its exchanges."""

    check: str  # the id of the check that calls `execute`
    transcript: list[Exchange]
