"""The fault dictionary of an exercise, and the response of one attempt.

The dictionary has public calls, and the replies of the reference, of mutants and of pairs. A
response has the replies of an attempt to these calls, and the candidates that rules have named.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, compress
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from ..box.worker.messages import Call
from ..checks.hidden_check import Drawn
from ..checks.preconditions import LEAST, NOTHING_LEFT_OUT, LeftOut, Rule
from ..submission.source import NO_TEXT, Source
from .bank import Bank, MisconceptionText, Sweep
from .compact_storage import Pairs, no_pairs
from .fingerprint import ReplyField, ReplyFingerprint, has_own_weights
from .observed_reply import Expected, ObservedReply

# the reply fields with numbers, which depend on a module's weights
_NUMBERS: tuple[ReplyField, ...] = ("outputs", "gradients", "argument_gradients")
_INNER_OPERATIONS: tuple[ReplyField, ...] = ("softmax", "square")

Oracle = str  # a name of ORACLES
# All oracles, in the order in which a visible check uses them.
ORACLES: tuple[Oracle, ...] = (
    "answered",
    "refused",
    "kind",
    "shape",
    "finite",
    "zeros",
    "stays",
    "moves",
    "parts",
    "difference",
    "left",
    "struck",
    "dropped",
    "values",
    "dtype",
    "device",
    "parameters",
    "mutated",
    "gradients_arrive",
    "gradients",
    "argument_gradients_arrive",
    "argument_gradients",
    "adjoint",
    "fused",
    "softmax",
    "square",
    "attributes",
)


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True)


class OracleUse(_Model):
    """An oracle that a visible check uses, and the groups of calls that it is applied to.

    Attributes:
        calls: the groups. A group is one call, or the calls that a relation compares.
        means: the misconception of all mutants that violate the oracle; "" if they have several.
    """

    oracle: Oracle = Field(alias="aspect")  # an alias is the key in a recorded file
    calls: tuple[tuple[int, ...], ...]
    means: str = ""


class PublicCheck(_Model):
    """A hidden check's recorded calls, and the oracles that replace it on a student's machine.

    Attributes:
        calls: the calls that must be answered as the reference answers them.
        reply_fields: the reply fields that are compared in these calls.
        oracle_uses: the oracles. Empty if no oracles give the hidden check's verdict: then only the
            diagnosis uses its calls.
        is_last: whether it runs after the checks that are not last, and only if all these pass. Its
            result shows nothing about other attempts.
    """

    id: str
    title: str
    layer: int
    hint: str
    points: float
    calls: tuple[int, ...]
    reply_fields: tuple[ReplyField, ...] = Field(alias="facets")
    oracle_uses: tuple[OracleUse, ...] = Field(alias="asks")
    is_last: bool = False

    @property
    def all_calls(self) -> tuple[int, ...]:
        """All recorded calls of the check, also those that only a relation uses.

        A relation can hold although the replies differ from the reference's.
        """
        groups = chain.from_iterable(use.calls for use in self.oracle_uses)
        return tuple(sorted({*self.calls, *chain.from_iterable(groups)}))


@dataclass(frozen=True)
class RecordedMutant:
    """A mutant's misconception, and its recorded replies.

    Attributes:
        answers: for each call the index of the mutant's reply in `FaultDictionary.replies`, or None
            if the reply is nondeterministic.
    """

    id: str
    answers: tuple[int | None, ...]


# For each step of a call, the weights for the first sequence: (nh, new queries, keys so far). None
# if no weights were found.
StepWeights = tuple[Tensor | None, ...]
RecordedRule = Literal["answers"] | Rule


@dataclass(frozen=True, eq=False)
class RecordedCondition:
    """A condition on a function: calls with answers that must be right before its checks count.

    Attributes:
        rule: "answers" for the condition of every function (`judge.nontrivial_answers`), or a rule
            of `checks.preconditions`.
        expected: the first tensor of each of the reference's answers.
    """

    function: str
    rule: RecordedRule
    calls: tuple[Call, ...]
    expected: tuple[Tensor, ...]
    message: str = ""
    left_out: LeftOut = NOTHING_LEFT_OUT
    least: float = LEAST


@dataclass(frozen=True, eq=False)
class FaultDictionary:
    """Everything that a student's machine knows about the replies to public calls.

    Attributes:
        stub: the code digest of the untouched stub.
        calls: the public calls. A call is given by its index in them.
        expected: for each call the tensors that the reference returned.
        replies: for each call the fingerprints of all different replies, the reference's first.
        mutants: the mutants. A mutant is given by its index in them.
        words: the texts of each misconception, by its id.
        hidden: the ids of all hidden checks.
        kills: for each mutant one digit per hidden check: 0 if the check passes, 1 if it fails, 2
            if a condition makes it fail.
        pairs: for pairs of mutants, the reply of both together to one of the calls.
        sweeps: the replies of parametric mutants.
        key: a hash of all that the mutants' replies depend on (`recording_file.key_of`).
        drawn: the random draws that the calls' inputs are made from, if they are known.
        conditions: the conditions of functions. Their calls are not among `calls`.
        weights: for each call that `course plot` may show, the attention weights that the reference
            computes in each of its steps. Calls without such weights are left out.
    """

    exercise: str
    stub: str
    checks: tuple[PublicCheck, ...]
    calls: tuple[Call, ...]
    expected: tuple[Expected, ...]
    replies: Sequence[Sequence[ReplyFingerprint]]
    mutants: tuple[RecordedMutant, ...]
    words: Mapping[str, MisconceptionText]
    hidden: tuple[str, ...] = ()
    kills: tuple[str, ...] = ()
    pairs: Pairs = field(default_factory=no_pairs)
    sweeps: tuple[Sweep, ...] = ()
    key: str = ""
    drawn: tuple[Drawn, ...] = ()
    conditions: tuple[RecordedCondition, ...] = ()
    weights: Mapping[int, StepWeights] = field(default_factory=dict)

    @property
    def visible(self) -> tuple[PublicCheck, ...]:
        """The checks that `course check` runs."""
        return tuple(check for check in self.checks if check.oracle_uses)

    def expected_reply(self, call: int) -> ReplyFingerprint:
        """Return the fingerprint of the reference's reply."""
        return self.replies[call][0]

    def answer(self, mutant: RecordedMutant, call: int) -> ReplyFingerprint | None:
        """Return the fingerprint of a mutant's reply, or None if the reply is nondeterministic."""
        index = mutant.answers[call]
        return None if index is None else self.replies[call][index]

    def answers(self, mutant: int, calls: Iterable[int]) -> dict[int, ReplyFingerprint]:
        """Return a mutant's replies to these calls by call, without nondeterministic ones."""
        replies = {i: self.answer(self.mutants[mutant], i) for i in calls}
        return {i: reply for i, reply in replies.items() if reply is not None}

    @cached_property
    def ids(self) -> frozenset[str]:
        """The misconceptions of all mutants."""
        return frozenset(mutant.id for mutant in self.mutants)

    @cached_property
    def compared_fields(self) -> dict[int, tuple[ReplyField, ...]]:
        """For each call of a check the reply fields that are compared.

        They are compared between the attempt, the reference and mutants. If several checks have a
        call, the fields of the first one count. Two kinds of fields are never compared:

        1. Numbers, if a module draws its own weights.
        2. Inner operations, if the reference runs a fused kernel. They depend on the processor, on
           PyTorch's version and on how the tensors lie in memory.

        A call that only relations use has no entry.
        """
        fields: dict[int, tuple[ReplyField, ...]] = {}
        for check in reversed(self.checks):  # so that the first check's entry stays
            for i in check.calls:
                excluded = _NUMBERS if has_own_weights(self.calls[i]) else ()
                if self.expected_reply(i).fused:
                    excluded += _INNER_OPERATIONS
                fields[i] = tuple(name for name in check.reply_fields if name not in excluded)
        return fields

    @cached_property
    def failed_by(self) -> dict[str, list[frozenset[str]]]:
        """For each misconception, and each of its mutants, the hidden checks that the mutant fails.

        A check that a condition makes it fail counts.
        """
        failed: dict[str, list[frozenset[str]]] = {}
        for mutant, row in zip(self.mutants, self.kills, strict=True):
            failed.setdefault(mutant.id, []).append(frozenset(compress(self.hidden, map(int, row))))
        return failed

    @cached_property
    def oracles_by_call(self) -> list[set[Oracle]]:
        """For each call the oracles that visible checks apply to it, alone or in a relation."""
        oracles: list[set[Oracle]] = [set() for _ in self.calls]
        for use in chain.from_iterable(check.oracle_uses for check in self.checks):
            for i in chain.from_iterable(use.calls):
                oracles[i].add(use.oracle)
        return oracles

    @cached_property
    def detected_in(self) -> tuple[int, ...]:
        """For each mutant the calls that detect it, as bits: call i is bit i.

        A call detects a mutant if the mutant's reply differs from the reference's in one of the
        `compared_fields`. A nondeterministic reply detects nothing.
        """
        bits = [0] * len(self.mutants)
        for i, fields in self.compared_fields.items():
            expected = self.expected_reply(i)
            is_right = [reply.agrees(expected, fields) for reply in self.replies[i]]
            for m, mutant in enumerate(self.mutants):
                reply_index = mutant.answers[i]
                # None is a random reply, and 0 is the reference's
                if reply_index and not is_right[reply_index]:
                    bits[m] |= 1 << i
        return tuple(bits)


def differs(recording: FaultDictionary, index: int, fingerprint: ReplyFingerprint) -> bool:
    """Return whether a reply differs from the reference's in one of the `compared_fields`.

    No reply differs to a call that only relations use.
    """
    fields = recording.compared_fields.get(index)
    return fields is not None and not fingerprint.agrees(recording.expected_reply(index), fields)


def wrong_replies(
    recording: FaultDictionary, observations: Mapping[int, ObservedReply]
) -> dict[int, ObservedReply]:
    """Return the replies that differ from the reference's."""
    return {i: e for i, e in observations.items() if differs(recording, i, e.actual)}


def bits_of(calls: Iterable[int]) -> int:
    """Return a set of calls as bits, as in `FaultDictionary.detected_in`.

    No call may be repeated.
    """
    return sum(1 << i for i in calls)


MAX_ANSWERS = 12  # wrong replies that the digest is made from
DIGITS = 16  # hexadecimal digits of the digest


class _Names(frozenset[str]):
    """Names whose repr is the same in every process: digests are made from it."""

    def __repr__(self) -> str:
        return f"frozenset({{{str(sorted(self))[1:-1]}}})" if self else "frozenset()"


# The reason why a rule names a misconception. If several candidates are evidence from the same
# call, the one whose basis comes last here counts.
Basis = Literal[
    "parameters alone",  # other parameters, while no mutant explains the values beside them
    "weak",  # symptoms that many mistakes share
    "parameters",  # other parameters; mutants explain the values beside them
    "nondeterminism",  # several replies to one call
    "exception",  # an exception that only this misconception raises
    "reply",  # an answer that only this misconception gives
    "guard",  # a test of sizes that raises. It sets aside the explanations before it
    "oracle",  # a violated oracle, beside an explanation
    "explanation",  # mutants with the replies of the syndrome
]
BASES: tuple[Basis, ...] = get_args(Basis)
# Evidence that needs no other call.
DIRECT: tuple[Basis, ...] = ("parameters", "nondeterminism", "exception", "reply", "guard")


@dataclass(frozen=True)
class Candidate:
    """A misconception that a rule names.

    Attributes:
        alternatives: the misconceptions that explain the same values.
        calls: the calls that are the evidence; empty for an explanation.
    """

    id: str
    alternatives: tuple[str, ...] = ()
    basis: Basis = "explanation"
    calls: tuple[int, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """The misconception, then the alternatives."""
        return (self.id, *self.alternatives)


def explanation(ids: Iterable[str]) -> Candidate:
    """Return an explanation by the first of these misconceptions, with the others as alternatives.

    An id may be repeated. Raises ValueError if there is none.
    """
    id_, *alternatives = dict.fromkeys(ids)
    return Candidate(id_, tuple(alternatives))


def evidence(basis: Basis, names: Mapping[int, str]) -> list[Candidate]:
    """Return a candidate for each call and the misconception that it shows."""
    return [Candidate(name, (), basis, (i,)) for i, name in names.items()]


@dataclass(frozen=True)
class Response:
    """An attempt's replies to recorded calls. Calls and mutants are given by their index.

    Attributes:
        recording: the fault dictionary.
        written: the replies of functions that the student has written, by call.
        syndrome: the replies among them that differ from the reference's and are to be explained.
        calls: the calls to which a mutant must reply as the attempt or as the reference does.
        by_kind: whether exceptions of one kind match even if their messages name different sizes.
        source: the attempt's text; it is empty if it is not at hand.
        bank: the exercise's mutants, which can be combined in pairs. None on a student's machine.
        unfinished: the replies that reach a function which is not written.
        mutates: whether an argument was seen to change.
        unmatched_dropout: calls with dropout at work to which no mutant replies as the attempt.
        candidates: the candidates of the rules that have been applied, in their order.
    """

    recording: FaultDictionary
    written: Mapping[int, ObservedReply]
    syndrome: Mapping[int, ObservedReply]
    calls: Set[int]
    by_kind: bool = False
    source: Source = NO_TEXT
    bank: Bank | None = None
    unfinished: Mapping[int, ObservedReply] = field(default_factory=dict)
    mutates: bool = False
    unmatched_dropout: Set[int] = frozenset()
    candidates: tuple[Candidate, ...] = ()
    # Results of `_is_alike` by call and index of the recorded reply
    _alike: dict[tuple[int, int], bool] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def explanations(self) -> list[Candidate]:
        """The explanations that have been found so far.

        They explain the syndrome, or only the part of some functions. If a guard is a candidate,
        the explanations before it do not count: those after it explain the calls that pass the
        guard.
        """
        explanations = list[Candidate]()
        for candidate in self.candidates:
            if candidate.basis == "guard":
                explanations.clear()
            elif candidate.basis == "explanation":
                explanations.append(candidate)
        return explanations

    def shown_by(self, *bases: Basis) -> dict[int, str]:
        """Return the misconception that evidence on these bases shows, by call.

        If a call has several candidates, the one whose basis comes last in `BASES` counts.
        """
        candidates = [c for c in self.candidates if c.basis in bases]
        candidates.sort(key=lambda candidate: BASES.index(candidate.basis))
        return {i: candidate.id for candidate in candidates for i in candidate.calls}

    @cached_property
    def answering_functions(self) -> frozenset[str]:
        """The functions that return a tensor in some call."""
        names = set[str]()
        for observation in self.written.values():
            if any(output.tensor is not None for output in observation.reply.outputs):
                names.add(observation.function)
        return frozenset(names)

    @cached_property
    def odd_refusals(self) -> set[int]:
        """The wrong calls that must be refused and that do not show that the input is accepted.

        They raise an unexpected exception, or call a function that never returns a tensor: such a
        function cannot be said to accept an invalid input.
        """
        return {
            i
            for i, e in self.syndrome.items()
            if e.expected.raised == "refused"
            and (e.actual.raised or e.function not in self.answering_functions)
        }

    @property
    def reductions(self) -> list[Response]:
        """The response, and the response without calls that no mutant need explain.

        The first one is the response itself. The others lack three nested sets of calls:

        1. dropout that no mutant reproduces (`unmatched_dropout`), and `odd_refusals`;
        2. also calls with an exception that is direct evidence, or with a guard that raised;
        3. also calls with any other direct evidence.

        A set that is empty or equal to an earlier one adds no response. Only responses with a
        syndrome are returned.
        """
        excluded = self.unmatched_dropout | self.odd_refusals
        raised = excluded | self.shown_by("exception", "guard").keys()
        direct = excluded | self.shown_by(*DIRECT).keys()
        sets = dict.fromkeys(frozenset(calls & self.calls) for calls in (excluded, raised, direct))
        responses = [self, *(self.without_calls(calls) for calls in sets if calls)]
        return [response for response in responses if response.syndrome]

    def without_calls(self, calls: Collection[int]) -> Response:
        """Return the response without these calls."""
        syndrome = {i: observation for i, observation in self.syndrome.items() if i not in calls}
        return replace(self, syndrome=syndrome, calls=self.calls - set(calls))

    def subset(self, calls: Set[int]) -> Response:
        """Return the response to these calls alone."""
        return self.without_calls(self.calls - calls)

    @property
    def mutants(self) -> range:
        """All recorded mutants."""
        return range(len(self.recording.mutants))

    def id(self, mutant: int) -> str:
        """Return the misconception of a mutant."""
        return self.recording.mutants[mutant].id

    def survives(self, mutant: int, call: int) -> bool:
        """Return whether a call does not detect a mutant.

        The mutant's reply is the reference's in the compared fields, or nondeterministic.
        """
        return not self.recording.detected_in[mutant] >> call & 1

    def is_uninformative(self, mutant: int, call: int) -> bool:
        """Return whether a mutant's reply to a call does not tell whether it is the attempt's.

        Either it is random, or the mutant and the attempt both raise an exception of unknown kind.
        """
        reply = self.recording.answer(self.recording.mutants[mutant], call)
        if reply is None:  # random
            return True
        observation = self.written.get(call)
        return observation is not None and reply.raised == observation.actual.raised == "other"

    def explains(self, mutant: int, call: int) -> bool:
        """Return whether a call is in the syndrome and the mutant can have given that reply.

        An uninformative reply of the mutant explains it, too (`is_uninformative`).
        """
        return call in self.syndrome and (
            self.is_uninformative(mutant, call) or self.matches(mutant, call)
        )

    def matches(self, mutant: int, call: int) -> bool:
        """Return whether a mutant's recorded reply to a call is the attempt's.

        A random reply never is. The attempt must have replied to the call.
        """
        reply_index = self.recording.mutants[mutant].answers[call]
        return reply_index is not None and self._is_alike(call, reply_index)

    def structure(self, call: int, reply: ReplyFingerprint) -> tuple[object, ...]:
        """Return the parts of a reply to a call that are compared, without numbers.

        These are the names of the gradients that are None, and the compared fields without numbers.
        An exception has only `ReplyFingerprint.raised`: its kind, and sizes. Equal structures have
        an equal repr in every process, because digests are made from it.
        """
        if reply.raised:
            return (reply.raised,)
        fields = (name for name in self.recording.compared_fields[call] if name not in _NUMBERS)
        missing_gradients = _Names(
            name for name, gradient in reply.gradients.items() if gradient is None
        )
        return (missing_gradients, *(repr(getattr(reply, name)) for name in fields))

    def has_expected_structure(self, call: int) -> bool:
        """Return whether the attempt's reply to a call has the structure of the reference's."""
        observation = self.written[call]
        expected = self.structure(call, observation.expected)
        return self.structure(call, observation.actual) == expected

    def is_consistent(self, mutant: int) -> bool:
        """Return whether a mutant replies to each call as the attempt or as the reference does.

        If a call detects the mutant, it must be in the syndrome, and the mutant must explain it.
        """
        detections = self.recording.detected_in[mutant]
        if detections & self._passed_bits:  # first, because this compares no numbers
            return False
        return all(self.explains(mutant, i) for i in self.calls if detections >> i & 1)

    @cached_property
    def _passed_bits(self) -> int:
        return bits_of(self.calls - self.syndrome.keys())

    def digest(self) -> str:
        """Return a digest of the first MAX_ANSWERS wrong replies; "" if there are none.

        Replies to calls with randomness are left out. Attempts that differ from the reference in
        the same way share the digest. It includes the first number of each output, with two digits:
        rounding seldom changes these, and two different mistakes never share all numbers.
        """
        answers = list[tuple[object, ...]]()
        for i, observation in sorted(self.syndrome.items()):
            if observation.call.random or len(answers) == MAX_ANSWERS:
                continue
            actual, outputs = observation.actual, list[tuple[object, ...]]()
            for output in actual.outputs:
                first_number = map("{:.1e}".format, output.projections[:1])  # if there is one
                outputs.append((output.kind, output.shape, *first_number))
            answers.append((i, self.structure(i, actual), outputs))
        return hashlib.sha256(repr(answers).encode()).hexdigest()[:DIGITS] if answers else ""

    def _is_alike(self, call: int, reply_index: int) -> bool:
        """Return whether the attempt's reply to a call is the recorded one with this index.

        With `by_kind`, two exceptions of one kind are alike even if their sizes differ.
        """
        actual, recorded = self.written[call].actual, self.recording.replies[call][reply_index]
        is_alike = self._alike.get((call, reply_index))
        if is_alike is None:
            is_alike = recorded.agrees(actual, self.recording.compared_fields[call])
            self._alike[call, reply_index] = is_alike
        if is_alike or not self.by_kind:
            return is_alike
        # "kind 3 10 12": the kind of an exception, then the sizes in its message
        actual_kind, recorded_kind = (actual.raised or "").split(), (recorded.raised or "").split()
        return bool(actual_kind) and actual_kind[:2] == recorded_kind[:2]
