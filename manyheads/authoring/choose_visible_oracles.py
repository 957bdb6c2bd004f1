"""Choose the oracles of each visible check, so that `course check` agrees with the hidden check.

The choice is learned from programs with known verdicts: right attempts pass every check, and the
kill matrix records which checks each mutant fails. A visible check uses an oracle if mutants that
fail the hidden check violate it. It does not use the oracle on a call if a right attempt violates
it there, or more than a few mutants that pass the hidden check.

If a check gets no oracles this way, it is tried last: it then judges only attempts that pass all
other visible checks. Dropout needs this, because a fault dictionary cannot show wrong dropout in an
attempt with wrong values. If even that fails, for example because the hidden check draws random
numbers or needs data that the dictionary does not hold, there is no visible check.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import combinations

from torch import Tensor

from ..diagnosis.fault_dictionary import ORACLES, Oracle, OracleUse
from ..diagnosis.metamorphic_relations import is_difference, relation_applies
from ..diagnosis.observed_reply import Expected, ObservedReply, first_of
from ..diagnosis.oracles import OF_PAIRS, is_violated

OF_SEVERAL: tuple[Oracle, ...] = (*OF_PAIRS, "difference", "dropped")
OF_COPIES: tuple[Oracle, ...] = ("left", "struck")
# used by every visible check, because no hidden check passes without answers
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
)  # a violation may imply one misconception; wrong numbers, in contrast, have many causes
# the oracles of a check that no mutant fails
OF_ANY_CHECK: tuple[Oracle, ...] = (*OF_EVERY_CHECK, "values")
# A check is tried last only if it then detects more than this many times the subjects that it
# detects otherwise, among those that no other check detects.
MORE_IF_LAST = 2
HITS_FOR_A_MISTAKE = 5  # mutants that an oracle must fail rightly for each that it fails wrongly
# The largest share of the mutants failing the hidden check that the visible one may miss.
MISSED_SHARE = 0.15

CallGroup = tuple[int, ...]  # the indices of the recorded calls that an oracle looks at together
Groups = Mapping[Oracle, Sequence[CallGroup]]
# the oracles that a program violates, each with the group of calls
ViolatedOracles = frozenset[tuple[Oracle, CallGroup]]


@dataclass(frozen=True, eq=False)
class LabelledProgram:
    """Trusted code whose verdicts are known. Equality is identity.

    Attributes:
        fails: The ids of the hidden checks that it fails.
        broken: The oracles that it violates.
        id: Its misconception, or "" for a right attempt or one that no mutant stands for.
        is_right: Whether it is a right attempt.
    """

    fails: frozenset[str]
    broken: ViolatedOracles
    id: str = ""
    is_right: bool = False


def groups_of(
    calls: Sequence[int],
    expected: Sequence[Expected],
    copies: Set[int] = frozenset(),
    edits: Set[tuple[int, int]] = frozenset(),
) -> Groups:
    """Return for each oracle the groups of calls to which it applies.

    A group is one call for most oracles. For others it is two calls with related outputs, or two
    calls and a third one that returns the difference between their outputs.

    Args:
        calls: The indices of one check's calls.
        expected: The outputs of the reference for each recorded call.
        copies: The calls on many copies of one input, for which only the extremes are recorded.
        edits: Pairs of calls that differ by an edit of one argument. The edit may change every
            number of the output.
    """
    outputs = {i: answer.double() for i in calls if (answer := first_of(expected[i])) is not None}
    answers = {
        i: answer
        for i, answer in outputs.items()
        if answer.dim() > 0 and bool(answer.isfinite().all())
    }
    comparable = {i: list(map(_comparable, expected[i])) for i in answers}
    related = [
        (a, b) for a, b in combinations(answers, 2) if _are_related(comparable[a], comparable[b])
    ]
    single = [(i,) for i in calls]
    groups: dict[Oracle, Sequence[CallGroup]] = dict.fromkeys(ORACLES, single)
    groups |= dict.fromkeys(OF_PAIRS, related)
    groups["moves"] = [
        pair for pair in combinations(answers, 2) if pair in edits or pair in related
    ]
    pairs = [(a, b) for a, b in combinations(outputs, 2) if outputs[a].dim() and outputs[b].dim()]
    numbers = [i for i, answer in outputs.items() if not answer.dim()]
    # Two calls, and a third one that returns the largest difference between their outputs.
    groups["difference"] = [
        (a, b, n)
        for n in numbers
        for a, b in pairs
        if is_difference(outputs[a], outputs[b], outputs[n])
    ]
    groups["dropped"] = [
        (a, c)
        for a in answers
        for c in copies & answers.keys()
        if a not in copies and answers[a].shape[1:] == answers[c].shape[1:]
    ]
    of_copies = [(c,) for c in sorted(copies & answers.keys())]
    groups |= dict.fromkeys(OF_COPIES, of_copies)
    return groups


def _comparable(output: Tensor | None) -> Tensor | None:
    """Return an output in float64, or None if it has no axes or is not finite everywhere."""
    if output is None or not output.dim() or not bool(output.isfinite().all()):
        return None
    return output.double()


def _are_related(first: Sequence[Tensor | None], second: Sequence[Tensor | None]) -> bool:
    """Return whether an output of one call is related to the same output of the other call."""
    outputs = zip(first, second, strict=False)
    return any(relation_applies(a, b) for a, b in outputs if a is not None and b is not None)


def groups_within(groups: Groups, calls: Sequence[int]) -> Groups:
    """Return the groups that consist of these calls, and all groups of oracles about several calls.

    An oracle about several calls compares outputs with one another, so they may differ from the
    reference's. The oracle `kind` also applies to the calls that return a difference.
    """
    call_set = set(calls)
    of_kind = {*call_set, *(number for *_, number in groups["difference"])}
    selected = dict[Oracle, Sequence[CallGroup]]()
    for oracle, call_groups in groups.items():
        allowed = of_kind if oracle == "kind" else call_set
        is_relation = oracle in OF_SEVERAL
        selected[oracle] = [g for g in call_groups if is_relation or allowed.issuperset(g)]
    return selected


def oracles_violated_by(
    compared: Sequence[ObservedReply], groups: Sequence[Groups]
) -> ViolatedOracles:
    """Return the oracles that a subject violates, each with the group of calls.

    Args:
        compared: The subject's reply to each recorded call, with the expected one.
        groups: The groups of each check.
    """
    differs = {
        i for i, observed in enumerate(compared) if not observed.actual.is_same(observed.expected)
    }
    pairs = {
        (oracle, group)
        for check_groups in groups
        for oracle, call_groups in check_groups.items()
        for group in call_groups
    }
    # A fingerprint holds no device and only rounded values, so it cannot rule out a violation.
    unrecorded = ("device", "values")
    violated = set[tuple[Oracle, CallGroup]]()
    for oracle, group in pairs:
        may_be_violated = oracle in unrecorded or not differs.isdisjoint(group)
        if may_be_violated and is_violated(oracle, [compared[i] for i in group]):
            violated.add((oracle, group))
    return frozenset(violated)


@dataclass(frozen=True)
class Chosen:
    """The oracles that one visible check uses.

    Attributes:
        asks: The oracles with their groups of calls. If empty, there is no visible check.
        is_last: Whether the check is tried after the others, and only if the attempt passes those.
    """

    asks: tuple[OracleUse, ...] = ()
    is_last: bool = False


def choose_all(
    groups: Mapping[str, Groups], subjects: Sequence[LabelledProgram]
) -> dict[str, Chosen]:
    """Return the oracles of each visible check, by its id.

    1. Each check gets oracles on its own, by `choose`, without the oracles about copies.
    2. Its oracles are chosen again for the subjects that no other check detects. If the new choice
       detects many more of these, it is used, and the check is tried last.
    3. Checks that are not last get further oracles for subjects that no check detects.
    4. An oracle that only one misconception violates is labelled with this misconception.

    Args:
        groups: For each check, the groups of calls to which each oracle applies.
        subjects: Programs with known verdicts.
    """
    no_copies: Groups = dict.fromkeys(OF_COPIES, ())
    chosen = {
        check: Chosen(choose(check, {**check_groups, **no_copies}, subjects))
        for check, check_groups in groups.items()
    }
    _choose_again_and_run_last(chosen, groups, subjects)
    for check, check_groups in groups.items():
        oracle_uses_of_others = [
            choice.asks for id_, choice in chosen.items() if id_ != check and not choice.is_last
        ]
        if (asks := chosen[check].asks) and not chosen[check].is_last:
            extra_oracle_uses = _asked_of_unseen(
                check,
                check_groups,
                subjects,
                _passing_subjects(subjects, *oracle_uses_of_others),
                asks,
            )
            chosen[check] = Chosen((*asks, *extra_oracle_uses))
    alone = _passing_subjects(
        subjects, *(choice.asks for choice in chosen.values() if not choice.is_last)
    )
    labelled = dict[str, Chosen]()
    for check, choice in chosen.items():
        # A check that is tried last judges no subject that another check detects.
        judged = [s for s in alone if s.fails == {check}] if choice.is_last else subjects
        labelled[check] = replace(choice, asks=_with_meanings(choice.asks, judged))
    return labelled


def _choose_again_and_run_last(
    chosen: dict[str, Chosen], groups: Mapping[str, Groups], subjects: Sequence[LabelledProgram]
) -> None:
    """Choose each check's oracles again, on the subjects that no other visible check detects.

    If the new choice detects many more of these subjects, it is used and the check runs last. The
    first choice counts verdicts on all subjects. A verdict may be right for the wrong reason: the
    subject fails because of another fault. The first choice also omits the oracles about copies
    (`OF_COPIES`). They see little of dropout, and a check that used only them would miss dropout in
    another place.
    """
    for check, check_groups in groups.items():
        alone = _passing_subjects(
            subjects, *(choice.asks for id_, choice in chosen.items() if id_ != check)
        )
        failing = [subject for subject in alone if check in subject.fails]
        detected = len(failing) - len(_passing_subjects(failing, chosen[check].asks))
        asks = choose(check, check_groups, alone) if len(failing) >= MORE_IF_LAST * detected else ()
        if len(failing) - len(_passing_subjects(failing, asks)) > MORE_IF_LAST * detected:
            chosen[check] = Chosen(asks, is_last=True)


def _asked_of_unseen(
    check: str,
    groups: Groups,
    subjects: Sequence[LabelledProgram],
    alone: Sequence[LabelledProgram],
    asks: Sequence[OracleUse],
) -> list[OracleUse]:
    """Return more oracles, which detect subjects that fail this check and that no check detects.

    Subjects that pass the check may violate such an oracle, if they are fewer than the subjects
    that fail it, and if another visible check detects each one.

    Args:
        check: The id of the check.
        groups: The groups of its calls.
        subjects: All subjects.
        alone: The subjects that no other visible check detects.
        asks: The oracles that the check uses already.
    """
    unseen = {subject for subject in _passing_subjects(alone, asks) if check in subject.fails}
    unfair = {*alone, *(subject for subject in subjects if subject.is_right)}
    extra_oracle_uses = list[OracleUse]()
    for oracle, group in ((a, g) for a in ORACLES for g in groups[a]):
        broken = _violating_subjects(oracle, [group], subjects)
        mistakes = {subject for subject in broken if check not in subject.fails}
        if unseen & broken and not unfair & mistakes and 2 * len(mistakes) < len(broken):
            extra_oracle_uses.append(OracleUse(oracle=oracle, calls=(group,)))
            unseen -= broken
    return extra_oracle_uses


def _with_meanings(
    asks: Sequence[OracleUse], subjects: Sequence[LabelledProgram]
) -> tuple[OracleUse, ...]:
    """Return the oracles, each labelled with a misconception if only this one violates it.

    Only oracles in TELLING get a label. A violation then identifies the mistake even if the
    attempt's numbers match no mutant. Subjects that return the wrong kind of output do not count,
    except for the oracle `kind`.
    """
    # A subject counts for the first oracle that it violates. It may violate later ones for the same
    # reason.
    labelled_oracle_uses, explained = [], set[LabelledProgram]()
    for ask in asks:
        of_calls = [(i,) for group in ask.calls for i in group if ask.oracle != "kind"]
        wrong_kind = _violating_subjects("kind", of_calls, subjects)
        broken = _violating_subjects(ask.oracle, ask.calls, subjects) - explained - wrong_kind
        explained |= broken
        names = {subject.id for subject in broken}
        if ask.oracle in TELLING and len(names) == 1:
            ask = ask.model_copy(update={"means": names.pop()})
        labelled_oracle_uses.append(ask)
    return tuple(labelled_oracle_uses)


def _passing_subjects(
    subjects: Sequence[LabelledProgram], *asks: Sequence[OracleUse]
) -> list[LabelledProgram]:
    """Return the subjects that violate no oracle of these checks."""
    pairs = {
        (ask.oracle, group)
        for oracle_uses_of_check in asks
        for ask in oracle_uses_of_check
        for group in ask.calls
    }
    return [subject for subject in subjects if subject.broken.isdisjoint(pairs)]


def choose(
    check: str, groups: Groups, subjects: Sequence[LabelledProgram]
) -> tuple[OracleUse, ...]:
    """Return the oracles of a visible check, or () if they miss too many failing subjects.

    Oracles are tried in a fixed order. A subject that passes the hidden check and violates a new
    oracle is a mistake of this oracle. An oracle is used if it detects more subjects that were
    undetected than it makes mistakes, and more than HITS_FOR_A_MISTAKE failing subjects for each
    mistake. The oracles in OF_EVERY_CHECK are used whenever they make no mistake. If no subject
    fails the hidden check, the oracles in OF_ANY_CHECK are used, on each group of calls where no
    subject violates them.

    Args:
        check: The id of the hidden check.
        groups: The groups of its calls.
        subjects: Programs with known verdicts.
    """
    failing = {subject for subject in subjects if check in subject.fails}
    asks: list[OracleUse] = []
    if not failing:  # use the general oracles on each group where no subject violates them
        for oracle in OF_ANY_CHECK:
            calls = tuple(
                group
                for group in groups[oracle]
                if not _violating_subjects(oracle, [group], subjects)
            )
            if calls:
                asks.append(OracleUse(oracle=oracle, calls=calls))
        return tuple(asks)
    undetected, wrongly = failing, set[LabelledProgram]()
    for oracle in ORACLES:
        fair = tuple(
            group
            for group in groups[oracle]
            if _blames_few(_violating_subjects(oracle, [group], subjects), failing, wrongly)
        )
        broken = _violating_subjects(oracle, fair, subjects)
        mistakes = broken - failing - wrongly
        is_fair = len(broken & failing) > HITS_FOR_A_MISTAKE * len(mistakes)
        # Such an oracle corrects more verdicts than it spoils.
        is_needed = is_fair and len(broken & undetected) > len(mistakes)
        # A check of the numbers that an edit must not change also checks those it must change.
        is_counterpart = oracle == "moves" and any(ask.oracle == "stays" for ask in asks)
        is_free = (oracle in OF_EVERY_CHECK or is_counterpart) and not mistakes
        if fair and (is_needed or is_free):
            asks.append(OracleUse(oracle=oracle, calls=fair))
            undetected, wrongly = undetected - broken, wrongly | mistakes
    return tuple(asks) if len(undetected) <= MISSED_SHARE * len(failing) else ()


def _blames_few(
    breakers: set[LabelledProgram], failing: set[LabelledProgram], wrongly: set[LabelledProgram]
) -> bool:
    """Return whether no violator is a right attempt, and nearly all fail the hidden check.

    Args:
        breakers: The subjects that violate an oracle on one group of calls.
        failing: The subjects that fail the hidden check.
        wrongly: The subjects that pass it, and violate an oracle that was chosen before.
    """
    if any(subject.is_right for subject in breakers):
        return False
    return len(breakers - failing - wrongly) * HITS_FOR_A_MISTAKE <= len(breakers & failing)


def _violating_subjects(
    oracle: Oracle, groups: Sequence[CallGroup], subjects: Sequence[LabelledProgram]
) -> set[LabelledProgram]:
    """Return the subjects that violate an oracle on any of these groups of calls."""
    violations = {(oracle, group) for group in groups}
    return {subject for subject in subjects if not subject.broken.isdisjoint(violations)}
