"""Run all checks of one attempt concurrently: each runs until its next call, and these calls are sent in one batch.

One by one, judge and attempt would alternate at every call, and each would find the CPU's caches filled by the other.
Concurrently, two dozen checks need only as many rounds as the longest check has calls. What the run's memory knows of a
check is not run again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from greenlet import getcurrent, greenlet

from ..box.connection import AttemptEnded
from ..box.worker.answers import Reply
from ..box.worker.messages import Call
from ..checks.outcome import CheckOutcome
from ..checks.transcript import Question, RecordingRunner
from .hidden_checks import Check, CheckRun
from .memory import Step

JudgeEnd = Callable[[Check, BaseException | None], CheckOutcome]


def run_concurrently(checks: Sequence[Check], run: CheckRun, judge_end: JudgeEnd) -> list[CheckOutcome]:
    """Return the outcome of each check, in the order of the checks.

    judge_end: the outcome of a check that ended with this exception, None if it passed.
    """
    started = [_Running(check, run, judge_end) for check in checks]
    running = [thread for thread in started if not thread.advance()]
    while running:
        answers = run.attempt.execute_all([Question(other.check.id, other.call) for other in running])
        running = [each for each, answer in zip(running, answers, strict=True) if not each.answered(answer)]
    return [thread.outcome for thread in started]


class _Running:
    """One check: where it stands, and its function, which is run only where nobody knows what it does next."""

    def __init__(self, check: Check, run: CheckRun, judge_end: JudgeEnd) -> None:
        self.check = check
        self._run, self._judge_end = run, judge_end
        self._step = run.memory.first(check.id)
        self._unseen: list[Reply] = []  # replies that the function has not got
        self._function = greenlet(check.call)

    @property
    def call(self) -> Call:
        """What it asks now."""
        assert self._step.call is not None
        return self._step.call

    @property
    def outcome(self) -> CheckOutcome:
        """How it ended."""
        assert self._step.outcome is not None
        return self._step.outcome

    def advance(self) -> bool:
        """Go to its next call or to its end. Returns whether it has ended."""
        if self._step.call is None and self._step.outcome is None:
            self._note(self._catch_up())
        return self._step.outcome is not None

    def answered(self, answer: Reply | AttemptEnded) -> bool:
        """Advance with the answer to its call. Returns whether it has ended."""
        if isinstance(answer, Reply):
            self._unseen.append(answer)
            self._step = self._run.memory.after(self._step, answer)
            return self.advance()
        self._catch_up()
        self._step = Step()  # remembered by nobody: the next attempt may answer
        self._note(self._function.throw(answer))
        return self._step.outcome is not None

    def _catch_up(self) -> Call | BaseException | None:
        """Give the function all replies that it has not got. Returns its next call, or what ended it."""
        made = None
        if not self._function:
            made = self._function.switch(self._run, _Waiting(self._run.attempt, getcurrent()))
        while self._unseen:
            made = self._function.switch(self._unseen.pop(0))
        return made

    def _note(self, made: Call | BaseException | None) -> None:
        self._run.memory.note(self._step, made if isinstance(made, Call) else self._judge_end(self.check, made))


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
        """Return the reply. Raises AttemptEnded."""
        reply = self.hub.switch(call)
        assert isinstance(reply, Reply)
        return reply
