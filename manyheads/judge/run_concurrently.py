"""Run all checks of one attempt concurrently: each runs until its next call, and these calls are sent in one batch.

One by one, judge and attempt would alternate at every call, and each would find the CPU's caches filled by the other.
Concurrently, two dozen checks need only as many rounds as the longest check has calls.
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
    """The exception that ended each check, None if it passed, in the order of the checks."""
    attempt = _Waiting(run.attempt, getcurrent())
    running = {place: greenlet(check.call) for place, check in enumerate(checks)}
    ended: dict[int, BaseException | None] = {}
    calls = {place: each.switch(run, attempt) for place, each in running.items()}
    while True:
        ended |= {place: calls[place] for place, each in running.items() if each.dead}
        running = {place: each for place, each in running.items() if not each.dead}
        if not running:
            return [ended[place] for place in range(len(checks))]
        answers = run.attempt.execute_all([Question(checks[place].id, calls[place]) for place in running])
        calls = {
            place: each.switch(answer) if isinstance(answer, Reply) else each.throw(answer)
            for (place, each), answer in zip(running.items(), answers, strict=True)
        }


@dataclass
class _Waiting:
    """The runner that checks see here. A call suspends its check until all other checks have made a call or ended."""

    attempt: RecordingRunner
    hub: greenlet

    @property
    def device(self) -> str:
        """The device of the attempt's computations."""
        return self.attempt.device

    def execute(self, call: Call) -> Reply:
        """The reply. Raises AttemptEnded."""
        reply = self.hub.switch(call)
        assert isinstance(reply, Reply)
        return reply
