"""What is under judgement, and the record of what it was asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..box.connection import AttemptEnded
from ..box.worker.answers import Reply
from ..box.worker.messages import Call
from .implementation import Runner


@dataclass(frozen=True)
class Question:
    """A call, and the check that asks it."""

    check: str
    call: Call


@dataclass(frozen=True)
class Exchange:
    """A call, as the check wrote it, and the attempt's reply."""

    check: str
    call: Call
    reply: Reply


class BatchRunner(Runner, Protocol):
    """A runner of which much can be asked at once."""

    def execute_all(self, questions: Sequence[Question]) -> list[Reply | AttemptEnded]:
        """A reply to each, or how the attempt's process ended of it."""


class RecordingRunner(BatchRunner, Protocol):
    """An attempt, or trusted code in its place, with a record of what it answered."""

    check: str  # the one that asks with `perform`
    transcript: list[Exchange]


def replies_of(subject: BatchRunner, calls: Sequence[Call], check: str = "") -> list[Reply]:
    """A reply to each call. Raises AttemptEnded where the attempt died of one."""
    replies = []
    for answer in subject.execute_all([Question(check, call) for call in calls]):
        if isinstance(answer, AttemptEnded):
            raise answer
        replies.append(answer)
    return replies
