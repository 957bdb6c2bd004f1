"""Which mutants, or which pair of them, answer the recorded calls as an attempt does."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from ..checks.transcript import target_of
from .diagnosis import Fault, function_by_function, says_little, without
from .fixed_sizes import HARD_CODED, has_written_size
from .proofs import the_only_near
from .recorded_answers import Answered
from .recorded_pairs import explaining_pair
from .recording import RecordedMutant, facets_of
from .same_places import WRONG_AXIS, due_to_acceptance, has_foreign_size
from .varying_answers import due_to_chance


def explain(answered: Answered, raised: Set[int]) -> Sequence[Fault]:
    """Return what explains the whole attempt: mutants; beside what proves itself, too; or a pair of mutants in one.

    raised: the calls whose exception proves itself.
    """
    if explained := _cover(answered):
        return explained
    # What an exception proves need be no mutant's, as in grading.
    if raised and (explained := _cover(answered.without(raised))):
        return explained
    for calls, name in (due_to_chance(answered), due_to_acceptance(answered)):
        # These are due to a mistake of their own, whatever the numbers there.
        if name and (explained := _cover(answered.without(calls))):
            return [*explained, Fault(name)]
    return explaining_pair(answered)


def explain_functions(answered: Answered) -> Sequence[Fault]:
    """Return what explains each function alone, where nothing explains all, and does not contradict an earlier one.

    Functions come in the order of the recorded calls, which is that of their definitions.
    """
    targets = [target_of(call) for call in answered.fingerprints.calls]
    says_something = {i for i, e in answered.written.items() if e.reply.outputs and e.reply.raised is None}

    def explain_one(function: str, before: Sequence[str]) -> list[Fault]:
        own = {i for i in answered.asked if targets[i] == function}
        earlier = {i for i in answered.asked & says_something if targets[i] in before}
        return _cover(replace(answered, asked=own | earlier), own)

    return function_by_function(list(dict.fromkeys(targets)), explain_one)


def explain_nearly(answered: Answered) -> Sequence[Fault]:
    """Return the only misconception that explains all but a few calls, and nearly all wrong answers, as grading does."""
    wrong = sum(each.reply.raised is None for each in answered.wrong.values())

    def is_missed(mutant: RecordedMutant, call: int) -> bool:
        answer, mine = answered.content.answer(mutant, call), answered.written[call].found
        return answer is None or not answer.agrees(mine, facets_of(answered.fingerprints, call))

    near = the_only_near(answered.mutants, sorted(answered.asked & answered.written.keys()), wrong, is_missed)
    return [] if near is None else [Fault(near.id)]


def _cover(answered: Answered, own: Set[int] | None = None) -> list[Fault]:
    """Return mutants that together explain all calls that are wrong, or those of `own`; the one that explains most first.

    Not a mutant that is wrong elsewhere, or in another way.
    """
    mutants, unexplained = answered.mutants, {i: e for i, e in answered.wrong.items() if own is None or i in own}
    impossible = {WRONG_AXIS} if has_foreign_size(unexplained.values()) else set[str]()
    explains = {
        m: _explained(answered, m, unexplained.keys())
        for m, mutant in enumerate(mutants)
        if mutant.id not in impossible and answered.allows(m)
    }
    left, faults = set(unexplained), []
    while left:
        best = max(explains, key=lambda m: (len(explains[m] & left), -_unknown(answered, m)), default=None)
        if best is None or not explains[best] & left:
            return []  # something remains that nothing explains: name nothing
        same = [mutants[m].id for m in explains if explains[m] == explains[best] and mutants[m].id != mutants[best].id]
        faults.append(Fault(mutants[best].id, tuple(dict.fromkeys(same))))
        left -= explains[best]
    only_raises = all(comparison.reply.raised for comparison in unexplained.values())
    return [] if says_little(faults, only_raises) else faults


def _unknown(answered: Answered, mutant: int) -> int:
    """Return how many of its answers chance decides: of two mutants that explain the same, one that says more is likelier."""
    return sum(answered.mutants[mutant].answers[index] is None for index in answered.asked)


def _explained(answered: Answered, mutant: int, calls: Set[int]) -> frozenset[int]:
    """Return which of these calls a mutant explains; none if what it answers is known of none of them."""
    explained = frozenset(i for i in calls if answered.explains(mutant, i))
    is_known = any(answered.mutants[mutant].answers[i] is not None for i in explained)
    return explained if is_known else frozenset()


def without_unwritten_sizes(explained: Sequence[Fault], answered: Answered, source: str) -> Sequence[Fault]:
    """Return what explains an attempt that only raises, without sizes that are written in where its text contains none."""
    if has_written_size(source) or not all(comparison.reply.raised for comparison in answered.wrong.values()):
        return explained
    return without(HARD_CODED, explained) or ()
