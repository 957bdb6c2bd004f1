"""Which aspects of which calls a visible check asks, so that `course check` gives the verdict of
the hidden check.

Learned from attempts whose verdict is known: right attempts pass every check, and the kill matrix
says which checks each mutant fails. An aspect is asked where it fails mutants that the hidden check
fails, and of no call on which it would fail a right attempt, or more than a few mutants that the
hidden check passes. A check whose verdict cannot be given this way is asked last, of attempts that
pass all before it, if its verdict on those can be given: where values are wrong, recordings do not
tell dropout. A check that needs chance, or more than recordings hold, is left to the grading.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import combinations

from torch import Tensor

from ..diagnosis.aspects import OF_PAIRS, is_broken
from ..diagnosis.metamorphic import are_related, is_difference
from ..diagnosis.observe import Expected, Observed, first_of
from ..diagnosis.recording import ASPECTS, Ask, Aspect

OF_SEVERAL: tuple[Aspect, ...] = (*OF_PAIRS, "difference", "dropped")
OF_COPIES: tuple[Aspect, ...] = ("left", "struck")
# for no hidden check passes without answers
OF_EVERY_CHECK: tuple[Aspect, ...] = ("answered", "refused", "kind")
TELLING: tuple[Aspect, ...] = (
    "kind",
    "difference",
    "struck",
    "dtype",
    "parameters",
    "mutated",
    "gradients_arrive",
    "argument_gradients_arrive",
    "fused",
    "softmax",
    "square",
    "attributes",
)  # may mean one misconception: wrong numbers have many causes
# where no mutant says what a check asks
OF_ANY_CHECK: tuple[Aspect, ...] = (*OF_EVERY_CHECK, "values")
MORE_IF_LAST = 2  # times as many that no other check sees must a check see that is asked last
HITS_FOR_A_MISTAKE = 5  # mutants that an aspect must fail rightly for each that it fails wrongly
# of the mutants that fail the hidden check; above it, the visible one would say too little
MISSED_SHARE = 0.15

Groups = Mapping[Aspect, Sequence[tuple[int, ...]]]
# The aspects, with the calls, in which a subject is not as the reference.
Broken = frozenset[tuple[Aspect, tuple[int, ...]]]


@dataclass(frozen=True, eq=False)
class Subject:
    """Trusted code whose verdicts are known; none equals another.

    id: its misconception, "" of a right attempt.
    """

    fails: frozenset[str]
    is_right: bool
    broken: Broken
    id: str = ""


def groups_of(
    calls: Sequence[int],
    expected: Sequence[Expected],
    copies: Set[int] = frozenset(),
    edits: Set[tuple[int, int]] = frozenset(),
) -> Groups:
    """Return the calls to which each aspect can be put: one by one, or two whose answers are
    related.

    copies: the calls about many copies of one input, of which the extremes are recorded. edits: two
    calls of which one is the other with an edit of an argument, which may move every number of the
    answer.
    """
    known = {i: answer.double() for i in calls if (answer := first_of(expected[i])) is not None}
    answers = {
        i: answer
        for i, answer in known.items()
        if answer.dim() > 0 and bool(answer.isfinite().all())
    }
    comparable = {i: [_comparable(output) for output in expected[i]] for i in answers}
    related = [
        (a, b) for a, b in combinations(answers, 2) if _are_related(comparable[a], comparable[b])
    ]
    single: list[tuple[int, ...]] = [(i,) for i in calls]
    calm = [
        (a, c)
        for a in answers
        for c in copies & answers.keys()
        if answers[a].shape[1:] == answers[c].shape[1:]
    ]
    groups: dict[Aspect, list[tuple[int, ...]]] = {aspect: [*related] for aspect in OF_PAIRS}
    groups["moves"] = [
        pair for pair in combinations(answers, 2) if pair in edits or pair in related
    ]
    pairs = [(a, b) for a, b in combinations(known, 2) if known[a].dim() and known[b].dim()]
    numbers = [i for i, answer in known.items() if not answer.dim()]
    # Two calls, and another, before or after them, whose answer is the largest difference of
    # theirs.
    groups["difference"] = [
        (a, b, n) for n in numbers for a, b in pairs if is_difference(known[a], known[b], known[n])
    ]
    groups["dropped"] = [group for group in calm if group[0] not in copies]
    groups |= {aspect: [(c,) for c in sorted(copies & answers.keys())] for aspect in OF_COPIES}
    return {aspect: groups.get(aspect, single) for aspect in ASPECTS}


def _comparable(output: Tensor | None) -> Tensor | None:
    """Return an output in float64, or None if it is a single number or not finite everywhere."""
    if output is None or not output.dim() or not bool(output.isfinite().all()):
        return None
    return output.double()


def _are_related(first: Sequence[Tensor | None], second: Sequence[Tensor | None]) -> bool:
    """Return whether an output of one call is related to that output of the other."""
    both = ((a, b) for a, b in zip(first, second, strict=False) if a is not None and b is not None)
    return any(are_related(a, b) for a, b in both)


def within(groups: Groups, calls: Sequence[int]) -> Groups:
    """Return the groups of these calls alone, but of relations.

    They hold between answers that may themselves be others, and of what kind a difference is, it is
    asked, too.
    """
    own = set(calls)
    of_kind = {*own, *(number for *_, number in groups["difference"])}
    return {
        aspect: [
            g
            for g in found
            if aspect in OF_SEVERAL or set(g) <= (of_kind if aspect == "kind" else own)
        ]
        for aspect, found in groups.items()
    }


def broken_aspects(compared: Sequence[Observed], groups: Sequence[Groups]) -> Broken:
    """Return where a subject is not as the reference."""
    differs = {i for i, one in enumerate(compared) if not one.found.is_same(one.right)}
    asked = {
        (aspect, group) for each in groups for aspect, found in each.items() for group in found
    }
    # Recordings say nothing of devices, and not all of values: an answer may be rounded.
    unsaid = ("device", "values", "values_of_a_kind")
    known = (each for each in asked if each[0] in unsaid or not differs.isdisjoint(each[1]))
    return frozenset(each for each in known if is_broken(each[0], [compared[i] for i in each[1]]))


@dataclass(frozen=True)
class Chosen:
    """What a visible check asks.

    is_last: after those that are not, only of attempts that pass all before it.
    """

    asks: tuple[Ask, ...] = ()
    is_last: bool = False


def choose_all(groups: Mapping[str, Groups], subjects: Sequence[Subject]) -> dict[str, Chosen]:
    """Return what each visible check asks, by its id."""
    nothing: Groups = dict.fromkeys(OF_COPIES, ())
    chosen = {
        check: Chosen(choose(check, {**found, **nothing}, subjects))
        for check, found in groups.items()
    }
    _ask_last(chosen, groups, subjects)
    for check, found in groups.items():
        others = [each.asks for id_, each in chosen.items() if id_ != check and not each.is_last]
        if (asks := chosen[check].asks) and not chosen[check].is_last:
            more = _asked_of_unseen(check, found, subjects, _passing(subjects, *others), asks)
            chosen[check] = Chosen((*asks, *more))
    alone = _passing(subjects, *(each.asks for each in chosen.values() if not each.is_last))
    # What the aspects mean; of a check that is asked last, to those that alone fail it then.
    last = {
        check: [s for s in alone if s.fails == {check}]
        for check, each in chosen.items()
        if each.is_last
    }
    meant = {
        check: _with_meanings(each.asks, last.get(check, subjects))
        for check, each in chosen.items()
    }
    return {check: replace(each, asks=meant[check]) for check, each in chosen.items()}


def _ask_last(
    chosen: dict[str, Chosen], groups: Mapping[str, Groups], subjects: Sequence[Subject]
) -> None:
    """Choose anew, to be asked last, where that shows so many more of the subjects that no other
    check sees.

    Of one that is asked of everybody, most verdicts may be right because most subjects are wrong
    elsewhere. What dropout leaves is asked last at most: a check would else ask that little, and
    miss dropouts that are elsewhere.
    """
    for check, found in groups.items():
        alone = _passing(subjects, *(each.asks for id_, each in chosen.items() if id_ != check))
        failing = [subject for subject in alone if check in subject.fails]
        seen = len(failing) - len(_passing(failing, chosen[check].asks))
        asks = choose(check, found, alone) if len(failing) >= MORE_IF_LAST * seen else ()
        if len(failing) - len(_passing(failing, asks)) > MORE_IF_LAST * seen:
            chosen[check] = Chosen(asks, is_last=True)


def _asked_of_unseen(
    check: str,
    groups: Groups,
    subjects: Sequence[Subject],
    alone: Sequence[Subject],
    asks: Sequence[Ask],
) -> list[Ask]:
    """More aspects, for subjects that fail this check and that nothing sees.

    Some who pass it may break them, fewer than those that fail it, as long as another check sees
    each of these. alone: the subjects that no other check sees.
    """
    unseen = {subject for subject in _passing(alone, asks) if check in subject.fails}
    unfair = {*alone, *(subject for subject in subjects if subject.is_right)}
    found = list[Ask]()
    for aspect, group in ((a, g) for a in ASPECTS for g in groups[a]):
        broken = _breaking(aspect, group, subjects)
        mistakes = {subject for subject in broken if check not in subject.fails}
        if unseen & broken and not unfair & mistakes and 2 * len(mistakes) < len(broken):
            found.append(Ask(aspect=aspect, calls=(group,)))
            unseen -= broken
    return found


def _with_meanings(asks: Sequence[Ask], subjects: Sequence[Subject]) -> tuple[Ask, ...]:
    """Return the aspects, each with the misconception of all subjects that break it: numbers that
    no mutant gives prove it, too.
    """
    # who breaks an aspect may break those that come after it for the same cause
    found, before = [], set[Subject]()
    for ask in asks:
        of_calls = [(i,) for group in ask.calls for i in group if ask.aspect != "kind"]
        others = set[Subject]().union(*(_breaking("kind", call, subjects) for call in of_calls))
        every = set[Subject]().union(
            *(_breaking(ask.aspect, group, subjects) for group in ask.calls)
        )
        broken = every - before - others
        before |= broken
        names = {subject.id for subject in broken} if ask.aspect in TELLING else set()
        found.append(ask.model_copy(update={"means": names.pop()}) if len(names) == 1 else ask)
    return tuple(found)


def _passing(subjects: Sequence[Subject], *asks: Sequence[Ask]) -> list[Subject]:
    """Return the subjects that break nothing of what these checks ask."""
    asked = {(ask.aspect, group) for other in asks for ask in other for group in ask.calls}
    return [subject for subject in subjects if subject.broken.isdisjoint(asked)]


def choose(check: str, groups: Groups, subjects: Sequence[Subject]) -> tuple[Ask, ...]:
    """Return what the visible check asks; nothing where recordings cannot give the hidden check's
    verdict.
    """
    failing = {subject for subject in subjects if check in subject.fails}
    if not failing:  # whatever nobody lacks
        asked = {
            a: tuple(g for g in groups[a] if not _breaking(a, g, subjects)) for a in OF_ANY_CHECK
        }
        return tuple(Ask(aspect=aspect, calls=calls) for aspect, calls in asked.items() if calls)
    left, wrongly = failing, set[Subject]()
    asks: list[Ask] = []
    for aspect in ASPECTS:
        breaking = {group: _breaking(aspect, group, subjects) for group in groups[aspect]}
        fair = {  # who breaks it is no right attempt, and few mutants that pass the hidden check
            group: who
            for group, who in breaking.items()
            if not any(subject.is_right for subject in who)
            and len(who - failing - wrongly) * HITS_FOR_A_MISTAKE <= len(who & failing)
        }
        broken = set[Subject]().union(*fair.values())
        mistakes = broken - failing - wrongly
        is_fair = len(broken & failing) > HITS_FOR_A_MISTAKE * len(mistakes)
        # more verdicts become right than wrong
        is_needed = is_fair and len(broken & left) > len(mistakes)
        # A check of what an edit must not move also asks what the edit must move.
        is_counterpart = aspect == "moves" and any(ask.aspect == "stays" for ask in asks)
        is_free = (aspect in OF_EVERY_CHECK or is_counterpart) and not mistakes
        if fair and (is_needed or is_free):
            asks.append(Ask(aspect=aspect, calls=tuple(fair)))
            left, wrongly = left - broken, wrongly | mistakes
    return tuple(asks) if len(left) <= MISSED_SHARE * len(failing) else ()


def _breaking(aspect: Aspect, group: tuple[int, ...], subjects: Sequence[Subject]) -> set[Subject]:
    return {subject for subject in subjects if (aspect, group) in subject.broken}
