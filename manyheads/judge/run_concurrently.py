"""All checks over one attempt side by side: each runs until it asks, and what they ask goes to the attempt in one go.

Asked one by one, the judge and the attempt's process take turns at every call, and each finds the CPU's caches full of
the other's. Side by side, two dozen checks have their answers in as many rounds as the longest of them asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from greenlet import getcurrent, greenlet

from ..box.worker.answers import Reply
from ..box.worker.messages import Call
from ..checks.recording import Question, RecordingRunner
from .check_run import Check, CheckRun


def run_concurrently(checks: Sequence[Check], run: CheckRun) -> list[BaseException | None]:
    """The exception that each check ended with, None where it passed; in their order."""
    attempt = _Waiting(run.attempt, getcurrent())
    running = {place: greenlet(check.call) for place, check in enumerate(checks)}
    ended: dict[int, BaseException | None] = {}
    said = {place: each.switch(run, attempt) for place, each in running.items()}
    while True:
        ended |= {place: said[place] for place, each in running.items() if each.dead}
        running = {place: each for place, each in running.items() if not each.dead}
        if not running:
            return [ended[place] for place in range(len(checks))]
        answers = run.attempt.execute_all([Question(checks[place].id, said[place]) for place in running])
        said = {
            place: each.switch(answer) if isinstance(answer, Reply) else each.throw(answer)
            for (place, each), answer in zip(running.items(), answers, strict=True)
        }


@dataclass
class _Waiting:
    """The attempt as a check sees it here: whoever asks waits until all the others have asked or ended."""

    attempt: RecordingRunner
    hub: greenlet

    @property
    def device(self) -> str:
        """Where it computes."""
        return self.attempt.device

    def execute(self, call: Call) -> Reply:
        """The reply. Raises AttemptEnded."""
        reply = self.hub.switch(call)
        assert isinstance(reply, Reply)
        return reply
