"""All checks of a turn side by side: each runs until it asks, and what they ask goes to the attempt in one go.

Asked one by one, the judge and the attempt's process take turns at every call, and each finds the CPU's caches full of
the other's. Side by side, two dozen checks have their answers in as many rounds as the longest of them asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from greenlet import getcurrent, greenlet

from ..box.worker.answers import Reply
from ..box.worker.messages import Call
from .subject import Question, Subject
from .turn import PlainCheck, Turn


def run_together(checks: Sequence[PlainCheck], turn: Turn) -> list[BaseException | None]:
    """What each ended with, None where it passed; in their order."""
    attempt = _Waiting(turn.subject, getcurrent())
    running = {place: greenlet(check.call) for place, check in enumerate(checks)}
    ended: dict[int, BaseException | None] = {}
    said = {place: run.switch(turn, attempt) for place, run in running.items()}
    while True:
        ended |= {place: said[place] for place, run in running.items() if run.dead}
        running = {place: run for place, run in running.items() if not run.dead}
        if not running:
            return [ended[place] for place in range(len(checks))]
        answers = turn.subject.perform_all([Question(checks[place].id, said[place]) for place in running])
        said = {
            place: run.switch(answer) if isinstance(answer, Reply) else run.throw(answer)
            for (place, run), answer in zip(running.items(), answers, strict=True)
        }


@dataclass
class _Waiting:
    """The attempt as a check sees it here: whoever asks waits until all the others have asked or ended."""

    subject: Subject
    hub: greenlet

    @property
    def device(self) -> str:
        """Where it computes."""
        return self.subject.device

    def perform(self, call: Call) -> Reply:
        """The reply. Raises AttemptEnded."""
        reply = self.hub.switch(call)
        assert isinstance(reply, Reply)
        return reply
