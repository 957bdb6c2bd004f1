"""Send calls to one attempt, refuse impossible replies, and remember replies for later attempts.

Most attempts at an exercise answer most calls with the same bytes, so most of the work is done
once.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from itertools import cycle

from ..box.connection import AttemptEnded, Box, Connection, End, Spent
from ..box.open_and_load import Stopped, load, start_again
from ..box.replies import read_reply, within_file
from ..box.worker import wire
from ..box.worker.limits import MIB, Limits
from ..box.worker.messages import Build, Call, Load, Output, Raised, Reply
from ..box.worker.result_structure import OPAQUE, Form, read_misfit
from ..checks.explain import is_dtype_fault, is_refusal
from ..checks.hidden_check import CheckOutcome
from ..checks.runner import CheckQuestion, Exchange, LocalRunner, Runner, bytes_of, cast, changes_in
from ..submission import Source
from .redact_hidden_inputs import (
    builds_in,
    changeable_arguments,
    names_given,
    names_in,
    with_known_names,
    without_tensors,
)

LIMIT = 64 * MIB  # bytes of remembered calls, replies and answers
# bytes: a longer reply is not remembered, so that one attempt does not displace all others
LARGE = MIB // 4
SHORTER_AFTER_END = 4  # each time the process ends, the time for a call is divided by this
# seconds: the least time for a call, below which a busy machine would decide the remaining checks
SHORTEST = 0.5
# for one batch, about a hundred times as long as it needs; after that, each call is sent alone
BATCH_SECONDS = 1.0
# processes of an attempt that only build a module: most attempts need none, a few need two
MOST_ASKED_FOR_NAMES = 8
# After such an error, for example an index out of range, no call in that process works.
CUDA_IS_BROKEN = "CUDA error"


@dataclass
class ReplayNode:
    """The next action of a check after certain replies: a call, or its outcome.

    None stands for a place that no attempt has reached yet.
    """

    next_action: Call | CheckOutcome | None = None
    # keyed by the id of the reply to the call
    after: dict[int, ReplayNode] = field(default_factory=dict)


class ReplayCache:
    """The results of earlier attempts at one exercise, with the same checks and inputs.

    Most attempts answer most calls with the same bytes. So a call is packed once, equal bytes are
    parsed once, and the reference answers a call once. A check that gets the same replies as before
    is not run again: it makes the same next call, or ends with the same outcome. Nothing depends on
    whose attempt it is.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self.forget()

    def forget(self) -> None:
        """Clear the cache. Only between attempts: a step stands for the replies before it."""
        self.size = 0  # how many bytes are remembered
        self._replies: dict[bytes, Reply] = {}  # keyed by the digest of their bytes
        # the same replies by their ids, and replies that a check has changed
        self._read: dict[int, Reply] = {}
        self._first: dict[str, ReplayNode] = {}  # by check
        self._calls: dict[bytes, Call] = {}  # keyed by the digest of their bytes
        self._held: dict[int, Call] = {}  # the same calls by their ids, and calls that live longer
        # the calls made from a call, by the id of that call
        self._made: dict[int, Sequence[Call]] = {}
        self._packed: dict[tuple[int, str], bytes] = {}  # keyed by the id of the call and its dtype
        # replies of trusted code, with the versions of their tensors, by the call's id
        self.answers: dict[int, tuple[Reply, int]] = {}
        # names of the reference's parameters, by the call's id
        self._names: dict[int, frozenset[str]] = {}

    def begin_attempt(self) -> None:
        """Clear the cache if it is too large.

        Correct attempts soon fill it again with the replies that they share.
        """
        if self.size > self._limit:
            self.forget()

    def first_step(self, check: str) -> ReplayNode:
        """Return the first step of the check with this id."""
        return self._first.setdefault(check, ReplayNode())

    def after(self, step: ReplayNode, reply: Reply) -> ReplayNode:
        """Return the step of the check that follows when its call gets this reply."""
        return (
            step.after.setdefault(id(reply), ReplayNode())
            if id(reply) in self._read
            else ReplayNode()
        )

    def note(self, step: ReplayNode, action: Call | CheckOutcome) -> ReplayNode:
        """Note the action of the check at this step, and return the step.

        If the check itself broke, its outcome is not remembered: this machine may be the cause.
        """
        if isinstance(action, CheckOutcome) and action.fault:
            return ReplayNode(action)
        step.next_action = self.hold(action) if isinstance(action, Call) else action
        return step

    def hold(self, call: Call) -> Call:
        """Return one object for all equal calls.

        Its id is the key under which its message and the answers of trusted code are remembered.
        """
        if id(call) in self._held:
            return call
        data = wire.encode(call)
        digest = hashlib.sha256(data).digest()
        if digest not in self._calls:
            # A copy does not change if a check changes its call in place afterwards.
            call_copy = wire.decode(data)
            assert isinstance(call_copy, Call)
            self._calls[digest] = self._held[id(call_copy)] = call_copy
            self.size += len(data)
        return self._calls[digest]

    def memoised(self, call: Call, make: Callable[[Call], Sequence[Call]]) -> Sequence[Call]:
        """Return the calls that `make` returns for this one, made once.

        Use it with one `make` only.
        """
        call = self.hold(call)
        if id(call) not in self._made:
            self._made[id(call)] = [*map(self.hold, make(call))]
        return self._made[id(call)]

    def hold_as_it_is(self, call: Call) -> None:
        """Hold a call that outlives this cache and does not change."""
        self._held[id(call)] = call

    def names_in(self, call: Call, reference: Runner) -> frozenset[str]:
        """Return the names of the reference's parameters in what the call builds."""
        call = self.hold(call)
        if id(call) not in self._names:
            builds = [
                replace(build, state=None, report=(), skip_init=True) for build in builds_in(call)
            ]
            replies = [reference.execute(Call(build, only_build=True)) for build in builds]
            self._names[id(call)] = frozenset[str]().union(*map(names_in, replies))
        return self._names[id(call)]

    def pack(self, call: Call, dtype: str) -> bytes:
        """Return the message that asks for this call, in this dtype unless the call has one."""
        key = (id(call), dtype)
        packed = self._packed.get(key) or wire.encode(cast(call, call.dtype or dtype))
        if key not in self._packed and id(call) in self._held:
            self._packed[key] = packed
            self.size += len(packed)
        return packed

    def read(self, payload: bytes) -> Reply:
        """Return the reply in these bytes, one object for equal bytes. Raises BadReply."""
        if len(payload) > LARGE:
            return read_reply(payload)
        digest = hashlib.sha256(payload).digest()
        reply = self._replies.get(digest)
        if reply is None or changes_in(reply):
            reply = read_reply(payload)
            # A reply with stopped parts answers no call. In few bytes it may stand for sixty long
            # messages.
            if not reply.stopped:
                self._replies[digest] = self._read[id(reply)] = reply
                self.size += len(payload) + sys.getsizeof(
                    reply.raised.message if reply.raised else ""
                )
        return reply


@dataclass(frozen=True)
class RememberingRunner(LocalRunner):
    """The reference for checks, which make equal calls for one attempt after another."""

    memory: ReplayCache = field(default_factory=ReplayCache)

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


def validate_reply(call: Call, reply: Reply) -> str:
    """Return why the reply cannot be an answer to this call; "" if it can.

    The parser has checked its form; its content is the attempt's claim.
    """
    builds = [value for value in call.inputs if isinstance(value, Build)]
    attributes = zip((facts.attributes.keys() for facts in reply.modules), builds, strict=False)
    states = (frozenset(build.state or ()) for build in builds)
    unloaded = zip((facts.unloaded for facts in reply.modules), states, strict=False)
    leaves = cycle(form for _, form in call.form.leaves())

    # After an exception, some entries may be missing.
    def differs(entries: Sequence[object], expected_count: int) -> bool:
        return len(entries) > expected_count or (
            reply.raised is None and len(entries) != expected_count
        )

    problems = {
        "it has another number of outputs than the call asks for": differs(
            reply.outputs, call.outputs
        ),
        "it describes a part that is opaque, or parts that were not asked": not all(
            map(_is_of, reply.outputs, leaves)
        ),
        "it reports on modules that were not built": differs(reply.modules, len(builds)),
        "it names weights that were not given": any(
            not state_names.issuperset(names) for names, state_names in unloaded
        ),
        "it reports on attributes that were not requested": any(
            reported != {*build.report} for reported, build in attributes
        ),
        "it reports on parts of a file, which only loading it runs": bool(
            reply.stopped or reply.parts
        ),
        "it reports on operations that were not watched": call.watch
        != (reply.operations is not None),
        "it gives gradients that were not requested": bool(reply.gradients)
        and call.cotangent is None,
        "it names arguments that were not given": bool(reply.mutated)
        and not changeable_arguments(call).issuperset(reply.mutated),
    }
    return next((problem for problem, is_so in problems.items() if is_so), "")


def _is_of(output: Output, form: Form) -> bool:
    """Return whether the output is possible at this leaf of a form.

    An opaque output says nothing, and a misfit has no numbers.
    """
    is_misfit = read_misfit(output.kind) is not None
    if is_misfit or output.kind == OPAQUE:
        return (is_misfit or form.kind == "opaque") and output == Output(output.kind)
    return form.kind != "opaque"


def _cause(reply: Reply) -> object:
    """Return the part of an exception that does not depend on sizes."""
    raised = reply.raised
    return raised and (raised.type, raised.line, re.sub(r"\d+", "", raised.message))


@dataclass(eq=False)
class AttemptRunner:
    """Executes calls in the attempt's process in the box.

    It replaces a process that ended, keeps the time limit, and records all calls.
    """

    box: Box
    source: Source
    limits: Limits
    device: str = "cpu"
    dtype: str = "float64"  # the dtype of the next call that states none
    # the replies to earlier attempts
    memory: ReplayCache = field(default_factory=ReplayCache)
    check: str = ""  # the id of the check that calls `execute`
    transcript: list[Exchange] = field(default_factory=list)
    # the call that ended the process, by the id of its check
    ended: dict[str, Call] = field(default_factory=dict)
    stopped: tuple[Stopped, ...] = ()  # parts of the file that did not run to their end
    # ids of calls answered in float32, though any dtype would do
    in_single: set[int] = field(default_factory=set)
    # the causes of exceptions that occurred in float64 and in float32 alike
    in_both: set[object] = field(default_factory=set)
    # Given if inputs are hidden. Then names that they may have chosen are removed from replies
    # (`with_known_names`).
    reference: Runner | None = None
    _connection: Connection | None = None
    _ends: int = 0  # how often the process has ended
    # replies by the call's id and their dtype
    _ahead: dict[int, dict[str, Reply]] = field(default_factory=dict)
    _one_by_one: bool = False  # whether calls are no longer sent in batches
    _spent: Spent = field(default_factory=Spent)
    # names in the reply of a process without any other call, by the call's id
    _named_alone: dict[int, frozenset[str]] = field(default_factory=dict)

    def load(self) -> Raised | None:
        """Import the attempt in a fresh process.

        Returns its exception, if it raised one. Raises AttemptEnded.
        """
        self.close()
        if self._ends:
            self._connection = start_again(self.box, self.limits, self._spent)
        else:
            self._connection = self.box.attempt(self.limits)
        self._allowed()
        try:
            loaded = load(self.box, self.limits, self.source.load(), self._connection, self._spent)
        except AttemptEnded:
            self._connection = None
            self._ends += 1
            raise
        self._connection = loaded.connection
        if not self.source.skipped:  # otherwise an earlier process has reported the skipped parts
            self.stopped = loaded.stopped
            if loaded.skipped:  # otherwise the same Source stays, and keeps its syntax tree
                self.source = replace(self.source, skipped=loaded.skipped)
        return loaded.raised

    def load_into(self, connection: Connection) -> Raised | None:
        """Load the attempt in a process that has loaded another text, and return its exception.

        This serves a first look, and never a verdict.
        """
        self._connection, connection.spent = connection, self._spent
        return self._ask(self.source.load()).raised

    def release(self) -> Connection | None:
        """Return the connection and give it up. None if the process has ended."""
        connection, self._connection = self._connection, None
        return connection

    def execute(self, call: Call) -> Reply:
        """Return the attempt's reply, in float32 if the attempt cannot compute in float64."""
        return self._final_reply(CheckQuestion(self.check, call), self._ahead.pop(id(call), {}))

    def ask_ahead(self, calls: Sequence[Call]) -> None:
        """Send these calls in one message.

        `execute` returns the replies. A call without a reply is then sent alone.
        """
        self._ahead = dict(zip(map(id, calls), self._replies(calls), strict=True))

    def execute_all(self, questions: Sequence[CheckQuestion]) -> list[Reply | AttemptEnded]:
        """Return a reply to each question, or the AttemptEnded of a call that ended the process.

        The calls are sent in one batch. If anything goes wrong there, each call is sent alone: a
        batch decides no verdict.
        """
        answers: list[Reply | AttemptEnded] = []
        for question, ready_replies in zip(
            questions, self._replies([question.call for question in questions]), strict=True
        ):
            try:
                answers.append(self._final_reply(question, ready_replies))
            except AttemptEnded as ended:
                answers.append(ended)
        return answers

    def _replies(self, calls: Sequence[Call]) -> list[dict[str, Reply]]:
        """Return the replies to each call by their dtype, as far as a batch gives them.

        A call that raised in float64 is sent in float32, too.
        """
        replies = self._ask_batch(calls, self.dtype)
        ready_replies = [
            {c.dtype or self.dtype: r} if r else {} for c, r in zip(calls, replies, strict=True)
        ]
        doubtful = [
            i for i, reply in enumerate(replies) if reply and self._is_doubtful(calls[i], reply)
        ]
        for i, reply in zip(
            doubtful, self._ask_batch([calls[i] for i in doubtful], "float32"), strict=True
        ):
            ready_replies[i] |= {"float32": reply} if reply else {}
        return ready_replies

    def _final_reply(self, question: CheckQuestion, ready_replies: Mapping[str, Reply]) -> Reply:
        """Choose and record the reply.

        Args:
            question: The call, and the check that makes it.
            ready_replies: The replies that a batch has given already, by their dtype.
        """
        call, ends = question.call, self._ends
        dtype = call.dtype or self.dtype
        try:
            reply = ready_replies.get(dtype) or self._execute_as(call, dtype)
        except AttemptEnded as ended:
            if self._ends > ends:  # otherwise an earlier call has used up the time
                # a later call has less time: it may be the first one's fault
                is_late = ended.end is End.TIMEOUT
                self.ended[question.check] = (
                    next(iter(self.ended.values()), call) if is_late else call
                )
            raise
        if self._is_doubtful(call, reply):
            in_single = ready_replies.get("float32") or self._execute_as(call, "float32")
            if in_single.raised is None:
                self.dtype, reply = "float32", in_single
            elif _cause(in_single) == _cause(reply):
                self.in_both.add(_cause(reply))
            elif reply.raised is not None and is_dtype_fault(reply.raised):
                reply = in_single
        if call.dtype is None and self.dtype == "float32":
            self.in_single.add(id(call))
        reply = self._with_known_names(call, reply)
        self.transcript.append(Exchange(question.check, call, reply))
        return reply

    def _is_doubtful(self, call: Call, reply: Reply) -> bool:
        """Return whether the attempt raised in float64, and may answer in float32."""
        if (
            call.dtype
            or self.dtype != "float64"
            or reply.raised is None
            or is_refusal(reply.raised)
        ):
            return False
        return _cause(reply) not in self.in_both

    def _with_known_names(self, call: Call, reply: Reply) -> Reply:
        """Return the reply without the names that a hidden input may have chosen."""
        names, allowed_names = names_in(reply), names_given(call)
        if self.reference is None or names <= allowed_names:
            return reply
        allowed_names |= self.memory.names_in(call, self.reference)
        # The remaining names stay together, or all go: a selection could be a message, too.
        if (
            names <= allowed_names
            or names - allowed_names == self._names_alone(call) - allowed_names
        ):
            return reply
        return with_known_names(reply, allowed_names)

    def _names_alone(self, call: Call) -> frozenset[str]:
        """Return the names of the parts that the attempt builds if nothing hidden can choose them.

        The process has met no other call, and no tensor.
        """
        only_built = without_tensors(call)
        if only_built is None:
            return frozenset()
        only_built = self.memory.hold(only_built)
        if (
            id(only_built) not in self._named_alone
            and len(self._named_alone) < MOST_ASKED_FOR_NAMES
        ):
            self.close()  # a box runs one process at a time
            alone = AttemptRunner(
                self.box, self.source, self.limits, self.device, self.dtype, self.memory
            )
            alone._spent = self._spent
            reply = Reply()
            with closing(alone), suppress(AttemptEnded):
                reply = reply if alone.load() else alone.execute(only_built)
            self._named_alone[id(only_built)] = names_in(reply)
        return self._named_alone.get(id(only_built), frozenset())

    def close(self) -> None:
        """End the attempt's process."""
        if connection := self.release():
            connection.close()

    def _ask_batch(self, calls: Sequence[Call], dtype: str) -> list[Reply | None]:
        """Return a reply to each call in one batch.

        If the batch fails, the process has been ended, and each reply is None.
        """
        none: list[Reply | None] = [None] * len(calls)
        connection = self._connection
        if not calls or connection is None or self._one_by_one or self.device != "cpu":
            return none
        spent = self._spent.seconds
        patience = min(BATCH_SECONDS, self.limits.seconds_per_call, max(0.0, self._seconds_left))
        try:
            packed = [self.memory.pack(call, dtype) for call in calls]
            replies = connection.ask_all(packed, self.memory.read, patience)
        except AttemptEnded:
            self._connection, self._one_by_one, self._spent.seconds = None, True, spent
            return none
        if any(validate_reply(call, reply) for call, reply in zip(calls, replies, strict=True)):
            self.close()
            self._one_by_one = True
            return none
        return [self._read(reply) for reply in replies]

    def _execute_as(self, call: Call, dtype: str) -> Reply:
        if self._connection is None and (raised := self.load()) is not None:
            return Reply(raised=raised)
        reply = self._ask(cast(call, dtype, self.device))
        if problem := validate_reply(call, reply):
            self.close()
            self._ends += 1
            raise AttemptEnded(
                End.BAD_REPLY, f"The attempt sent something that is not an answer: {problem}."
            )
        if (
            self.device != "cpu"
            and reply.raised is not None
            and CUDA_IS_BROKEN in reply.raised.message
        ):
            self.close()  # otherwise every later check would fail like this one
            self._ends += 1
        return reply

    @property
    def _seconds_left(self) -> float:
        return self.limits.seconds_per_attempt - self._spent.seconds

    def _allowed(self) -> float:
        """Return the seconds for the next message. Raises AttemptEnded if none are left."""
        if self._seconds_left <= 0:
            self.close()
            time_limit = (
                f"the {self.limits.seconds_per_attempt:g} seconds that a whole attempt may take"
            )
            raise AttemptEnded(End.TIMEOUT, f"This attempt has used up {time_limit}.")
        per_call = self.limits.seconds_per_call
        return float(
            min(
                self._seconds_left,
                per_call,
                max(SHORTEST, per_call / SHORTER_AFTER_END**self._ends),
            )
        )

    def _ask(self, message: Load | Call) -> Reply:
        allowed, connection = self._allowed(), self._connection
        assert connection is not None
        try:
            return self._read(connection.ask(message, allowed))
        except AttemptEnded:
            self._connection = None
            self._ends += 1
            raise

    def _read(self, reply: Reply) -> Reply:
        """Return the reply without lines that the file does not have.

        A NotImplementedError is marked if the function in which it stands has other code, too.
        """
        reply = within_file(reply, self.source.text.count("\n") + 1)
        raised = reply.raised
        if raised is None or raised.type != "NotImplementedError" or not raised.line:
            return reply
        return replace(
            reply,
            raised=replace(raised, in_written=self.source.is_beside_code(raised.line)),
        )
