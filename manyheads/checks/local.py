"""Trusted code in an attempt's place."""

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
    """The reference, of which a diagnosis asks the same call again and again."""

    known: dict[int, tuple[Call, Reply]] = field(default_factory=dict)  # by the call's identity, and to keep it

    def execute(self, call: Call) -> Reply:
        """The reply, worked out once."""
        if id(call) not in self.known:
            self.known[id(call)] = (call, super().execute(call))
        return self.known[id(call)][1]


class LocalRecordingRunner:
    """The reference or a mutant, answering checks in the judge's own process."""

    def __init__(self, namespace: Mapping[str, object], device: str = "cpu") -> None:
        self.check = ""
        self.device = device
        self.transcript: list[Exchange] = []
        self._runner = LocalRunner(namespace, device)

    def execute(self, call: Call) -> Reply:
        """The reply, kept in the transcript: in float32 where a mutant cannot do float64, as an attempt's."""
        reply = self._runner.execute(call)
        if call.dtype is None and reply.raised is not None and not is_refusal(reply.raised):
            in_single = self._runner.execute(dataclasses.replace(call, dtype="float32"))
            if in_single.raised is None or is_dtype_fault(reply.raised):
                reply = in_single
        self.transcript.append(Exchange(self.check, call, reply))
        return reply

    def execute_all(self, questions: Sequence[Question]) -> list[Reply | AttemptEnded]:
        """One after the other."""
        replies: list[Reply | AttemptEnded] = []
        for question in questions:
            self.check = question.check
            replies.append(self.execute(question.call))
        return replies
