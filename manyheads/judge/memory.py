"""What a judge remembers of earlier attempts at one exercise, so that equal work is done once.

All attempts of a run get the same inputs, and most of them answer most calls with the same bytes. So a call is packed once,
equal bytes are read once, the reference and the mutants answer a call once, and a check that got the same replies as before
does what it did before: it makes the same next call, or ends with the same outcome. Nothing depends on whose attempt it is.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from ..box.replies import read_reply
from ..box.worker import wire
from ..box.worker.answers import Reply
from ..box.worker.limits import MIB
from ..box.worker.messages import Call
from ..checks.cast import cast
from ..checks.implementation import LocalRunner
from ..checks.local import Replays, changes_in
from ..checks.outcome import CheckOutcome

LIMIT = 64 * MIB  # of calls and replies as they are sent: beyond it, all is forgotten
LARGE = MIB // 4  # a reply of more bytes is not remembered: one attempt's must not displace those of all others


@dataclass
class Step:
    """What a check did after certain replies: it made a call, or it ended. Neither: no attempt has been here."""

    call: Call | None = None
    outcome: CheckOutcome | None = None
    is_held: bool = False  # whether the memory will know it when another attempt comes here
    after: dict[int, Step] = field(default_factory=dict)  # by the id of the reply to `call`

    @property
    def is_known(self) -> bool:
        """Whether the check has come to this step before."""
        return self.call is not None or self.outcome is not None


class Memory:
    """Of one exercise, with the same checks and the same inputs."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._forget()

    def _forget(self) -> None:
        self._bytes = 0
        self._replies: dict[bytes, Reply] = {}  # by the digest of their bytes
        self._read: dict[int, Reply] = {}  # the same, by their ids, and those that a check has changed
        self._first: dict[str, Step] = {}  # by check
        self._calls: dict[bytes, Call] = {}  # by the digest of their bytes
        self._held: dict[int, Call] = {}  # the same, by their ids
        self._packed: dict[tuple[int, str], bytes] = {}  # by the id of the call and its dtype
        self.replays = Replays(self._held)

    def begin_attempt(self) -> None:
        """Forget all if it has become too much. Between attempts only, for a step stands for the replies before it."""
        if self._bytes + self.replays.bytes > self._limit:
            self._forget()

    def first(self, check: str) -> Step:
        """Where the check with this id begins."""
        return _unless_faulty(self._first.setdefault(check, Step(is_held=True)))

    def after(self, step: Step, reply: Reply) -> Step:
        """Where its check goes on when `step.call` got this reply."""
        if step.is_held and id(reply) in self._read:
            return _unless_faulty(step.after.setdefault(id(reply), Step(is_held=True)))
        return Step()

    def note(self, step: Step, made: Call | CheckOutcome) -> None:
        """What the check did at this step."""
        if isinstance(made, CheckOutcome):
            step.outcome = made
            return
        step.call = self.hold(made) if step.is_held else made

    def hold(self, call: Call) -> Call:
        """The same call for all equal ones: what is sent for it and what trusted code answers will be remembered."""
        if id(call) in self._held:
            return call
        data = wire.encode(call)
        digest = hashlib.blake2b(data).digest()
        if digest not in self._calls:
            own = wire.decode(data)  # a copy: what a check changes in place afterwards does not change it
            assert isinstance(own, Call)
            self._calls[digest] = self._held[id(own)] = own
            self._bytes += len(data)
        return self._calls[digest]

    def hold_as_it_is(self, call: Call) -> None:
        """Hold a call that lives longer than this memory, and that nobody changes."""
        self._held[id(call)] = call

    def read(self, payload: bytes) -> Reply:
        """The reply in these bytes: of the same bytes the same object. Raises BadReply."""
        if len(payload) > LARGE:
            return read_reply(payload)
        digest = hashlib.blake2b(payload).digest()
        reply = self._replies.get(digest)
        if reply is None or changes_in(reply):
            reply = self._replies[digest] = read_reply(payload)
            self._read[id(reply)] = reply
            self._bytes += len(payload)
        return reply

    def pack(self, call: Call, dtype: str) -> bytes:
        """The message that asks for this call, in this dtype unless the call has one."""
        key = (id(call), dtype)
        if key in self._packed:
            return self._packed[key]
        packed = wire.encode(cast(call, call.dtype or dtype))
        if id(call) in self._held:
            self._packed[key] = packed
            self._bytes += len(packed)
        return packed


def _unless_faulty(step: Step) -> Step:
    """The step; where the check itself broke, one that is tried anew: this machine may have had its part in it."""
    return Step() if step.outcome is not None and step.outcome.fault else step


@dataclass(frozen=True)
class RememberingRunner(LocalRunner):
    """The reference for checks, which make equal calls for one attempt after another."""

    memory: Memory = field(default_factory=Memory)

    def execute(self, call: Call) -> Reply:
        """The reply, computed once for all equal calls."""
        return self.memory.replays.reply(self, self.memory.hold(call))
