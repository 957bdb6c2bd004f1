"""Prove the line at which an attempt goes wrong. Every check passes after one edit of that line.

Edited attempts run in the box. First, the *screen* tests many edits in one process, one after the
other, which takes a tenth of the time. Then each promising edit is proved in a process that has run
nothing else, as any attempt is. If one text leaves data for the next in the process of the screen,
that can only make a test useless.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

from ..box.connection import AttemptEnded, Connection, End, Spent
from ..box.replies import read_reply
from ..box.worker import wire
from ..box.worker.messages import Call, Reply
from ..checks.explain_exceptions import is_left_open, says_unwritten
from ..checks.hidden_check import CheckOutcome
from ..checks.runner import Exchange, target_of
from ..result import CheckResult
from ..submission import Source
from .attempt_runner import AttemptRunner
from .edit_search import Bounds, OutOfTime, candidates, find_lines
from .parts_reached_by_calls import LineEdit

SCREEN_CALLS = 8  # the most wrongly answered calls that the screen repeats with an edited attempt
# The outcomes with which a search makes sense: a crash or a timeout may have other causes.
_SEARCHED = ("passed", "failed", "error", "skipped")
IsRight = Callable[[Reply], bool]


@dataclass
class EditedAttempts:
    """The search for edits that repair an attempt. It keeps the process of the screen.

    Attributes:
        attempt: The attempt.
        outcomes: The outcomes of the checks.
        is_right: Returns for a call a function that tells whether a reply is right. Returns None
            if a single reply to the call does not show it.
        checks_pass: Returns whether an attempt passes the checks with these ids, or all checks if
            none are given. Raises OutOfTime and AttemptEnded.
    """

    attempt: AttemptRunner
    outcomes: Sequence[CheckOutcome | CheckResult]
    is_right: Callable[[Call], IsRight | None]
    checks_pass: Callable[[AttemptRunner, Sequence[str]], bool]
    _connection: Connection | None = None  # to the process of the screen

    @cached_property
    def _failed_checks(self) -> list[str]:
        """The ids of the failed checks."""
        return [
            outcome.id for outcome in self.outcomes if outcome.outcome not in ("passed", "skipped")
        ]

    def proved_edits(self, bounds: Bounds) -> tuple[LineEdit, ...]:
        """Return an edit for each line at which one edit makes every check pass.

        Returns () if there are no such lines, or too many, or if one edit cannot be enough. Also
        returns () if the time is up, or if an edited attempt does not return.
        """
        if self._is_hopeless():
            return ()
        source = self.attempt.source
        exchanges = [
            exchange
            for exchange in self.attempt.transcript
            if exchange.check in self._failed_checks
        ]
        self._wrong_calls = list(islice(self._wrongly_answered(exchanges), SCREEN_CALLS))
        self._deadline = time.monotonic() + bounds.seconds
        raised = [exchange.reply.raised for exchange in exchanges]
        raised_on = {exception.line for exception in raised if exception and exception.line}
        targets = {target_of(exchange.call) for exchange in exchanges}
        edits = candidates(source, targets, raised_on)
        if source.cells:  # the lines at which cells begin must stay
            newlines = source.text.count("\n")
            edits = [edit for edit in edits if edit.after.text.count("\n") == newlines]
        try:
            return find_lines(edits, self._screen, self._passes, bounds)
        except (OutOfTime, AttemptEnded):
            return ()
        finally:
            if self._connection is not None:
                self._connection.close()

    def _is_hopeless(self) -> bool:
        """Return whether there is nothing to repair, or one edit cannot be enough.

        One edit is not enough if a check crashed or took too long, or if a called function is not
        written to its end.
        """
        if not self._failed_checks or self.attempt.source.is_unwritten:
            return True
        if any(outcome.outcome not in _SEARCHED for outcome in self.outcomes):
            return True
        raised = (exchange.reply.raised for exchange in self.attempt.transcript)
        return any(says_unwritten(exception) or is_left_open(exception) for exception in raised)

    def _wrongly_answered(self, exchanges: Sequence[Exchange]) -> Iterator[tuple[bytes, IsRight]]:
        """Yield each wrongly answered call, packed, with the function that judges a reply to it.

        Small calls come first, and calls that ask for gradients last. A call is skipped if a single
        reply to it does not show whether the attempt is right.
        """
        memory, dtype = self.attempt.memory, self.attempt.dtype
        packed = [(exchange, memory.pack(exchange.call, dtype)) for exchange in exchanges]
        packed.sort(key=lambda pair: (pair[0].call.cotangent is not None, len(pair[1])))
        for exchange, message in packed:
            is_right = self.is_right(exchange.call)
            if is_right is not None and not is_right(exchange.reply):
                yield message, is_right

    def _screen(self, edited_sources: Sequence[Source]) -> list[bool]:
        """Return for each edited attempt whether it answers the wrongly answered calls rightly.

        The first SCREEN_CALLS such calls count. If there are none, return whether the edited
        attempt passes the checks that the attempt failed.
        """
        if not self._wrong_calls:
            return [self._passes(source, self._failed_checks) for source in edited_sources]
        # One call rules out most attempts, and all attempts answer it in one batch.
        first_results = self._answer_rightly(edited_sources, self._wrong_calls[:1])
        return [
            is_promising and all(self._answer_rightly([source], self._wrong_calls))
            for is_promising, source in zip(first_results, edited_sources, strict=True)
        ]

    def _answer_rightly(
        self, edited_sources: Sequence[Source], calls: Sequence[tuple[bytes, IsRight]]
    ) -> list[bool]:
        """Return for each edited attempt whether it loads and answers all these calls rightly.

        All attempts run in one process, which is kept for the next call. If it ends, each attempt
        runs alone in a new process; an attempt that ends its process is not right. Raises
        AttemptEnded if an attempt takes too long, and OutOfTime.

        Args:
            edited_sources: The edited attempts.
            calls: Packed calls, each with the function that judges a reply to it.
        """
        packed_calls = [message for message, _ in calls]
        packed = []
        for source in edited_sources:
            packed += [wire.encode(source.load()), *packed_calls]
        seconds_left = self._seconds_left()
        try:
            connection = self._connection or self.attempt.box.attempt(self.attempt.limits)
            self._connection = None
            replies = iter(connection.ask_all(packed, read_reply, seconds_left))
        except AttemptEnded as ended:
            if ended.end is End.TIMEOUT:
                raise
            if len(edited_sources) == 1:
                return [False]
            return [all(self._answer_rightly([source], calls)) for source in edited_sources]
        connection.spent = Spent()
        self._connection = connection
        results = []
        for _ in edited_sources:
            loaded, call_replies = next(replies), [next(replies) for _ in calls]
            verdicts = (
                is_right(reply) for (_, is_right), reply in zip(calls, call_replies, strict=True)
            )
            results.append(loaded.raised is None and all(verdicts))
        return results

    def _passes(self, source: Source, only: Sequence[str] = ()) -> bool:
        """Return whether an edited attempt loads and passes these checks.

        Raises AttemptEnded if it takes too long, and OutOfTime.

        Args:
            source: The edited attempt.
            only: The ids of the checks, which are run in the process of the screen. If it is empty,
                all checks are run in a new process.
        """
        seconds_left, original = self._seconds_left(), self.attempt
        per_call = min(seconds_left, original.limits.seconds_per_call)
        per_attempt = min(seconds_left, original.limits.seconds_per_attempt)
        limits = replace(
            original.limits, seconds_per_call=per_call, seconds_per_attempt=per_attempt
        )
        # A copy, because the search keeps every edit, and their syntax trees need much memory.
        copy = replace(source)
        attempt = AttemptRunner(
            original.box, copy, limits, dtype=original.dtype, memory=original.memory
        )
        try:
            if only:
                connection = self._connection or original.box.attempt(original.limits)
                raised = attempt.load_into(connection)
            else:
                raised = attempt.load()
            return raised is None and self.checks_pass(attempt, only)
        except AttemptEnded as ended:
            if ended.end is End.TIMEOUT:
                raise
            return False
        finally:
            if only:
                self._connection = attempt.release()
            attempt.close()

    def _seconds_left(self) -> float:
        """Return the seconds until the deadline. Raises OutOfTime if it has passed."""
        seconds_left = self._deadline - time.monotonic()
        if seconds_left <= 0:
            raise OutOfTime
        return seconds_left
