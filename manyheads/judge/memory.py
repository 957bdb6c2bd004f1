"""What a judge remembers of earlier attempts at one exercise, so that equal work is done once.

All attempts of a run get the same inputs, and most of them answer most calls with the same bytes. So a call is packed once,
equal bytes are read once, the reference answers a call once, and a check that got the same replies as before
does what it did before: it makes the same next call, or ends with the same outcome. Nothing depends on whose attempt it is.
"""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass, field

from ..box.replies import read_reply
from ..box.worker import wire
from ..box.worker.answers import Reply
from ..box.worker.limits import MIB
from ..box.worker.messages import Call
from ..checks.cast import cast
from ..checks.implementation import LocalRunner
from ..checks.local import bytes_of, changes_in
from ..checks.outcome import CheckOutcome

LIMIT = 64 * MIB  # of calls, replies and answers
LARGE = MIB // 4  # a reply of more bytes is not remembered: one attempt's must not displace those of all others


@dataclass
class Step:
    """What a check made after certain replies: a call, or its outcome. None: no attempt has been here."""

    made: Call | CheckOutcome | None = None
    after: dict[int, Step] = field(default_factory=dict)  # by the id of the reply to the call


class Memory:
    """Of one exercise, with the same checks and the same inputs."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self.forget()

    def forget(self) -> None:
        """Forget all of it. Between attempts only, for a step stands for the replies before it."""
        self.size = 0  # how many bytes are remembered
        self._replies: dict[bytes, Reply] = {}  # by the digest of their bytes
        self._read: dict[int, Reply] = {}  # the same, by their ids, and those that a check has changed
        self._first: dict[str, Step] = {}  # by check
        self._calls: dict[bytes, Call] = {}  # by the digest of their bytes
        self._held: dict[int, Call] = {}  # the same, by their ids, and those that live longer
        self._packed: dict[tuple[int, str], bytes] = {}  # by the id of the call and its dtype
        self.answers: dict[int, tuple[Reply, int]] = {}  # of trusted code, with their changes, by the call's id

    def begin_attempt(self) -> None:
        """Forget all if it has become too much: what right attempts have in common is soon met again."""
        if self.size > self._limit:
            self.forget()

    def first(self, check: str) -> Step:
        """Return where the check with this id begins."""
        return self._first.setdefault(check, Step())

    def after(self, step: Step, reply: Reply) -> Step:
        """Return where its check goes on when its call got this reply."""
        return step.after.setdefault(id(reply), Step()) if id(reply) in self._read else Step()

    def note(self, step: Step, made: Call | CheckOutcome) -> Step:
        """Note what the check made at this step, and return the step.

        Where the check itself broke, that is remembered by nobody: this machine may have had its part in it.
        """
        if isinstance(made, CheckOutcome) and made.fault:
            return Step(made)
        step.made = self.hold(made) if isinstance(made, Call) else made
        return step

    def hold(self, call: Call) -> Call:
        """Return the same call for all equal ones: what is sent for it and what trusted code answers will be remembered."""
        if id(call) in self._held:
            return call
        data = wire.encode(call)
        digest = hashlib.sha256(data).digest()
        if digest not in self._calls:
            own = wire.decode(data)  # a copy: what a check changes in place afterwards does not change it
            assert isinstance(own, Call)
            self._calls[digest] = self._held[id(own)] = own
            self.size += len(data)
        return self._calls[digest]

    def hold_as_it_is(self, call: Call) -> None:
        """Hold a call that lives longer than this memory, and that nobody changes."""
        self._held[id(call)] = call

    def pack(self, call: Call, dtype: str) -> bytes:
        """Return the message that asks for this call, in this dtype unless the call has one."""
        key = (id(call), dtype)
        packed = self._packed.get(key) or wire.encode(cast(call, call.dtype or dtype))
        if key not in self._packed and id(call) in self._held:
            self._packed[key] = packed
            self.size += len(packed)
        return packed

    def read(self, payload: bytes) -> Reply:
        """Return the reply in these bytes: of the same bytes the same object. Raises BadReply."""
        if len(payload) > LARGE:
            return read_reply(payload)
        digest = hashlib.sha256(payload).digest()
        reply = self._replies.get(digest)
        if reply is None or changes_in(reply):
            reply = read_reply(payload)
            if not reply.stopped:  # such a one is no answer to a call, and sixty long messages in a few bytes each
                self._replies[digest] = self._read[id(reply)] = reply
                self.size += len(payload) + sys.getsizeof(reply.raised.message if reply.raised else "")
        return reply


@dataclass(frozen=True)
class RememberingRunner(LocalRunner):
    """The reference for checks, which make equal calls for one attempt after another."""

    memory: Memory = field(default_factory=Memory)

    def execute(self, call: Call) -> Reply:
        """Return the reply, computed once for all equal calls."""
        memory, call = self.memory, self.memory.hold(call)
        reply, changes = memory.answers.get(id(call), (None, 0))
        if reply is None or changes != changes_in(reply):
            reply = super().execute(call)
            if bytes_of(reply) <= LARGE:
                memory.answers[id(call)] = (reply, changes_in(reply))
                memory.size += bytes_of(reply)
        return reply
