"""Mutants whose answers depend on more than the call, replayed from new: every call of an attempt, in its order.

A cache in a default argument remembers earlier calls, and a layer that is not registered keeps its own weights and its own
dtype. What such a mutant answers to one call says nothing of another run, so that neither table nor search can tell what is
wrong beside it. Asked all that the attempt was asked, one call after the other, the same code gives the same answers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain

from ..checks.implementation import LocalRunner, Runner
from ..checks.local import LocalRecordingRunner, as_an_attempts
from ..checks.recording import Exchange
from .agree import agree, is_comparable
from .bank import Bank, Mutant
from .search import Fault, refuses_in_its_own_way

MOST_BASES = 4  # mutants of the proved misconceptions that are tried with every other one
TRIED_CALLS = 6  # with which it is seen whether a mutant's answers depend on more than the call


def explain_in_order(
    bank: Bank, proven: Collection[str], reference: Runner, transcript: Sequence[Exchange]
) -> tuple[Fault, ...] | None:
    """A mutant of a misconception that a check proves, alone or with another, that answers all calls as the attempt did.

    None if there is none, or if all such mutants can be replayed call by call.
    """
    compared = {
        i
        for i, each in enumerate(transcript)
        if is_comparable(each.call) and not refuses_in_its_own_way(each, reference)
    }
    if not any(transcript[i].reply.outputs for i in compared):
        return None
    tried = [transcript[i] for i in sorted(compared)[:TRIED_CALLS]]
    bases = [m for m in bank.mutants if m.id in proven and _needs_its_order(bank, m, tried)][:MOST_BASES]
    for mutants in chain(((base,) for base in bases), _pairs(bank, bases)):
        namespace = bank.anew(*mutants)
        if namespace is not None and _answers_alike(LocalRecordingRunner(namespace), transcript, compared):
            return tuple(Fault(mutant) for mutant in mutants)
    return None


def _pairs(bank: Bank, bases: Sequence[Mutant]) -> Iterator[tuple[Mutant, ...]]:
    return ((base, other) for base in bases for other in bank.mutants if other.id != base.id)


def _needs_its_order(bank: Bank, mutant: Mutant, tried: Sequence[Exchange]) -> bool:
    """Whether a call is answered otherwise when it is asked again, or in float32 alone."""
    runner = LocalRunner(bank.anew(mutant) or {})
    for each in tried:
        first = runner.execute(each.call)
        if as_an_attempts(runner, each.call, first) is not first or not agree(first, runner.execute(each.call)):
            return True
    return False


def _answers_alike(runner: LocalRecordingRunner, transcript: Sequence[Exchange], compared: Collection[int]) -> bool:
    """Whether trusted code, asked everything in the same order, answers these calls as the attempt did."""
    for i, exchange in enumerate(transcript):
        reply = runner.execute(exchange.call)
        if i in compared and not agree(exchange.reply, reply):
            return False
    return True
