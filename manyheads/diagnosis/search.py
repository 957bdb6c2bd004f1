"""Find the mutant, or the pair, that answers every comparable call as the attempt did, not only the failing calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
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
from .family import to_fit
from .pair_answers import Sketches, brief
from .pair_candidates import Members, members_of, possible_pairs, simplest
from .proofs import EDGE, FEW
from .table import Table, combined

CONFIRMED_PAIRS = 500  # the most pairs that are replayed: of 590 pairs that were found, the last one was the 470th
OF_ERRORS = 64  # the most pairs if the attempt raised in every call: errors distinguish pairs badly
# Bytes of answers in one diagnosis that are too large to be kept, after which no more pairs are replayed: with a mask of 1024
# tokens a single token of 35 heads gets 140 MB, from a thousand pairs one after the other.
MOST_LARGE = 2**30


@dataclass(frozen=True)
class Fault:
    """A mutant that explains the attempt's values, alone or in a pair, and the ids of others with the same values."""

    mutant: Mutant
    alternatives: tuple[str, ...] = ()


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


def explain_values(
    bank: Bank,
    table: Table,
    subject: BatchRunner,
    reference: CachedRunner,
    exchanges: Sequence[Exchange],
    most_pairs: int = CONFIRMED_PAIRS,
    part: Part | None = None,
) -> tuple[Fault, ...] | None:
    """Return the faults that explain these exchanges: () if nothing is wrong, one, or two; None if the bank has no explanation.

    `subject` is the attempt, to be asked the table's probes. Raises AttemptEnded if a probe ends its process.
    Put failed exchanges first: they rule out candidates soonest. `part`: what they are about, if it is not the
    whole attempt.
    """
    exchanges = [e for e in exchanges if not refuses_in_its_own_way(e, reference)]
    if any(
        e.reply.raised is not None and not is_refusal(e.reply.raised) and not kind_of(e.reply.raised) for e in exchanges
    ):
        return None  # no mutant explains an exception of unknown kind
    if _explains(reference, exchanges):
        return ()
    every, asked = _usable(table, exchanges, part)
    answers = dict(zip(every, replies_of(subject, [table.calls[k] for k in every]), strict=True))
    if any(out.tensor is not None for reply in answers.values() for out in reply.outputs):
        every = [k for k in every if not _says_nothing(answers[k])]
    every = [k for k in every if not refuses_in_its_own_way(Exchange("", table.calls[k], answers[k]), reference)]
    asked = [k for k in asked if k in every]
    replies = [brief(answers[k]) for k in every]
    fits = torch.ones(len(table.classes), len(every), dtype=torch.bool)  # without probes all mutants are candidates
    for column, k in enumerate(every):
        fits[:, column] = table.fitting(k, answers[k])
    order = list(exchanges)  # in which they are compared: it changes with what is found
    faults = _found(bank, table, every, fits, replies, reference, order, most_pairs, part)
    if faults is None and asked != every:
        here = [every.index(k) for k in asked]
        every, fits, replies = asked, fits[:, here], [replies[i] for i in here]
        faults = _found(bank, table, every, fits, replies, reference, order, most_pairs, part)
    if faults is None and (solved := _solved(bank, reference, exchanges, part)) is not None:
        return (solved,)
    if faults is None and part is None:  # a part is too little to be explained nearly
        return _nearly_explains(bank, table, fits, reference, exchanges)
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


def _says_nothing(reply: Reply) -> bool:
    """Return whether what was asked is not written yet, which says nothing of what is."""
    if reply.raised is not None:
        return is_unfinished(reply.raised)
    return bool(reply.outputs) and all(out.came == "NoneType" for out in reply.outputs)


def _usable(table: Table, exchanges: Sequence[Exchange], part: Part | None) -> tuple[list[int], list[int]]:
    """Return the indices of the probes from the checks of these exchanges, and of those that the attempt was really asked.

    A check that fails early makes only its first calls. Its other calls might show a second fault, or the same fault in
    more places than any mutant has it.
    """
    gradients = any(e.call.cotangent is not None for e in exchanges)
    counts = Counter(e.check for e in exchanges)
    every = [
        k
        for k, (probe, call) in enumerate(zip(table.probes, table.calls, strict=True))
        if probe.check in counts
        and (gradients or call.cotangent is None)
        and (part is None or part.function == target_of(call))
    ]
    return every, [k for k in every if table.probes[k].nth < counts[table.probes[k].check]]


def _found(
    bank: Bank,
    table: Table,
    used: list[int],
    fits: Tensor,
    replies: Sequence[Sketches],
    reference: CachedRunner,
    exchanges: list[Exchange],
    most_pairs: int,
    part: Part | None,
) -> tuple[Fault, ...] | None:
    """Return the mutant, or the pair, that no probe rules out and that explains every exchange."""
    alike = [m for c in fits.all(1).nonzero().flatten().tolist() for m in table.classes[c]]
    candidates = [bank.mutants[m] for m in alike]  # these inputs may distinguish members of one class
    mutants: dict[str, Mutant] = {}
    for mutant in candidates:  # the first of several mutants of one mistake is enough
        runner = reference.of(mutant.namespace)
        if (
            mutant.id not in mutants
            and _explains(runner, exchanges)
            and not (part and part.contradicts(runner, reference))
        ):
            mutants[mutant.id] = mutant
    if mutants:
        return (_fault(next(iter(mutants.values())), list(mutants)),)
    members = members_of(bank, table, reference, exchanges)
    both = (
        made
        for a, b in possible_pairs(table, fits, used, replies)
        if (made := tuple(combined(bank, members(a), members(b))))
    )
    only_raised = all(e.reply.raised is not None for e in exchanges)
    for combinations in islice(both, min(most_pairs, OF_ERRORS) if only_raised else most_pairs):
        if reference.large_bytes > MOST_LARGE:
            return None
        for pair, namespace in combinations:
            together = reference.of(namespace, pair)  # most fail at the same call for one attempt after another
            if not _explains(together, exchanges) or (part and part.contradicts(together, reference)):
                continue
            found_pair = simplest(bank, _needed(pair, reference, exchanges), reference, exchanges)
            return tuple(_with_alternatives(bank, table, m, members) for m in found_pair)
    return None


def _with_alternatives(bank: Bank, table: Table, mutant: Mutant, members: Members) -> Fault:
    """Return the fault, with the others of its class as alternatives."""
    place = bank.mutants.index(mutant)
    return _fault(mutant, [bank.mutants[m].id for i, c in enumerate(table.classes) if place in c for m in members(i)])


def _solved(bank: Bank, reference: CachedRunner, exchanges: list[Exchange], part: Part | None) -> Fault | None:
    """Return the member of a family that explains every exchange."""
    wrong = to_fit(exchanges, reference) if bank.families else ()
    if not wrong:
        return None
    for family in bank.families:
        knobs = family.solve(wrong, reference)
        if knobs is None:
            continue
        mutant = Mutant(family.id, knobs, family.make(**knobs))
        runner = LocalRunner(mutant.namespace, reference.device, only_values=True)
        if _explains(runner, exchanges) and not (part and part.contradicts(runner, reference)):
            return _fault(mutant, [])
    return None


def _needed(pair: tuple[Mutant, Mutant], reference: CachedRunner, exchanges: Sequence[Exchange]) -> tuple[Mutant, ...]:
    """Return the one mutant of the pair that explains everything alone, except results of a division by almost 0; else both."""
    for one in pair:
        alone = reference.of(one.namespace)
        if all(agree_except_huge(e.reply, alone.execute(e.call)) for e in exchanges):
            return (one,)
    return pair


def _nearly_explains(
    bank: Bank, table: Table, fits: Tensor, reference: CachedRunner, exchanges: Sequence[Exchange]
) -> tuple[Fault, ...] | None:
    """Return the only misconception that explains all but a few exchanges, and nearly all wrong ones; None if there are others.

    One mistake written in two ways differs in edge cases: where a size is 1, or a sum is close to 0.
    """
    answered = [e for e in exchanges if e.reply.raised is None]  # exceptions alone are too little evidence
    wrong = sum(not agree(e.reply, reference.execute(e.call)) for e in answered)
    allowed = min(len(exchanges) // EDGE, wrong // FEW)
    close = (fits.float().sum(1) >= fits.shape[1] * (1 - 2 / EDGE)).nonzero().flatten().tolist()
    found = []
    for mutant in [bank.mutants[m] for c in close for m in table.classes[c]] if allowed else []:
        runner, missed = reference.of(mutant.namespace), 0
        for exchange in exchanges:
            missed += not agree(exchange.reply, runner.execute(exchange.call))
            if missed > allowed:
                break
        else:
            found.append(mutant)
    return (_fault(found[0], []),) if len({m.id for m in found}) == 1 else None


def _explains(runner: Runner, exchanges: list[Exchange]) -> bool:
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


def _fault(mutant: Mutant, ids: Sequence[str]) -> Fault:
    return Fault(mutant, tuple(dict.fromkeys(id_ for id_ in ids if id_ != mutant.id)))
