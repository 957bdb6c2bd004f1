"""Which mutants, or which pair of them, answer the recorded calls as an attempt does."""

from __future__ import annotations

from collections.abc import Mapping, Set
from itertools import islice

from ..checks.transcript import target_of
from .comparison import Comparison
from .equal_sizes import WRONG_AXIS
from .fixed_sizes import HARD_CODED, has_written_size
from .proofs import EDGE, FEW, MOST_ALTERNATIVES
from .recorded_pairs import Named, explaining_pair
from .recording import Fingerprints, facets_of, is_silent, matches
from .same_places import due_to_acceptance, has_foreign_size
from .varying_answers import due_to_chance


def explain(
    fingerprints: Fingerprints,
    written: Mapping[int, Comparison],
    unexplained: Mapping[int, Comparison],
    asked: Set[int],
    raised: Set[int],
) -> list[Named]:
    """Return what explains the whole attempt: mutants; beside what proves itself, too; or a pair of mutants in one."""
    if explained := _cover(fingerprints, unexplained, asked, unexplained):
        return explained
    if raised:  # what an exception proves need be no mutant's, as in grading
        left = {i: e for i, e in unexplained.items() if i not in raised}
        if explained := _cover(fingerprints, left, asked - raised, left):
            return explained
    for due in (due_to_chance(fingerprints, written, asked), due_to_acceptance(fingerprints, unexplained, asked)):
        if explained := _beside(fingerprints, unexplained, asked, due):
            return explained
    return explaining_pair(fingerprints, unexplained, asked)


def _beside(
    fingerprints: Fingerprints, unexplained: Mapping[int, Comparison], asked: Set[int], due: tuple[Set[int], str]
) -> list[Named]:
    """Return what explains all but the calls that are due to a mistake of their own, whatever the numbers there, and last that."""
    calls, name = due
    left = {i: each for i, each in unexplained.items() if i not in calls}
    explained = _cover(fingerprints, left, asked - calls, left) if name else []
    return [*explained, (name, ())] if explained else []


def explain_functions(
    fingerprints: Fingerprints,
    written: Mapping[int, Comparison],
    unexplained: Mapping[int, Comparison],
    asked: Set[int],
) -> list[Named]:
    """Return what explains each function alone, where nothing explains all, and does not contradict an earlier one.

    Functions come in the order of the recorded calls, which is that of their definitions.
    """
    functions = list(dict.fromkeys(map(target_of, fingerprints.calls)))
    found: dict[str, tuple[str, ...]] = {}
    for place, function in enumerate(functions):
        own = {i: each for i, each in unexplained.items() if target_of(each.call) == function}
        answered = {i for i, each in written.items() if each.reply.outputs and each.reply.raised is None}
        calls = {i for i in asked if target_of(fingerprints.calls[i]) == function}
        before = {i for i in asked & answered if target_of(fingerprints.calls[i]) in functions[:place]}
        for name, others in _cover(fingerprints, own, calls | before, unexplained):
            found.setdefault(name, others)
    return list(found.items()) if len(functions) > 1 else []


def explain_nearly(
    fingerprints: Fingerprints,
    written: Mapping[int, Comparison],
    unexplained: Mapping[int, Comparison],
    asked: Set[int],
) -> list[Named]:
    """Return the only misconception that explains all but a few calls, and nearly all wrong answers, as grading does.

    One mistake written in two ways differs in edge cases: where a size is 1, or a sum is close to 0.
    """
    content, calls = fingerprints.content, sorted(asked & written.keys())
    wrong = sum(each.reply.raised is None for each in unexplained.values())
    allowed = min(len(calls) // EDGE, wrong // FEW)
    found = set[str]()
    for mutant in content.mutants if allowed else ():
        answers = ((i, content.answer(mutant, i)) for i in calls)
        missed = (
            answer is None or not answer.agrees(written[i].found, facets_of(fingerprints, i)) for i, answer in answers
        )
        if mutant.id not in found and sum(islice(filter(None, missed), allowed + 1)) <= allowed:
            found.add(mutant.id)
    return [(name, ()) for name in found] if len(found) == 1 else []


def _cover(
    fingerprints: Fingerprints,
    unexplained: Mapping[int, Comparison],
    asked: Set[int],
    differing: Mapping[int, Comparison],
) -> list[Named]:
    """Mutants that together explain these calls on which the attempt differs, the one that explains most first.

    `asked`: the calls on which they may differ from the reference only as the attempt does, where it is `differing`.
    """
    mutants = fingerprints.content.mutants
    impossible = {WRONG_AXIS} if has_foreign_size(unexplained.values()) else set[str]()
    explains = {
        m: _explained(fingerprints, m, unexplained)
        for m, mutant in enumerate(mutants)
        if mutant.id not in impossible and _is_silent_elsewhere(fingerprints, m, differing, asked)
    }
    left, names = set(unexplained), []
    while left:
        best = max(explains, key=lambda m: (len(explains[m] & left), -_unknown(fingerprints, m, asked)), default=None)
        if best is None or not explains[best] & left:
            return []  # something remains that nothing explains: name nothing
        same = [mutants[m].id for m in explains if explains[m] == explains[best] and mutants[m].id != mutants[best].id]
        if len({*same}) > MOST_ALTERNATIVES and all(comparison.reply.raised for comparison in unexplained.values()):
            return []  # so many mistakes end in this exception that it says little
        names.append((mutants[best].id, tuple(dict.fromkeys(same))))
        left -= explains[best]
    return names


def _unknown(fingerprints: Fingerprints, mutant: int, asked: Set[int]) -> int:
    """Return how many of its answers chance decides: of two mutants that explain the same, one that says more is likelier."""
    content = fingerprints.content
    return sum(content.answer(content.mutants[mutant], index) is None for index in asked)


def _explained(fingerprints: Fingerprints, mutant: int, unexplained: Mapping[int, Comparison]) -> frozenset[int]:
    """Return the calls that a mutant explains; none if what it answers is known of none of them."""
    content = fingerprints.content
    explained = frozenset(i for i in unexplained if matches(fingerprints, mutant, i, unexplained[i]))
    is_known = any(content.answer(content.mutants[mutant], i) is not None for i in explained)
    return explained if is_known else frozenset()


def _is_silent_elsewhere(
    fingerprints: Fingerprints, mutant: int, differing: Mapping[int, Comparison], asked: Set[int]
) -> bool:
    """Return whether the mutant answers as the attempt or as the reference does, on every call that is asked."""
    return all(
        is_silent(fingerprints, mutant, i) or (i in differing and matches(fingerprints, mutant, i, differing[i]))
        for i in sorted(asked)
    )


def without_unwritten_sizes(explained: list[Named], unexplained: Mapping[int, Comparison], source: str) -> list[Named]:
    """Return what explains an attempt that only raises, without sizes that are written in where its text contains none."""
    if has_written_size(source) or not all(comparison.reply.raised for comparison in unexplained.values()):
        return explained
    left = [[id_ for id_ in (name, *others) if id_ != HARD_CODED] for name, others in explained]
    return [(ids[0], tuple(ids[1:])) for ids in left] if all(left) else []
