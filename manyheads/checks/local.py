"""Runners that execute trusted code, as a replacement for an attempt or with a cache."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..box.connection import AttemptEnded
from ..box.worker.answers import Reply
from ..box.worker.messages import Call
from .explain import is_dtype_fault, is_refusal
from .implementation import LocalRunner
from .recording import Exchange, Question


@dataclass(frozen=True)
class CachedRunner(LocalRunner):
    """A local runner with a cache, for the reference: a diagnosis asks it the same calls many times."""

    known: dict[int, tuple[Call, Reply]] = field(
        default_factory=dict
    )  # by the id of the call, which is kept so that the id stays valid

    def execute(self, call: Call) -> Reply:
        """The reply, computed once for each call."""
        if id(call) not in self.known:
            self.known[id(call)] = (call, super().execute(call))
        return self.known[id(call)][1]


class LocalRecordingRunner:
    """Runs the reference or a mutant in the judge's process as if it were an attempt, and records the exchanges."""

    def __init__(self, namespace: Mapping[str, object], device: str = "cpu") -> None:
        self.check = ""
        self.device = device
        self.transcript: list[Exchange] = []
        self._runner = LocalRunner(namespace, device)

    def execute(self, call: Call) -> Reply:
        """The reply, which is recorded. Like an attempt's, it is computed in float32 if float64 raises."""
        reply = self._runner.execute(call)
        if call.dtype is None and reply.raised is not None and not is_refusal(reply.raised):
            in_single = self._runner.execute(dataclasses.replace(call, dtype="float32"))
            if in_single.raised is None or is_dtype_fault(reply.raised):
                reply = in_single
        self.transcript.append(Exchange(self.check, call, reply))
        return reply

    def execute_all(self, questions: Sequence[Question]) -> list[Reply | AttemptEnded]:
        """The reply to each question, one after the other."""
        replies: list[Reply | AttemptEnded] = []
        for question in questions:
            self.check = question.check
            replies.append(self.execute(question.call))
        return replies
