"""Find the mutant, or the pair, that answers every comparable call as the attempt did, not only the failing calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor

from ..box.worker.answers import Reply
from ..checks.explain import is_refusal, is_unfinished, kind_of
from ..checks.implementation import LocalRunner, Runner
from ..checks.local import CachedRunner, ReplayRunner
from ..checks.transcript import BatchRunner, Exchange, replies_of, target_of
from .agree import agree, agree_except_huge
from .bank import Bank, Mutant
from .diagnosis import Fault, Faults, fault_of
from .family import to_fit
from .pair_answers import brief
from .pair_candidates import Members, Probed, members_of, possible_pairs, simplest
from .proofs import EDGE, the_only_near
from .table import Table, combined

CONFIRMED_PAIRS = 500  # the most pairs that are replayed: of 590 pairs that were found, the last one was the 470th
OF_ERRORS = 64  # the most pairs if the attempt raised in every call: errors distinguish pairs badly
# Bytes of answers in one diagnosis that are too large to be kept, after which no more pairs are replayed: with a mask of 1024
# tokens a single token of 35 heads gets 140 MB, from a thousand pairs one after the other.
MOST_LARGE = 2**30


@dataclass(frozen=True)
class Part:
    """One function of several: what explains it must not contradict `earlier`, the answers of those that it may call."""

    function: str
    earlier: tuple[Exchange, ...]

    def contradicts(self, runner: Runner, reference: Runner) -> bool:
        """Return whether trusted code answers an earlier call neither as the attempt did nor as the reference does."""
        for exchange in self.earlier:
            reply = runner.execute(exchange.call)
            if not agree(exchange.reply, reply) and not agree(reference.execute(exchange.call), reply):
                return True
        return False


@dataclass(frozen=True)
class Mutants:
    """The mutants of a bank, to be held against one attempt: `subject`, which is asked the table's probes.

    table: called only if it is needed.
    """

    bank: Bank
    table: Callable[[], Table]
    subject: BatchRunner
    reference: CachedRunner


def explain_values(
    mutants: Mutants, exchanges: Sequence[Exchange], most_pairs: int = CONFIRMED_PAIRS, part: Part | None = None
) -> Faults:
    """Return the faults that explain these exchanges: () if nothing is wrong, one, or two; None if the bank has no explanation.

    Raises AttemptEnded if a probe ends the attempt's process. Put failed exchanges first: they rule out candidates soonest.
    `part`: what they are about, if it is not the whole attempt.
    """
    reference = mutants.reference
    exchanges = [e for e in exchanges if not refuses_in_its_own_way(e, reference)]
    if any(
        e.reply.raised is not None and not is_refusal(e.reply.raised) and not kind_of(e.reply.raised) for e in exchanges
    ):
        return None  # no mutant explains an exception of unknown kind
    if _all_agree(reference, exchanges):
        return ()
    given = tuple(exchanges)
    search = _Search(mutants.bank, mutants.table(), reference, exchanges, most_pairs, part)
    every = _probed(search.table, mutants.subject, reference, search.usable())
    asked = every.only(search.was_asked)
    faults = search.found(every)
    if faults is None and asked.used != every.used:
        every, faults = asked, search.found(asked)
    if faults is None and (solved := search.solved(given)) is not None:
        return (solved,)
    if faults is None and part is None:  # a part is too little to be explained nearly
        return search.nearly(every.fits)
    return faults


def refuses_in_its_own_way(exchange: Exchange, reference: Runner) -> bool:
    """Return whether the attempt raises another error where the reference refuses, for example for a mask too small for T.

    That is acceptable, and cannot be compared: a mutant refuses in the reference's way.
    """
    raised = exchange.reply.raised
    if raised is None or is_refusal(raised):
        return False
    refused = reference.execute(exchange.call).raised
    return refused is not None and is_refusal(refused)


def _probed(table: Table, subject: BatchRunner, reference: Runner, used: Sequence[int]) -> Probed:
    """Ask the attempt these probes. Left out are replies that say nothing of a mutant. Raises AttemptEnded."""
    answers = dict(zip(used, replies_of(subject, [table.calls[k] for k in used]), strict=True))
    has_numbers = any(out.tensor is not None for reply in answers.values() for out in reply.outputs)
    left = [
        k
        for k, reply in answers.items()
        if not (has_numbers and _says_nothing(reply))
        and not refuses_in_its_own_way(Exchange("", table.calls[k], reply), reference)
    ]
    fits = torch.ones(len(table.classes), len(left), dtype=torch.bool)  # without probes all mutants are candidates
    for column, k in enumerate(left):
        fits[:, column] = table.fitting(k, answers[k])
    return Probed(left, fits, [brief(answers[k]) for k in left])


def _says_nothing(reply: Reply) -> bool:
    """Return whether what was asked is not written yet, which says nothing of what is."""
    if reply.raised is not None:
        return is_unfinished(reply.raised)
    return bool(reply.outputs) and all(out.came == "NoneType" for out in reply.outputs)


@dataclass(frozen=True)
class _Search:
    """A search for what explains these exchanges. The order in which they are compared changes with what is found."""

    bank: Bank
    table: Table
    reference: CachedRunner
    exchanges: list[Exchange]
    most_pairs: int
    part: Part | None

    def usable(self) -> list[int]:
        """Return the indices of the probes from the checks of these exchanges."""
        gradients = any(e.call.cotangent is not None for e in self.exchanges)
        checks = {e.check for e in self.exchanges}
        return [
            k
            for k, (probe, call) in enumerate(zip(self.table.probes, self.table.calls, strict=True))
            if probe.check in checks
            and (gradients or call.cotangent is None)
            and (self.part is None or self.part.function == target_of(call))
        ]

    def was_asked(self, probe: int) -> bool:
        """Return whether the attempt was really asked this probe.

        A check that fails early makes only its first calls. Its other calls might show a second fault, or the same fault in
        more places than any mutant has it.
        """
        check = self.table.probes[probe].check
        return self.table.probes[probe].nth < sum(e.check == check for e in self.exchanges)

    def found(self, probed: Probed) -> Faults:
        """Return the mutant, or the pair, that no probe rules out and that explains every exchange."""
        mutants: dict[str, Mutant] = {}
        for mutant in self._members(probed.fits.all(1)):  # these inputs may distinguish members of one class
            # The first of several mutants of one mistake is enough.
            if mutant.id not in mutants and self._explains(self.reference.of(mutant.namespace)):
                mutants[mutant.id] = mutant
        if mutants:
            return (fault_of(next(iter(mutants.values())), mutants),)
        members = members_of(self.bank, self.table, self.reference, self.exchanges)
        both = (
            made
            for a, b in possible_pairs(self.table, probed)
            if (made := tuple(combined(self.bank, members(a), members(b))))
        )
        only_raised = all(e.reply.raised is not None for e in self.exchanges)
        for combinations in islice(both, min(self.most_pairs, OF_ERRORS) if only_raised else self.most_pairs):
            if self.reference.large_bytes > MOST_LARGE:
                return None
            for pair, namespace in combinations:
                # Most fail at the same call for one attempt after another.
                if self._explains(self.reference.of(namespace, pair)):
                    needed = simplest(self.bank, self._needed(pair), self.reference, self.exchanges)
                    return tuple(self._with_alternatives(mutant, members) for mutant in needed)
        return None

    def _members(self, classes: Tensor) -> list[Mutant]:
        """Return the mutants of these classes, (classes,) bool."""
        return [self.bank.mutants[m] for c in classes.nonzero().flatten().tolist() for m in self.table.classes[c]]

    def _with_alternatives(self, mutant: Mutant, members: Members) -> Fault:
        """Return the fault, with the others of its class as alternatives."""
        place = self.bank.mutants.index(mutant)
        others = [m for i, c in enumerate(self.table.classes) if place in c for m in members(i)]
        return fault_of(mutant, [self.bank.mutants[m].id for m in others])

    def _needed(self, pair: tuple[Mutant, Mutant]) -> tuple[Mutant, ...]:
        """Return the one mutant of the pair that explains everything alone, except results of a division by almost 0; else both."""
        for one in pair:
            alone = self.reference.of(one.namespace)
            if all(agree_except_huge(e.reply, alone.execute(e.call)) for e in self.exchanges):
                return (one,)
        return pair

    def solved(self, exchanges: Sequence[Exchange]) -> Fault | None:
        """Return the member of a family that explains every exchange. It is solved for with the first of these that are wrong."""
        wrong = to_fit(exchanges, self.reference) if self.bank.families else ()
        for family in self.bank.families if wrong else ():
            knobs = family.solve(wrong, self.reference)
            if knobs is None:
                continue
            namespace = family.make(**knobs)
            if self._explains(LocalRunner(namespace, self.reference.device, only_values=True)):
                return Fault(family.id, namespace=namespace)
        return None

    def nearly(self, fits: Tensor) -> Faults:
        """Return the only misconception that explains all but a few exchanges, and nearly all wrong ones; None if there are others.

        One mistake written in two ways differs in edge cases: where a size is 1, or a sum is close to 0.
        """
        answered = [e for e in self.exchanges if e.reply.raised is None]  # exceptions alone are too little evidence
        wrong = sum(not agree(e.reply, self.reference.execute(e.call)) for e in answered)

        def is_missed(mutant: Mutant, exchange: Exchange) -> bool:
            return not agree(exchange.reply, self.reference.of(mutant.namespace).execute(exchange.call))

        close = self._members(fits.float().sum(1) >= fits.shape[1] * (1 - 2 / EDGE))
        near = the_only_near(close, self.exchanges, wrong, is_missed)
        return None if near is None else (fault_of(near),)

    def _explains(self, runner: Runner) -> bool:
        """Return whether trusted code answers every call as the attempt did, and contradicts nothing that was explained before."""
        return _all_agree(runner, self.exchanges) and not (self.part and self.part.contradicts(runner, self.reference))


def _all_agree(runner: Runner, exchanges: list[Exchange]) -> bool:
    """Return whether trusted code answers every call as the attempt did. Stops at the first difference.

    What need not be computed is compared first. The exchange with the difference is moved to the front, because it usually
    rules out the next candidate too.
    """
    known = runner.known_calls() if isinstance(runner, ReplayRunner) else ()
    cheap = [place for place, exchange in enumerate(exchanges) if id(exchange.call) in known]
    others = sorted({*range(len(exchanges))}.difference(cheap)) if cheap else range(len(exchanges))
    for place in (*cheap, *others):
        if not agree(exchanges[place].reply, runner.execute(exchanges[place].call)):
            exchanges.insert(0, exchanges.pop(place))
            return False
    return True
