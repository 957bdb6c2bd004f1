"""Name the misconception that a violated oracle shows.

If all mutants that violate an oracle have one misconception, an attempt that violates it has the
same one, even if no mutant gives its numbers.
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

# Oracles that mutants of several misconceptions violate: for each a misconception, and a test of
# the numbers that identifies it.
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
    """Return for each visible check the misconception that its first violated oracle shows.

    The result is keyed by the last call of the group that violates the oracle. The misconception is
    the one that all violating mutants share, or the one that the numbers show. A check that runs
    last shows nothing if another one fails.
    """
    ids = {mutant.id for mutant in recording.mutants}
    names: dict[int, str] = {}
    for check in sorted(recording.visible, key=lambda c: c.is_last):
        broken = first_broken(groups_of(check, observations), observations)
        if broken is None or (check.is_last and names):
            continue
        ask, calls = broken.ask, [observations[i] for i in broken.calls]
        name = ask.means or _by_numbers(ask.oracle, calls)
        by_count = "" if name else _of_plain_numbers(recording, ask, calls)
        name = name or by_count
        if ask.oracle != "kind" and not all(map(_has_expected_kinds, calls)):
            name = ""
        names[broken.calls[-1]] = name if name in ids else ""
        if by_count:
            names |= {
                i: name
                for (i,) in ask.calls
                if i in observations and is_broken(ask.oracle, [observations[i]])
            }
    return {i: name for i, name in names.items() if name}


def _by_numbers(oracle: Oracle, calls: Sequence[ObservedReply]) -> str:
    """Return the misconception that the numbers of a violation show, or ""."""
    if oracle not in _BY_NUMBERS:
        return ""
    name, is_shown = _BY_NUMBERS[oracle]
    have_numbers = all(e.actual.outputs and e.actual.outputs[0].projections for e in calls)
    return name if have_numbers and is_shown(calls) else ""


def _has_expected_kinds(observation: ObservedReply) -> bool:
    return [o.kind for o in observation.actual.outputs] == [
        o.kind for o in observation.expected.outputs
    ]


def proven_by_plain_numbers(
    recording: FaultDictionary, observations: Mapping[int, ObservedReply]
) -> dict[int, str]:
    """Return the calls with a wrong count, mapped to the only misconception that miscounts there.

    A count is a plain number, so no wrong tensor elsewhere in the file is its cause.
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
    """Return the misconception of all mutants that return wrong plain numbers here.

    Return "" if they have several misconceptions, or if the calls return tensors.
    """
    output_kinds = [output.kind for output in calls[-1].expected.outputs]
    if ask.oracle != "values" or "tensor" in output_kinds:
        return ""
    indices, ids = {i for group in ask.calls for i in group}, set[str]()
    for mutant in recording.mutants:
        for i in indices:
            answer = recording.answer(mutant, i)
            if (
                answer is not None
                and not answer.agrees(recording.expected_reply(i), ("outputs",))
                and [output.kind for output in answer.outputs] == output_kinds
            ):
                ids.add(mutant.id)
                break
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
    """A violated oracle, the group of calls that violates it, and the check's error."""

    ask: OracleUse
    calls: tuple[int, ...]
    error: CheckFailed


Group = tuple[OracleUse, tuple[int, ...]]


def groups_of(check: PublicCheck, calls: Container[int]) -> list[Group]:
    """Return the oracles of a check with each group of calls that has all replies."""
    return [
        (ask, group)
        for ask in check.asks
        for group in ask.calls
        if all(map(calls.__contains__, group))
    ]


def first_broken(
    groups: Iterable[Group], observations: Mapping[int, ObservedReply]
) -> Violation | None:
    """Return the first violated oracle, or None.

    Later oracles may be violated for the same reason.
    """
    for ask, group in groups:
        try:
            compare(ask.oracle, [observations[i] for i in group])
        except CheckFailed as error:
            return Violation(ask, group, error)
    return None
