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

LIMIT = 64 * MIB  # of calls and replies as they are sent: beyond it, what was met but once is forgotten
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
        self.forget()

    def forget(self) -> None:
        """Forget all of it. Between attempts only."""
        self._replies: dict[bytes, Reply] = {}  # by the digest of their bytes
        self._read: dict[int, Reply] = {}  # the same, by their ids, and those that a check has changed
        self._first: dict[str, Step] = {}  # by check
        self._calls: dict[bytes, Call] = {}  # by the digest of their bytes
        self._held: dict[int, Call] = {}  # the same, by their ids, and those that live longer
        self._asked: set[int] = set()  # ids of calls that an attempt was asked
        self._packed: dict[tuple[int, str], bytes] = {}  # by the id of the call and its dtype, from the second time on
        self._sizes: dict[int, int] = {}  # in bytes, of calls and replies by their ids
        self._bytes = 0
        self._met_again: set[int] = set()  # ids of calls and replies, since something was forgotten
        self._answers: dict[int, tuple[Reply, int]] = {}  # of trusted code, with their changes, by the call's id
        self._answers_bytes = 0

    @property
    def size(self) -> int:
        """How many bytes are remembered."""
        return self._bytes + self._answers_bytes

    def begin_attempt(self) -> None:
        """Forget what is rare if all has become too much, and all if most is not rare.

        What right attempts have in common is met again and again; what a wrong one says is mostly met once. Between attempts
        only, for a step stands for the replies before it.
        """
        if self.size > self._limit:
            self._forget_rare()
            if self.size > self._limit / 2:
                self.forget()

    def _forget_rare(self) -> None:
        common, self._met_again = self._met_again, set()
        self._replies = {digest: reply for digest, reply in self._replies.items() if id(reply) in common}
        self._read = {id(reply): reply for reply in self._replies.values()}
        rare = {id(call) for call in self._calls.values()} - common
        self._calls = {digest: call for digest, call in self._calls.items() if id(call) in common}
        for place in rare:
            del self._held[place]
        self._asked -= rare
        self._packed = {key: packed for key, packed in self._packed.items() if key[0] in self._held}
        self._first = {check: step for check, step in self._first.items() if self._keep(step)}
        self._sizes = {place: size for place, size in self._sizes.items() if place in self._read or place in self._held}
        self._bytes = sum(self._sizes.values()) + sum(map(len, self._packed.values()))
        self._answers = {place: known for place, known in self._answers.items() if place not in rare}
        self._answers_bytes = sum(bytes_of(reply) for reply, _ in self._answers.values())

    def _keep(self, step: Step) -> bool:
        """Return whether the step's own call is kept, and then of what comes after it only what is kept, too."""
        if step.call is not None and id(step.call) not in self._held:
            return False
        step.after = {key: each for key, each in step.after.items() if key in self._read and self._keep(each)}
        return True

    def first(self, check: str) -> Step:
        """Return where the check with this id begins."""
        return _unless_faulty(self._first.setdefault(check, Step(is_held=True)))

    def after(self, step: Step, reply: Reply) -> Step:
        """Return where its check goes on when `step.call` got this reply."""
        if step.is_held and id(reply) in self._read:
            return _unless_faulty(step.after.setdefault(id(reply), Step(is_held=True)))
        return Step()

    def note(self, step: Step, made: Call | CheckOutcome) -> None:
        """Note what the check did at this step."""
        if isinstance(made, CheckOutcome):
            step.outcome = made
            return
        step.call = self.hold(made) if step.is_held else made

    def hold(self, call: Call) -> Call:
        """Return the same call for all equal ones: what is sent for it and what trusted code answers will be remembered."""
        if id(call) in self._held:
            return call
        data = wire.encode(call)
        digest = hashlib.sha256(data).digest()
        if digest in self._calls:
            self._met_again.add(id(self._calls[digest]))
        else:
            own = wire.decode(data)  # a copy: what a check changes in place afterwards does not change it
            assert isinstance(own, Call)
            self._calls[digest] = self._held[id(own)] = own
            self._count(own, len(data))
        return self._calls[digest]

    def hold_as_it_is(self, call: Call) -> None:
        """Hold a call that lives longer than this memory, and that nobody changes."""
        self._held[id(call)] = call

    def read(self, payload: bytes) -> Reply:
        """Return the reply in these bytes: of the same bytes the same object. Raises BadReply."""
        if len(payload) > LARGE:
            return read_reply(payload)
        digest = hashlib.sha256(payload).digest()
        reply = self._replies.get(digest)
        if reply is None or changes_in(reply):
            reply = read_reply(payload)
            if reply.stopped:  # no answer to a call, and sixty long messages in a few bytes each
                return reply
            self._replies[digest] = self._read[id(reply)] = reply
            self._count(reply, len(payload) + sys.getsizeof(reply.raised.message if reply.raised else ""))
        else:
            self._met_again.add(id(reply))
        return reply

    def _count(self, kept: Call | Reply, size: int) -> None:
        self._sizes[id(kept)] = size
        self._bytes += size

    def answer(self, runner: LocalRunner, call: Call) -> Reply:
        """Return what trusted code, the same for all of this memory, answers: computed once for equal calls."""
        call = self.hold(call)
        reply, changes = self._answers.get(id(call), (None, 0))
        if reply is None or changes != changes_in(reply):
            reply = LocalRunner.execute(runner, call)
            if bytes_of(reply) <= LARGE:
                self._answers[id(call)] = (reply, changes_in(reply))
                self._answers_bytes += bytes_of(reply)
        return reply

    def pack(self, call: Call, dtype: str) -> bytes:
        """Return the message that asks for this call, in this dtype unless the call has one."""
        key = (id(call), dtype)
        if key in self._packed:
            self._met_again.add(id(call))
            return self._packed[key]
        packed = wire.encode(cast(call, call.dtype or dtype))
        if id(call) in self._asked:
            self._packed[key] = packed
            self._bytes += len(packed)
        elif id(call) in self._held:
            self._asked.add(id(call))
        return packed


def _unless_faulty(step: Step) -> Step:
    """Return the step; where the check itself broke, one that is tried anew: this machine may have had its part in it."""
    return Step() if step.outcome is not None and step.outcome.fault else step


@dataclass(frozen=True)
class RememberingRunner(LocalRunner):
    """The reference for checks, which make equal calls for one attempt after another."""

    memory: Memory = field(default_factory=Memory)

    def execute(self, call: Call) -> Reply:
        """Return the reply, computed once for all equal calls."""
        return self.memory.answer(self, call)
