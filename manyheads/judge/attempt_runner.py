"""Send calls to one attempt, refuse impossible replies, and remember replies for later attempts.

An `AttemptRunner` belongs to one attempt, a `ReplayCache` to all attempts at an exercise with the
same inputs. Most attempts answer most calls with the same bytes, so most of the work is done once.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from itertools import cycle

from ..box.connection import AttemptEnded, Box, Connection, End, Spent, Stopped, load, start_again
from ..box.replies import read_reply, within_file
from ..box.worker import wire
from ..box.worker.limits import MIB, Limits
from ..box.worker.messages import Call, Load, Output, Raised, Reply
from ..box.worker.result_form import OPAQUE, Form, read_misfit
from ..checks.explain_exceptions import is_dtype_fault, is_refusal
from ..checks.hidden_check import CheckOutcome
from ..checks.runner import CheckQuestion, Exchange, LocalRunner, Runner, bytes_of, cast, changes_in
from ..submission import Source
from ..submission.source import with_fields
from .nontrivial_answers import four_like
from .redact_hidden_inputs import (
    builds_in,
    changeable_arguments,
    names_given,
    names_in,
    with_known_names,
    without_tensors,
)

# bytes of remembered calls, replies and answers; a larger cache is cleared before the next attempt
CACHE_LIMIT = 64 * MIB
# bytes: a longer reply is not remembered, so that one attempt does not displace all others
REPLY_LIMIT = MIB // 4
SHORTER_AFTER_END = 4  # each time the process ends, the time for a call is divided by this
# the least time for a call, below which a busy machine would decide the remaining checks
MIN_SECONDS_PER_CALL = 0.5
# for one batch, about a hundred times as long as it needs; after that, each call is sent alone
BATCH_SECONDS = 1.0
# processes of an attempt that only build a module: most attempts need none, a few need two
MOST_ASKED_FOR_NAMES = 8
# After such an error, for example an index out of range, no call in that process works.
CUDA_IS_BROKEN = "CUDA error"


@dataclass
class ReplayNode:
    """A step of a check, which is reached after certain replies.

    Attributes:
        next_action: The action of the check at this step: it makes its next call, or ends with an
            outcome. None if no attempt has reached the step yet.
        after: The step after each reply to the call, by the `id()` of the reply.
    """

    next_action: Call | CheckOutcome | None = None
    after: dict[int, ReplayNode] = field(default_factory=dict)


class ReplayCache:
    """The results of earlier attempts at one exercise, with the same checks and inputs.

    Most attempts answer most calls with the same bytes. So a call is packed once, equal bytes are
    parsed once, and the reference answers a call once. A check that gets the same replies as before
    is not run again: it makes the same next call, or ends with the same outcome. Nothing depends on
    whose attempt it is.
    """

    def __init__(self, limit: int = CACHE_LIMIT) -> None:
        self._limit = limit
        self.forget()

    def forget(self) -> None:
        """Empty the cache. No check may be running, because it would hold steps of the cache."""
        self.size = 0  # how many bytes are remembered
        self._replies_by_digest: dict[bytes, Reply] = {}  # keyed by the digest of their bytes
        # the same replies by their ids, and replies that a check has changed
        self._replies_by_id: dict[int, Reply] = {}
        self._first_steps: dict[str, ReplayNode] = {}  # by check
        self._calls_by_digest: dict[bytes, Call] = {}  # keyed by the digest of their bytes
        # the same calls by their ids, and calls that outlive this cache
        self._calls_by_id: dict[int, Call] = {}
        # the calls made from a call, by the id of that call
        self._derived_calls: dict[int, Sequence[Call]] = {}
        self._packed: dict[tuple[int, str], bytes] = {}  # keyed by the id of the call and its dtype
        # replies of trusted code, with how often their tensors were changed, by the call's id
        self.answers: dict[int, tuple[Reply, int]] = {}
        # names of the reference's parameters, by the call's id
        self._parameter_names: dict[int, frozenset[str]] = {}

    def begin_attempt(self) -> None:
        """Clear the cache if it is too large.

        Correct attempts soon fill it again with the replies that they share.
        """
        if self.size > self._limit:
            self.forget()

    def first_step(self, check: str) -> ReplayNode:
        """Return the first step of the check with this id, a new one if it is not remembered."""
        return self._first_steps.setdefault(check, ReplayNode())

    def after(self, step: ReplayNode, reply: Reply) -> ReplayNode:
        """Return the step of the check that follows when its call gets this reply.

        The step is new, and not kept, if the cache does not keep the reply.
        """
        if id(reply) not in self._replies_by_id:
            return ReplayNode()
        return step.after.setdefault(id(reply), ReplayNode())

    def note(self, step: ReplayNode, action: Call | CheckOutcome) -> ReplayNode:
        """Note the action of the check at this step, and return the step with it.

        If the check itself broke, this is a new step, and its outcome is not remembered: this
        machine may be the cause.
        """
        if isinstance(action, CheckOutcome) and action.fault:
            return ReplayNode(action)
        step.next_action = self.hold(action) if isinstance(action, Call) else action
        return step

    def hold(self, call: Call) -> Call:
        """Return the one object that stands for all equal calls, a copy of the first.

        Its id is the key under which its message and the answers of trusted code are remembered. A
        call that the cache holds already is returned itself.
        """
        if id(call) in self._calls_by_id:
            return call
        data = wire.encode(call)
        digest = hashlib.sha256(data).digest()
        if digest not in self._calls_by_digest:
            # A copy stays the same if a check changes its call in place afterwards.
            call_copy = wire.decode(data)
            assert isinstance(call_copy, Call)
            self._calls_by_digest[digest] = self._calls_by_id[id(call_copy)] = call_copy
            self.size += len(data)
        return self._calls_by_digest[digest]

    def four_like(self, call: Call) -> Sequence[Call]:
        """Return the calls that `four_like` makes of this one, made once for equal calls."""
        call = self.hold(call)
        if id(call) not in self._derived_calls:
            self._derived_calls[id(call)] = [*map(self.hold, four_like(call))]
        return self._derived_calls[id(call)]

    def hold_as_it_is(self, call: Call) -> None:
        """Have `hold` return this call itself. It must outlive this cache, and never change."""
        self._calls_by_id[id(call)] = call

    def parameter_names(self, call: Call, reference: Runner) -> frozenset[str]:
        """Return the names of the reference's parameters in the modules that the call builds.

        The reference builds the modules of equal calls once, and without the call's weights: the
        names do not depend on them.
        """
        call = self.hold(call)  # the same object for equal calls, so that its id is a key
        if id(call) not in self._parameter_names:
            builds = [
                replace(build, state=None, report=(), skip_init=True) for build in builds_in(call)
            ]
            replies = [reference.execute(Call(build, only_build=True)) for build in builds]
            self._parameter_names[id(call)] = frozenset[str]().union(*map(names_in, replies))
        return self._parameter_names[id(call)]

    def pack(self, call: Call, dtype: str) -> bytes:
        """Return the message that asks for this call, in this dtype unless the call has one.

        The message is made once for a call that the cache holds.
        """
        key = (id(call), dtype)
        if key in self._packed:
            return self._packed[key]
        packed = wire.encode(cast(call, call.dtype or dtype))
        if id(call) in self._calls_by_id:
            self._packed[key] = packed
            self.size += len(packed)
        return packed

    def read(self, payload: bytes) -> Reply:
        """Return the reply in these bytes, the same object for equal bytes.

        It is a new object in three cases: there are more than REPLY_LIMIT bytes; a check has
        changed the earlier object; or the reply is to a message that loads a file. Raises BadReply.
        """
        if len(payload) > REPLY_LIMIT:
            return read_reply(payload)
        digest = hashlib.sha256(payload).digest()
        kept_reply = self._replies_by_digest.get(digest)
        # A check may have changed the tensors of the kept reply in place.
        if kept_reply is not None and not changes_in(kept_reply):
            return kept_reply
        reply = read_reply(payload)
        # Only loading a file stops parts, so no call has such a reply. It is not kept: its few
        # bytes may unpack to sixty long messages, which `size` would not count.
        if not reply.stopped:
            self._replies_by_digest[digest] = reply
            self._replies_by_id[id(reply)] = reply
            message = reply.raised.message if reply.raised else ""
            self.size += len(payload) + sys.getsizeof(message)
        return reply


@dataclass(frozen=True)
class RememberingRunner(LocalRunner):
    """The reference for checks, which make equal calls for one attempt after another.

    Its replies are remembered in the replay cache `memory`.
    """

    memory: ReplayCache = field(default_factory=ReplayCache)

    def execute(self, call: Call) -> Reply:
        """Return the reply, computed once for all equal calls.

        It is computed again if it has more than REPLY_LIMIT bytes, or if a check has changed it.
        """
        memory, call = self.memory, self.memory.hold(call)
        kept_reply, change_count = memory.answers.get(id(call), (None, 0))
        # A check may have changed the tensors of the kept reply in place.
        if kept_reply is not None and change_count == changes_in(kept_reply):
            return kept_reply
        reply = super().execute(call)
        if bytes_of(reply) <= REPLY_LIMIT:
            memory.answers[id(call)] = (reply, changes_in(reply))
            memory.size += bytes_of(reply)
        return reply


def validate_reply(call: Call, reply: Reply) -> str:
    """Return the first reason why the reply cannot be an answer to this call; "" if it can be.

    The parser has checked only that it is a reply: the attempt's process may have written anything
    in it.
    """
    builds = builds_in(call)
    facts_and_builds = list(zip(reply.modules, builds, strict=False))
    # Each run of the call, and in it each step (`Call.steps`), has one output for each leaf.
    leaves = cycle(form for _, form in call.form.leaves())

    def count_differs(entries: Sequence[object], expected_count: int) -> bool:
        if reply.raised is not None:  # then some entries may be missing
            return len(entries) > expected_count
        return len(entries) != expected_count

    problems = {
        "it has another number of outputs than the call asks for": count_differs(
            reply.outputs, call.outputs
        ),
        "it describes a part that is opaque, or parts that were not asked": not all(
            map(_is_possible, reply.outputs, leaves)
        ),
        "it reports on modules that were not built": count_differs(reply.modules, len(builds)),
        "it names weights that were not given": any(
            not {*(build.state or ())}.issuperset(facts.unloaded)
            for facts, build in facts_and_builds
        ),
        "it reports on attributes that were not requested": any(
            facts.attributes.keys() != {*build.report} for facts, build in facts_and_builds
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


def _is_possible(output: Output, leaf: Form) -> bool:
    """Return whether the output is possible at this leaf of a form.

    1. At any leaf, the worker may report a misfit: the result has another structure than the form.
    2. An opaque leaf has an opaque output, and no other leaf has one.
    3. A misfit and an opaque output have nothing but their kind.
    """
    is_misfit = read_misfit(output.kind) is not None
    if is_misfit:
        return output == Output(output.kind)
    if output.kind == OPAQUE:
        return leaf.kind == "opaque" and output == Output(output.kind)
    return leaf.kind != "opaque"


def _cause(reply: Reply) -> object:
    """Return a key that exceptions with the same cause share, or None without an exception.

    The key has the type, the line, and the message without its digits, which may be sizes.
    """
    raised = reply.raised
    if raised is None:
        return None
    return raised.type, raised.line, re.sub(r"\d+", "", raised.message)


@dataclass(eq=False)
class AttemptRunner:
    """Executes calls in the attempt's process in the box.

    It replaces a process that ended, keeps the time limit, and records all calls that got a reply.

    Attributes:
        box: The box.
        source: The attempt's text. After `load`, it also has the parts that are not run again.
        limits: The limits of a call and of the attempt.
        device: The device on which the attempt computes.
        dtype: The dtype of the next call that states none.
        memory: The replies of earlier attempts.
        check: The id of the check that calls `execute`.
        transcript: The calls that got a reply, with the reply.
        ended: For each check whose call got no reply because the process ended, the call to blame
            for the end.
        stopped: The parts of the file that did not run to their end.
        in_single: The `id()` of each call that was answered in float32, though any dtype would do.
        causes_in_both_dtypes: The causes of exceptions that occurred in float64 and in float32
            alike.
        reference: The reference if inputs are hidden and replies may be shown, otherwise None. With
            a reference, names that these inputs may have chosen are removed from replies
            (`with_known_names`).
    """

    box: Box
    source: Source
    limits: Limits
    device: str = "cpu"
    dtype: str = "float64"
    memory: ReplayCache = field(default_factory=ReplayCache)
    check: str = ""
    transcript: list[Exchange] = field(default_factory=list)
    ended: dict[str, Call] = field(default_factory=dict)
    stopped: tuple[Stopped, ...] = ()
    in_single: set[int] = field(default_factory=set)
    causes_in_both_dtypes: set[object] = field(default_factory=set)
    reference: Runner | None = None
    _connection: Connection | None = None
    _ends: int = 0  # how often the process has ended
    # the replies of `ask_ahead`, by the call's id and their dtype
    _ahead: dict[int, dict[str, Reply]] = field(default_factory=dict)
    _one_by_one: bool = False  # whether calls are no longer sent in batches, because one has failed
    _spent: Spent = field(default_factory=Spent)
    # the names of `_names_without_hidden_input`, by the id of the call that only builds the module
    _names_without_input: dict[int, frozenset[str]] = field(default_factory=dict)

    def load(self) -> Raised | None:
        """Import the attempt in a fresh process.

        Returns the exception that prevented the import, or None. `stopped` then lists the parts of
        the file that did not run to their end. A part that ends a process is skipped in all later
        ones. Raises AttemptEnded, also if the attempt has no time left.
        """
        self.close()
        if self._ends:
            self._connection = start_again(self.box, self.limits, self._spent)
        else:
            self._connection = self.box.attempt(self.limits)
        self._seconds_allowed()  # raises if no time is left; `load` keeps the time itself
        try:
            loaded = load(self.box, self.limits, self.source.load(), self._connection, self._spent)
        except AttemptEnded:
            self._connection = None
            self._ends += 1
            raise
        self._connection = loaded.connection
        if not self.source.skipped:  # otherwise an earlier process has reported the skipped parts
            self.stopped = loaded.stopped
            if loaded.skipped:
                self.source = with_fields(self.source, skipped=loaded.skipped)
        return loaded.raised

    def load_into(self, connection: Connection) -> Raised | None:
        """Load the attempt in a process that has loaded another text.

        Returns the exception that prevented it, or None. Raises AttemptEnded. Replies of this
        process may screen an attempt, but must not decide a verdict: the other text may have left
        data in the process.
        """
        self._connection, connection.spent = connection, self._spent
        return self._ask(self.source.load()).raised

    def release(self) -> Connection | None:
        """Return the connection, or None if the process has ended, and forget it here."""
        connection, self._connection = self._connection, None
        return connection

    def execute(self, call: Call) -> Reply:
        """Return the attempt's reply, in float32 if the attempt cannot compute in float64.

        A reply to a call of `ask_ahead` is used once. Raises AttemptEnded.
        """
        return self._final_reply(CheckQuestion(self.check, call), self._ahead.pop(id(call), {}))

    def ask_ahead(self, calls: Sequence[Call]) -> None:
        """Send these calls in one message, and keep the replies for `execute`.

        If a call has no reply then, `execute` sends it alone. Earlier replies are dropped.
        """
        self._ahead = dict(zip(map(id, calls), self._batch_replies(calls), strict=True))

    def execute_all(self, questions: Sequence[CheckQuestion]) -> list[Reply | AttemptEnded]:
        """Return a reply to each question, or the AttemptEnded of a call that ended the process.

        The calls are first sent in one batch. A call without a usable reply there is sent again
        alone, so that a failure of the batch does not count against the attempt.
        """
        answers: list[Reply | AttemptEnded] = []
        for question, ready_replies in zip(
            questions, self._batch_replies([question.call for question in questions]), strict=True
        ):
            try:  # `_final_reply` sends the call alone if it has no ready replies
                answers.append(self._final_reply(question, ready_replies))
            except AttemptEnded as ended:
                answers.append(ended)
        return answers

    def _batch_replies(self, calls: Sequence[Call]) -> list[dict[str, Reply]]:
        """Return for each call the replies that batches give, by their dtype.

        A call that raised in float64, and may not in float32 (`_may_work_in_float32`), is sent in a
        second batch and can have two replies. A call has no reply if its batch was not sent or
        failed.
        """
        replies_by_call: list[dict[str, Reply]] = []
        repeated: list[tuple[Call, dict[str, Reply]]] = []
        for call, reply in zip(calls, self._ask_batch(calls, self.dtype), strict=True):
            replies_by_dtype = {call.dtype or self.dtype: reply} if reply else {}
            replies_by_call.append(replies_by_dtype)
            if reply and self._may_work_in_float32(call, reply):
                repeated.append((call, replies_by_dtype))
        replies = self._ask_batch([call for call, _ in repeated], "float32")
        for (_, replies_by_dtype), reply in zip(repeated, replies, strict=True):
            if reply:
                replies_by_dtype["float32"] = reply
        return replies_by_call

    def _final_reply(self, question: CheckQuestion, ready_replies: Mapping[str, Reply]) -> Reply:
        """Return the reply that counts, and record it.

        A call that raises in float64 is repeated in float32 if that may help
        (`_may_work_in_float32`). Then the reply in float32 counts in two cases:

        1. It is no exception. Then all later calls that state no dtype are made in float32, too.
        2. The two exceptions have different causes, and the first one is a clash of dtypes
           (`is_dtype_fault`).

        Names that could report a hidden input are replaced. `in_single` and
        `causes_in_both_dtypes` are updated. Raises AttemptEnded. If the process ended in this call,
        the call to blame is then in `ended` (`_call_to_blame`).

        Args:
            question: The call, and the check that makes it.
            ready_replies: The replies that a batch has given already, by their dtype.
        """
        call, ends_before = question.call, self._ends
        dtype = call.dtype or self.dtype
        try:
            reply = ready_replies.get(dtype) or self._execute_as(call, dtype)
        except AttemptEnded as ended:
            if self._ends > ends_before:  # otherwise an earlier call has used up the time
                self.ended[question.check] = self._call_to_blame(call, ended)
            raise
        if self._may_work_in_float32(call, reply):
            reply_in_float32 = ready_replies.get("float32") or self._execute_as(call, "float32")
            if reply_in_float32.raised is None:
                self.dtype, reply = "float32", reply_in_float32
            elif _cause(reply_in_float32) == _cause(reply):
                self.causes_in_both_dtypes.add(_cause(reply))
            elif reply.raised is not None and is_dtype_fault(reply.raised):
                reply = reply_in_float32
        if call.dtype is None and self.dtype == "float32":
            self.in_single.add(id(call))
        reply = self._without_chosen_names(call, reply)
        self.transcript.append(Exchange(question.check, call, reply))
        return reply

    def _call_to_blame(self, call: Call, ended: AttemptEnded) -> Call:
        """Return the call to blame for the end of the process in this call.

        For a timeout, it is the first call that ended a process: after the first end, calls have
        less time. Otherwise it is this call.
        """
        is_timeout = ended.end is End.TIMEOUT
        return next(iter(self.ended.values()), call) if is_timeout else call

    def _may_work_in_float32(self, call: Call, reply: Reply) -> bool:
        """Return whether the attempt raised in float64, and may answer the call in float32.

        It may not if the call states its dtype, if the attempt refused the input, or if an
        exception of the same cause has occurred in both dtypes.
        """
        if call.dtype or self.dtype != "float64":
            return False
        if reply.raised is None or is_refusal(reply.raised):
            return False
        return _cause(reply) not in self.causes_in_both_dtypes

    def _without_chosen_names(self, call: Call, reply: Reply) -> Reply:
        """Return the reply without names through which an attempt could report a hidden input.

        They are names of parameters and of tensors with a gradient. A name is harmless if the call
        or the reference has it. All other names are the attempt's own. They are kept if they are
        exactly those that it also gives without hidden input (`_names_without_hidden_input`).
        Otherwise all own names are replaced: even the choice of some could encode the input.
        Without `reference`, nothing is replaced.
        """
        names, allowed_names = names_in(reply), names_given(call)
        # Without a reference, the inputs are public, or students are not shown the replies.
        if self.reference is None or names <= allowed_names:
            return reply
        allowed_names |= self.memory.parameter_names(call, self.reference)
        own_names = names - allowed_names
        if not own_names or own_names == self._names_without_hidden_input(call) - allowed_names:
            return reply
        return with_known_names(reply, allowed_names)

    def _names_without_hidden_input(self, call: Call) -> frozenset[str]:
        """Return the names of parameters that the attempt chooses when it sees no hidden input.

        `_without_chosen_names` compares a reply with them. To find them, the current process is
        ended, and a fresh one builds the module of the call without its weights, and does nothing
        else. The names in its reply are kept for later calls that build an equal module.

        Returns no names if the call does more than build one module from plain arguments
        (`without_tensors`), if MOST_ASKED_FOR_NAMES such processes have run, or if the fresh
        process ends or cannot load the attempt.
        """
        only_built = without_tensors(call)
        if only_built is None:
            return frozenset()
        only_built = self.memory.hold(only_built)
        was_asked = id(only_built) in self._names_without_input
        if not was_asked and len(self._names_without_input) < MOST_ASKED_FOR_NAMES:
            self.close()  # a box runs one process at a time
            fresh = AttemptRunner(
                self.box, self.source, self.limits, self.device, self.dtype, self.memory
            )
            fresh._spent = self._spent
            reply = Reply()
            with closing(fresh), suppress(AttemptEnded):
                problem = fresh.load()
                if problem is None:
                    reply = fresh.execute(only_built)
            self._names_without_input[id(only_built)] = names_in(reply)
        return self._names_without_input.get(id(only_built), frozenset())

    def close(self) -> None:
        """End the attempt's process."""
        if connection := self.release():
            connection.close()

    def _ask_batch(self, calls: Sequence[Call], dtype: str) -> list[Reply | None]:
        """Send the calls in one batch, and return the reply to each.

        Each reply is None if no batch is sent, or if the batch fails. No batch is sent if there is
        no process, if the device is not the CPU, or if an earlier batch has failed. A batch fails
        if the process ends or takes too long, or if a reply is impossible (`validate_reply`). Then
        the process is ended.
        """
        no_replies: list[Reply | None] = [None] * len(calls)
        connection = self._connection
        if not calls or connection is None or self._one_by_one or self.device != "cpu":
            return no_replies
        spent_before = self._spent.seconds
        seconds = min(BATCH_SECONDS, self.limits.seconds_per_call, max(0.0, self._seconds_left))
        try:
            packed = [self.memory.pack(call, dtype) for call in calls]
            replies = connection.ask_all(packed, self.memory.read, seconds)
        except AttemptEnded:
            self._connection = None
            self._one_by_one = True
            self._spent.seconds = spent_before  # the calls are sent again, one by one
            return no_replies
        if any(validate_reply(call, reply) for call, reply in zip(calls, replies, strict=True)):
            self.close()
            self._one_by_one = True
            self._spent.seconds = spent_before
            return no_replies
        return [self._with_lines_of_file(reply) for reply in replies]

    def _execute_as(self, call: Call, dtype: str) -> Reply:
        """Return the attempt's reply to the call in this dtype.

        If the attempt has no process, it is loaded into a new one; an exception that prevents this
        is the reply. Raises AttemptEnded, also if the reply is impossible (`validate_reply`). The
        process is ended after such a reply, and after an error that breaks its CUDA.
        """
        if self._connection is None:
            raised = self.load()
            if raised is not None:
                return Reply(raised=raised)
        reply = self._ask(cast(call, dtype, self.device))
        if problem := validate_reply(call, reply):
            self.close()
            self._ends += 1
            raise AttemptEnded(
                End.BAD_REPLY, f"The attempt sent something that is not an answer: {problem}."
            )
        message = reply.raised.message if reply.raised is not None else ""
        if self.device != "cpu" and CUDA_IS_BROKEN in message:
            self.close()  # otherwise every later check would fail like this one
            self._ends += 1
        return reply

    @property
    def _seconds_left(self) -> float:
        return self.limits.seconds_per_attempt - self._spent.seconds

    def _seconds_allowed(self) -> float:
        """Return the seconds for the next message, fewer after each end of the process.

        They are at least MIN_SECONDS_PER_CALL, unless the limits allow less. If the attempt has no
        time left, close it and raise AttemptEnded.
        """
        if self._seconds_left <= 0:
            self.close()
            limit = f"{self.limits.seconds_per_attempt:g} seconds that a whole attempt may take"
            raise AttemptEnded(End.TIMEOUT, f"This attempt has used up the {limit}.")
        per_call = self.limits.seconds_per_call
        shortened = max(MIN_SECONDS_PER_CALL, per_call / SHORTER_AFTER_END**self._ends)
        return float(min(self._seconds_left, per_call, shortened))

    def _ask(self, message: Load | Call) -> Reply:
        """Send the message to the attempt's process, and return the reply `_with_lines_of_file`.

        Raises AttemptEnded.
        """
        allowed, connection = self._seconds_allowed(), self._connection
        assert connection is not None
        try:
            return self._with_lines_of_file(connection.ask(message, allowed))
        except AttemptEnded:
            self._connection = None
            self._ends += 1
            raise

    def _with_lines_of_file(self, reply: Reply) -> Reply:
        """Return the reply without line numbers that the file does not have.

        A NotImplementedError is marked if its function has content above the line that raised it.
        """
        reply = within_file(reply, self.source.text.count("\n") + 1)
        raised = reply.raised
        if raised is None or raised.type != "NotImplementedError" or not raised.line:
            return reply
        return replace(
            reply,
            raised=replace(raised, in_written=self.source.is_beside_code(raised.line)),
        )
