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

from ..diagnosis.fault_dictionary import ORACLES, Oracle, OracleUse
from ..diagnosis.metamorphic import is_difference, relation_applies
from ..diagnosis.observed_reply import Expected, ObservedReply, first_of
from ..diagnosis.oracles import OF_PAIRS, is_broken

OF_SEVERAL: tuple[Oracle, ...] = (*OF_PAIRS, "difference", "dropped")
OF_COPIES: tuple[Oracle, ...] = ("left", "struck")
# for no hidden check passes without answers
OF_EVERY_CHECK: tuple[Oracle, ...] = ("answered", "refused", "kind")
TELLING: tuple[Oracle, ...] = (
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
OF_ANY_CHECK: tuple[Oracle, ...] = (*OF_EVERY_CHECK, "values")
MORE_IF_LAST = 2  # times as many that no other check sees must a check see that is asked last
HITS_FOR_A_MISTAKE = 5  # mutants that an aspect must fail rightly for each that it fails wrongly
# of the mutants that fail the hidden check; above it, the visible one would say too little
MISSED_SHARE = 0.15

Groups = Mapping[Oracle, Sequence[tuple[int, ...]]]
# The aspects, with the calls, in which a subject is not as the reference.
ViolatedOracles = frozenset[tuple[Oracle, tuple[int, ...]]]


@dataclass(frozen=True, eq=False)
class LabelledProgram:
    """Trusted code whose verdicts are known; none equals another.

    id: its misconception, "" of a right attempt.
    """

    fails: frozenset[str]
    is_right: bool
    broken: ViolatedOracles
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
    outputs = {i: answer.double() for i in calls if (answer := first_of(expected[i])) is not None}
    answers = {
        i: answer
        for i, answer in outputs.items()
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
    groups: dict[Oracle, list[tuple[int, ...]]] = {aspect: [*related] for aspect in OF_PAIRS}
    groups["moves"] = [
        pair for pair in combinations(answers, 2) if pair in edits or pair in related
    ]
    pairs = [(a, b) for a, b in combinations(outputs, 2) if outputs[a].dim() and outputs[b].dim()]
    numbers = [i for i, answer in outputs.items() if not answer.dim()]
    # Two calls, and another, before or after them, whose answer is the largest difference of
    # theirs.
    groups["difference"] = [
        (a, b, n)
        for n in numbers
        for a, b in pairs
        if is_difference(outputs[a], outputs[b], outputs[n])
    ]
    groups["dropped"] = [group for group in calm if group[0] not in copies]
    groups |= {aspect: [(c,) for c in sorted(copies & answers.keys())] for aspect in OF_COPIES}
    return {aspect: groups.get(aspect, single) for aspect in ORACLES}


def _comparable(output: Tensor | None) -> Tensor | None:
    """Return an output in float64, or None if it is a single number or not finite everywhere."""
    if output is None or not output.dim() or not bool(output.isfinite().all()):
        return None
    return output.double()


def _are_related(first: Sequence[Tensor | None], second: Sequence[Tensor | None]) -> bool:
    """Return whether an output of one call is related to that output of the other."""
    both = ((a, b) for a, b in zip(first, second, strict=False) if a is not None and b is not None)
    return any(relation_applies(a, b) for a, b in both)


def within(groups: Groups, calls: Sequence[int]) -> Groups:
    """Return the groups of these calls alone, but of relations.

    They hold between answers that may themselves be others, and of what kind a difference is, it is
    asked, too.
    """
    call_set = set(calls)
    of_kind = {*call_set, *(number for *_, number in groups["difference"])}
    return {
        aspect: [
            g
            for g in call_groups
            if aspect in OF_SEVERAL or set(g) <= (of_kind if aspect == "kind" else call_set)
        ]
        for aspect, call_groups in groups.items()
    }


def broken_aspects(compared: Sequence[ObservedReply], groups: Sequence[Groups]) -> ViolatedOracles:
    """Return where a subject is not as the reference."""
    differs = {
        i for i, observed in enumerate(compared) if not observed.actual.is_same(observed.expected)
    }
    pairs = {
        (aspect, group)
        for check_groups in groups
        for aspect, call_groups in check_groups.items()
        for group in call_groups
    }
    # Recordings say nothing of devices, and not all of values: an answer may be rounded.
    unsaid = ("device", "values", "values_of_a_kind")
    relevant = (pair for pair in pairs if pair[0] in unsaid or not differs.isdisjoint(pair[1]))
    return frozenset(
        pair for pair in relevant if is_broken(pair[0], [compared[i] for i in pair[1]])
    )


@dataclass(frozen=True)
class Chosen:
    """What a visible check asks.

    is_last: after those that are not, only of attempts that pass all before it.
    """

    asks: tuple[OracleUse, ...] = ()
    is_last: bool = False


def choose_all(
    groups: Mapping[str, Groups], subjects: Sequence[LabelledProgram]
) -> dict[str, Chosen]:
    """Return what each visible check asks, by its id."""
    nothing: Groups = dict.fromkeys(OF_COPIES, ())
    chosen = {
        check: Chosen(choose(check, {**check_groups, **nothing}, subjects))
        for check, check_groups in groups.items()
    }
    _ask_last(chosen, groups, subjects)
    for check, check_groups in groups.items():
        other_asks = [
            choice.asks for id_, choice in chosen.items() if id_ != check and not choice.is_last
        ]
        if (asks := chosen[check].asks) and not chosen[check].is_last:
            extra_asks = _asked_of_unseen(
                check, check_groups, subjects, _passing(subjects, *other_asks), asks
            )
            chosen[check] = Chosen((*asks, *extra_asks))
    alone = _passing(subjects, *(choice.asks for choice in chosen.values() if not choice.is_last))
    # What the aspects mean; of a check that is asked last, to those that alone fail it then.
    last = {
        check: [s for s in alone if s.fails == {check}]
        for check, choice in chosen.items()
        if choice.is_last
    }
    labelled_asks = {
        check: _with_meanings(choice.asks, last.get(check, subjects))
        for check, choice in chosen.items()
    }
    return {check: replace(choice, asks=labelled_asks[check]) for check, choice in chosen.items()}


def _ask_last(
    chosen: dict[str, Chosen], groups: Mapping[str, Groups], subjects: Sequence[LabelledProgram]
) -> None:
    """Choose anew, to be asked last, where that shows so many more of the subjects that no other
    check sees.

    Of one that is asked of everybody, most verdicts may be right because most subjects are wrong
    elsewhere. What dropout leaves is asked last at most: a check would else ask that little, and
    miss dropouts that are elsewhere.
    """
    for check, check_groups in groups.items():
        alone = _passing(subjects, *(choice.asks for id_, choice in chosen.items() if id_ != check))
        failing = [subject for subject in alone if check in subject.fails]
        detected = len(failing) - len(_passing(failing, chosen[check].asks))
        asks = choose(check, check_groups, alone) if len(failing) >= MORE_IF_LAST * detected else ()
        if len(failing) - len(_passing(failing, asks)) > MORE_IF_LAST * detected:
            chosen[check] = Chosen(asks, is_last=True)


def _asked_of_unseen(
    check: str,
    groups: Groups,
    subjects: Sequence[LabelledProgram],
    alone: Sequence[LabelledProgram],
    asks: Sequence[OracleUse],
) -> list[OracleUse]:
    """More aspects, for subjects that fail this check and that nothing sees.

    Some who pass it may break them, fewer than those that fail it, as long as another check sees
    each of these. alone: the subjects that no other check sees.
    """
    unseen = {subject for subject in _passing(alone, asks) if check in subject.fails}
    unfair = {*alone, *(subject for subject in subjects if subject.is_right)}
    extra_asks = list[OracleUse]()
    for aspect, group in ((a, g) for a in ORACLES for g in groups[a]):
        broken = _breaking(aspect, group, subjects)
        mistakes = {subject for subject in broken if check not in subject.fails}
        if unseen & broken and not unfair & mistakes and 2 * len(mistakes) < len(broken):
            extra_asks.append(OracleUse(oracle=aspect, calls=(group,)))
            unseen -= broken
    return extra_asks


def _with_meanings(
    asks: Sequence[OracleUse], subjects: Sequence[LabelledProgram]
) -> tuple[OracleUse, ...]:
    """Return the aspects, each with the misconception of all subjects that break it: numbers that
    no mutant gives prove it, too.
    """
    # who breaks an aspect may break those that come after it for the same cause
    labelled_asks, explained = [], set[LabelledProgram]()
    for ask in asks:
        of_calls = [(i,) for group in ask.calls for i in group if ask.oracle != "kind"]
        wrong_kind = set[LabelledProgram]().union(
            *(_breaking("kind", call, subjects) for call in of_calls)
        )
        breaking = set[LabelledProgram]().union(
            *(_breaking(ask.oracle, group, subjects) for group in ask.calls)
        )
        broken = breaking - explained - wrong_kind
        explained |= broken
        names = {subject.id for subject in broken} if ask.oracle in TELLING else set()
        labelled_asks.append(
            ask.model_copy(update={"means": names.pop()}) if len(names) == 1 else ask
        )
    return tuple(labelled_asks)


def _passing(
    subjects: Sequence[LabelledProgram], *asks: Sequence[OracleUse]
) -> list[LabelledProgram]:
    """Return the subjects that break nothing of what these checks ask."""
    pairs = {
        (ask.oracle, group) for check_asks in asks for ask in check_asks for group in ask.calls
    }
    return [subject for subject in subjects if subject.broken.isdisjoint(pairs)]


def choose(
    check: str, groups: Groups, subjects: Sequence[LabelledProgram]
) -> tuple[OracleUse, ...]:
    """Return what the visible check asks; nothing where recordings cannot give the hidden check's
    verdict.
    """
    failing = {subject for subject in subjects if check in subject.fails}
    if not failing:  # whatever nobody lacks
        unbroken = {
            a: tuple(g for g in groups[a] if not _breaking(a, g, subjects)) for a in OF_ANY_CHECK
        }
        return tuple(
            OracleUse(oracle=aspect, calls=calls) for aspect, calls in unbroken.items() if calls
        )
    undetected, wrongly = failing, set[LabelledProgram]()
    asks: list[OracleUse] = []
    for aspect in ORACLES:
        breaking = {group: _breaking(aspect, group, subjects) for group in groups[aspect]}
        fair = {  # who breaks it is no right attempt, and few mutants that pass the hidden check
            group: breakers
            for group, breakers in breaking.items()
            if not any(subject.is_right for subject in breakers)
            and len(breakers - failing - wrongly) * HITS_FOR_A_MISTAKE <= len(breakers & failing)
        }
        broken = set[LabelledProgram]().union(*fair.values())
        mistakes = broken - failing - wrongly
        is_fair = len(broken & failing) > HITS_FOR_A_MISTAKE * len(mistakes)
        # more verdicts become right than wrong
        is_needed = is_fair and len(broken & undetected) > len(mistakes)
        # A check of what an edit must not move also asks what the edit must move.
        is_counterpart = aspect == "moves" and any(ask.oracle == "stays" for ask in asks)
        is_free = (aspect in OF_EVERY_CHECK or is_counterpart) and not mistakes
        if fair and (is_needed or is_free):
            asks.append(OracleUse(oracle=aspect, calls=tuple(fair)))
            undetected, wrongly = undetected - broken, wrongly | mistakes
    return tuple(asks) if len(undetected) <= MISSED_SHARE * len(failing) else ()


def _breaking(
    aspect: Oracle, group: tuple[int, ...], subjects: Sequence[LabelledProgram]
) -> set[LabelledProgram]:
    return {subject for subject in subjects if (aspect, group) in subject.broken}
