"""What a broken aspect of a check means: where all mutants that break it have one misconception, so
has an attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from ..checks.hidden_check import CheckFailed
from .aspects import compare, is_broken, pairs_of
from .metamorphic import Pair, fills_with_a_number, is_dropped_at_another_rate, leaks_a_share
from .observe import ObservedReply
from .recording import FaultDictionary, Oracle, OracleUse, PublicCheck

# What the numbers can tell of a broken aspect that mutants of several misconceptions break.
_BY_NUMBERS: Mapping[Oracle, tuple[str, Callable[[Sequence[ObservedReply]], bool]]] = {
    "dropped": ("dropout_rate_fixed", lambda calls: is_dropped_at_another_rate(pairs_of(calls))),
    "zeros": ("mask_weak_fill", lambda calls: leaks_a_share(pairs_of(calls))),
    "values": (
        "mask_weak_fill",
        lambda calls: fills_with_a_number(pairs_of(calls)) or fills_with_a_number(_added(calls)),
    ),
}


def proven_by_aspect(
    recording: FaultDictionary, observations: Mapping[int, ObservedReply]
) -> dict[int, str]:
    """By the number of a call, the last of those that break the first aspect of a check.

    The misconception that the aspect means, or its numbers tell. Of a check that is asked last
    nothing is said where another is broken.
    """
    ids = {mutant.id for mutant in recording.mutants}
    names: dict[int, str] = {}
    for check in sorted(recording.visible, key=lambda c: c.is_last):
        broken = first_broken(groups_of(check, observations), observations)
        if broken is None or (check.is_last and names):
            continue
        ask, calls = broken.ask, [observations[i] for i in broken.calls]
        name, tells = _BY_NUMBERS.get(ask.oracle, ("", bool))
        name = ask.means or (
            name
            if all(e.actual.outputs and e.actual.outputs[0].projections for e in calls)
            and tells(calls)
            else ""
        )
        of_numbers = "" if name else _of_plain_numbers(recording, ask, calls)
        name = name or of_numbers
        of_another_kind = any(
            [o.kind for o in e.actual.outputs] != [o.kind for o in e.expected.outputs]
            for e in calls
        )
        if of_another_kind and ask.oracle != "kind":
            name = ""
        names[broken.calls[-1]] = name if name in ids else ""
        if of_numbers:
            names |= {
                i: name
                for (i,) in ask.calls
                if i in observations and is_broken(ask.oracle, [observations[i]])
            }
    return {i: name for i, name in names.items() if name}


def proven_by_plain_numbers(
    recording: FaultDictionary, observations: Mapping[int, ObservedReply]
) -> dict[int, str]:
    """By the number of a call, the misconception of a wrong count, where no other misconception
    counts wrongly there.

    A count is a plain number, so no fault of a tensor elsewhere in the file is its cause.
    """
    names: dict[int, str] = {}
    for check in recording.visible:
        for ask in (ask for ask in check.asks if ask.oracle == "values"):
            calls = [
                i
                for group in ask.calls
                for i in group
                if i in observations and is_broken(ask.oracle, [observations[i]])
            ]
            name = (
                _of_plain_numbers(recording, ask, [observations[i] for i in calls]) if calls else ""
            )
            if name:
                names |= dict.fromkeys(calls, name)
    return names


def _of_plain_numbers(
    recording: FaultDictionary, ask: OracleUse, calls: Sequence[ObservedReply]
) -> str:
    """Return the misconception of all mutants that give other plain numbers here, "" where there
    are several, or tensors.
    """
    output_kinds = [output.kind for output in calls[-1].expected.outputs]
    if ask.oracle != "values" or "tensor" in output_kinds:
        return ""
    indices = {i for group in ask.calls for i in group}
    ids = set[str]()
    for mutant in recording.mutants:
        answers = ((recording.expected_reply(i), recording.answer(mutant, i)) for i in indices)
        wrong_answers = (
            answer
            for expected, answer in answers
            if answer is not None and not answer.agrees(expected, ("outputs",))
        )
        if any(
            [output.kind for output in answer.outputs] == output_kinds for answer in wrong_answers
        ):
            ids.add(mutant.id)
    return ids.pop() if len(ids) == 1 else ""


def _added(calls: Sequence[ObservedReply]) -> list[Pair]:
    return [
        (expected - argument, actual - argument)
        for call in calls
        for expected, actual in pairs_of([call])
        if isinstance(argument := next(iter(call.call.args), None), Tensor)
        and argument.shape == expected.shape == actual.shape
    ]


@dataclass(frozen=True)
class Violation:
    """An aspect that is broken, in these calls. error: what a check says of it."""

    ask: OracleUse
    calls: tuple[int, ...]
    error: CheckFailed


Group = tuple[OracleUse, tuple[int, ...]]


def groups_of(check: PublicCheck, calls: Container[int]) -> list[Group]:
    """Return what a check asks of calls that were seen."""
    return [
        (ask, group) for ask in check.asks for group in ask.calls if all(i in calls for i in group)
    ]


def first_broken(
    groups: Iterable[Group], observations: Mapping[int, ObservedReply]
) -> Violation | None:
    """Return the first aspect that is broken: who breaks it may break those that come after it for
    the same cause.
    """
    for ask, group in groups:
        try:
            compare(ask.oracle, [observations[i] for i in group])
        except CheckFailed as error:
            return Violation(ask, group, error)
    return None
