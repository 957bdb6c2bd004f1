"""Trusted code in an attempt's place."""

from __future__ import annotations

from collections.abc import Mapping

from ..box.worker.messages import Call, Reply
from .attempt import Exchange
from .candidate import LocalPerformer


class LocalSubject:
    """The reference or a mutant, answering checks in the judge's own process."""

    device = "cpu"

    def __init__(self, namespace: Mapping[str, object]) -> None:
        self.check = ""
        self.transcript: list[Exchange] = []
        self._performer = LocalPerformer(namespace)

    def perform(self, call: Call) -> Reply:
        """The reply, kept in the transcript."""
        reply = self._performer.perform(call)
        self.transcript.append(Exchange(self.check, call, reply))
        return reply
