"""What is recorded of an exercise: public calls, how the reference, mutants and pairs answer, and
what of a reply is compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, compress
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from ..box.worker.messages import Call
from ..checks.conditions import LEAST, NOTHING_LEFT_OUT, LeftOut, Rule
from ..checks.hidden_check import Drawn
from .agree import has_own_weights
from .bank import MisconceptionText
from .family import Sweep
from .fingerprint import PLAIN, ReplyField, ReplyFingerprint
from .observe import Expected
from .pair_answers import Pairs, no_pairs

# depend on a module's weights
_OF_WEIGHTS: tuple[ReplyField, ...] = ("outputs", "gradients", "argument_gradients")

Oracle = str  # a name of ASPECTS
_KNOWN_ASPECTS = (
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
    "values_of_a_kind",
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
# What a visible check may ask, in this order; every facet that is compared by equality is among
# them.
ORACLES: tuple[Oracle, ...] = tuple(dict.fromkeys([*_KNOWN_ASPECTS, *PLAIN]))


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True)


class OracleUse(_Model):
    """An aspect, and the groups of calls of which it is asked: one call, or two that are held
    together.

    means: the misconception of all mutants that break it; "" where there are several.
    """

    oracle: Oracle = Field(alias="aspect")  # as recorded files call it
    calls: tuple[tuple[int, ...], ...]
    means: str = ""


class PublicCheck(_Model):
    """A hidden check's recorded calls, and what of them is asked on a student's machine.

    asks: empty where recordings cannot give the hidden check's verdict; its calls then serve the
        diagnosis alone.
    is_last: whether it is asked after those that are not, only of attempts that pass all before it:
        it says nothing of others.
    facets: by which a mutant is recognised in the replies.
    """

    id: str
    title: str
    layer: int
    hint: str
    points: float
    calls: tuple[int, ...]
    facets: tuple[ReplyField, ...]
    asks: tuple[OracleUse, ...]
    is_last: bool = False

    @property
    def all_calls(self) -> tuple[int, ...]:
        """All calls: `calls`, whose answers must be the reference's, and those of relations that
        can be answered otherwise.
        """
        return tuple(
            sorted(
                {
                    *self.calls,
                    *(index for ask in self.asks for group in ask.calls for index in group),
                }
            )
        )


@dataclass(frozen=True)
class RecordedMutant:
    """A mutant: its misconception, and for each call the index of its reply fingerprint, None where
    its answer varies.
    """

    id: str
    answers: tuple[int | None, ...]


RecordedRule = Literal["answers"] | Rule


@dataclass(frozen=True, eq=False)
class RecordedCondition:
    """What a function must do before its checks count, as calls with the reference's answers.

    rule: "answers", for what every function must do (`judge.nontrivial`), or a rule of
    `checks.conditions`. expected: the first tensor of each answer.
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
    """Everything that a student's machine knows about the answers to public calls.

    stub: the code digest of the untouched stub.
    calls, expected: what is asked, and what the reference returned. replies: for each call the
        different ones, the reference's first.
    pairs: of mutants, by their numbers, on one of the calls. curves: of the mutants with a number
        that is not listed.
    hidden: the ids of all hidden checks. kills: for each mutant a digit for each: 0 if it passes, 1
        if it fails, 2 if a condition does.
    key: of all that the mutants' answers depend on, as `recording_file.key_of` makes it.
    drawn: what the calls' inputs are made from, where it is known.
    conditions: what each function must do before its checks count. Their calls are not among
        `calls`.
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

    @property
    def visible(self) -> tuple[PublicCheck, ...]:
        """The checks that `course check` runs."""
        return tuple(check for check in self.checks if check.asks)

    def expected_reply(self, call: int) -> ReplyFingerprint:
        """Return the fingerprint of the reference's reply."""
        return self.replies[call][0]

    def answer(self, mutant: RecordedMutant, call: int) -> ReplyFingerprint | None:
        """Return the fingerprint of a mutant's reply; None where it varies."""
        index = mutant.answers[call]
        return None if index is None else self.replies[call][index]

    @cached_property
    def facets(self) -> dict[int, tuple[ReplyField, ...]]:
        """By call, what is compared with mutants: no numbers that depend on weights which nobody
        gave.
        """
        return {
            i: tuple(f for f in check.facets if f not in _OF_WEIGHTS)
            if has_own_weights(self.calls[i])
            else check.facets
            for check in reversed(self.checks)
            for i in check.calls
        }

    @cached_property
    def failed_by(self) -> dict[str, list[frozenset[str]]]:
        """For each misconception the hidden checks that each of its mutants fails."""
        failed: dict[str, list[frozenset[str]]] = {}
        for mutant, row in zip(self.mutants, self.kills, strict=True):
            failed.setdefault(mutant.id, []).append(frozenset(compress(self.hidden, map(int, row))))
        return failed

    @cached_property
    def aspects(self) -> list[set[Oracle]]:
        """By call, what visible checks ask of it."""
        asks = [
            (ask.oracle, {*chain.from_iterable(ask.calls)})
            for check in self.checks
            for ask in check.asks
        ]
        return [{aspect for aspect, calls in asks if i in calls} for i in range(len(self.calls))]

    @cached_property
    def detected_in(self) -> tuple[int, ...]:
        """Of each mutant a bit for each call that it answers otherwise than the reference, in what
        its check asks, and not by chance.
        """
        bits = [0] * len(self.mutants)
        for i in self.facets:
            expected, facets = self.expected_reply(i), facets_of(self, i)
            silent = [reply.agrees(expected, facets) for reply in self.replies[i]]
            for m, mutant in enumerate(self.mutants):
                if (index := mutant.answers[i]) and not silent[index]:
                    bits[m] |= 1 << i
        return tuple(bits)


def differs(recording: FaultDictionary, index: int, fingerprint: ReplyFingerprint) -> bool:
    """Return whether a reply to this call is another than the reference's, in what its check asks
    of it.
    """
    if index not in recording.facets:  # where a check asks aspects alone no mutant is compared
        return False
    return not fingerprint.agrees(recording.expected_reply(index), facets_of(recording, index))


def facets_of(recording: FaultDictionary, index: int) -> tuple[ReplyField, ...]:
    """Return what is compared with mutants of a call: of a fused kernel not how it works inside.

    That depends on the processor, on PyTorch's version and on how the tensors lie in memory.
    """
    facets = recording.facets[index]
    is_fused = recording.expected_reply(index).fused
    return (
        tuple(facet for facet in facets if facet not in ("softmax", "square"))
        if is_fused
        else facets
    )
