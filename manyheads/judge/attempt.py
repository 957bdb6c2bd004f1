"""One attempt as the judge asks it: fresh processes when one dies, one budget of time, a transcript of all calls."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ..box.connection import AttemptEnded, Connection, End
from ..box.level import Box
from ..box.worker.answers import Raised, Reply
from ..box.worker.limits import Limits
from ..box.worker.messages import Call, Load
from ..checks.cast import cast
from ..checks.explain import is_dtype_fault, is_refusal
from ..checks.recording import Exchange, Question
from ..submission import AttemptSource
from .validate_reply import validate_reply, without_far_lines

SHORTER_AFTER_DEATH = 4  # after each death the time for a call is divided by this,
FIRST_START = 2  # times as long may the first process take to start: on a busy machine nobody loses points for that
CUDA_IS_BROKEN = "CUDA error"  # an index out of range, say: no call in that process works any more
AT_ONCE = 1.0  # seconds for what is asked at once, a hundred times what it takes: then each call is asked alone
SHORTEST = 0.5  # seconds, down to this: less, and a busy machine would decide what becomes of the checks that are left


class AttemptRunner:
    """Answers calls by asking the attempt's process in the box."""

    def __init__(
        self, box: Box, source: AttemptSource, limits: Limits, device: str = "cpu", dtype: str = "float64"
    ) -> None:
        """`dtype`: what to start with."""
        self.device = device
        self.check = ""  # the check that is asking
        self.transcript: list[Exchange] = []
        self.dtype = dtype
        self._box, self._source, self._limits = box, source, limits
        self._connection: Connection | None = None
        self._lines = source.source.count("\n") + 1
        self._deaths = 0
        self._alone = False  # whether calls are asked one by one from now on
        self._spent = 0.0

    def load(self) -> Raised | None:
        """Import the attempt in a fresh process; its exception, if it raised one. Raises AttemptEnded."""
        self.close()
        started = time.monotonic()
        self._connection = self._box.attempt(self._limits)
        if self._deaths:  # on a GPU a start takes seconds, and who dies at every call would have them for nothing
            self._spent += time.monotonic() - started
        patience = self._box.start_seconds * (1 if self._deaths else FIRST_START)
        reply = self._ask(Load(self._source.source, self._source.name), patience)
        return reply.raised

    def execute(self, call: Call) -> Reply:
        """The attempt's reply, in float64 if the attempt can do that, else in float32."""
        return self._settle(Question(self.check, call))

    def execute_all(self, questions: Sequence[Question]) -> list[Reply | AttemptEnded]:
        """A reply to each, or how the attempt's process ended of it.

        They are asked at once. Where that does not go well, each is asked alone: no verdict comes of asking at once.
        """
        dtype, calls = self.dtype, [question.call for question in questions]
        replies = self._at_once(calls, dtype)
        doubtful = [i for i, reply in enumerate(replies) if reply is not None and self._is_doubtful(calls[i], reply)]
        in_single = dict(zip(doubtful, self._at_once([calls[i] for i in doubtful], "float32"), strict=True))
        answers: list[Reply | AttemptEnded] = []
        for i, (question, reply) in enumerate(zip(questions, replies, strict=True)):
            known = (reply, in_single.get(i)) if self.dtype == dtype else (in_single.get(i), None)
            try:
                answers.append(self._settle(question, *known))
            except AttemptEnded as ended:
                answers.append(ended)
        return answers

    def _settle(self, question: Question, reply: Reply | None = None, in_single: Reply | None = None) -> Reply:
        """The reply for the record. What is known already, in its dtype and in float32, is not asked again."""
        call = question.call
        reply = reply or self._execute_as(call, call.dtype or self.dtype)
        if self._is_doubtful(call, reply):
            in_single = in_single or self._execute_as(call, "float32")
            if in_single.raised is None:
                self.dtype, reply = "float32", in_single
            elif reply.raised is not None and is_dtype_fault(reply.raised):
                reply = in_single
        self.transcript.append(Exchange(question.check, call, reply))
        return reply

    def _is_doubtful(self, call: Call, reply: Reply) -> bool:
        """Whether it may have raised for nothing but our float64."""
        raised = reply.raised
        return call.dtype is None and self.dtype == "float64" and raised is not None and not is_refusal(raised)

    def close(self) -> None:
        """End the attempt's process."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _at_once(self, calls: Sequence[Call], dtype: str) -> list[Reply | None]:
        """A reply to each call; or none at all, and the process is gone."""
        none: list[Reply | None] = [None] * len(calls)
        if len(calls) < 2 or self._connection is None or self._alone or self.device != "cpu":
            return none
        limits, started = self._limits, time.monotonic()
        patience = min(AT_ONCE, limits.seconds_per_call, max(0.0, limits.seconds_per_attempt - self._spent))
        try:
            replies = self._connection.ask_all([cast(call, call.dtype or dtype) for call in calls], patience)
        except AttemptEnded:
            self._connection, self._alone = None, True
            return none
        if any(validate_reply(call, reply) for call, reply in zip(calls, replies, strict=True)):
            self.close()
            self._alone = True
            return none
        self._spent += time.monotonic() - started
        return [without_far_lines(reply, self._lines) for reply in replies]

    def _execute_as(self, call: Call, dtype: str) -> Reply:
        if self._connection is None:
            raised = self.load()
            if raised is not None:
                return Reply(raised=raised)
        reply = self._ask(cast(call, dtype, self.device))
        if problem := validate_reply(call, reply):
            self.close()
            self._deaths += 1
            raise AttemptEnded(End.BAD_REPLY, f"The attempt sent something that is not an answer: {problem}.")
        if self.device != "cpu" and reply.raised is not None and CUDA_IS_BROKEN in reply.raised.message:
            self.close()  # or every later check would fail as this one
            self._deaths += 1
        return reply

    def _ask(self, message: Load | Call, extra: float = 0.0) -> Reply:
        remaining = self._limits.seconds_per_attempt - self._spent
        if remaining <= 0:
            self.close()
            whole = f"{self._limits.seconds_per_attempt:g}"
            raise AttemptEnded(
                End.TIMEOUT, f"This attempt has used up the {whole} seconds that a whole attempt may take."
            )
        per_call = self._limits.seconds_per_call
        allowed = min(remaining, per_call, max(SHORTEST, per_call / SHORTER_AFTER_DEATH**self._deaths))
        started = time.monotonic()
        assert self._connection is not None
        try:
            return without_far_lines(self._connection.ask(message, allowed + extra), self._lines)
        except AttemptEnded:
            self._connection = None
            self._deaths += 1
            raise
        finally:
            self._spent += max(0.0, time.monotonic() - started - extra)
