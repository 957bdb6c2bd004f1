"""The verdict on one attempt, function by function: where each check failed, and where each misconception was found."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from ..box.worker.messages import Call
from ..checks.explain import says_unwritten
from ..checks.implementation import LocalRunner
from ..checks.local import Replays
from ..checks.outcome import CheckOutcome
from ..checks.transcript import Exchange, target_of
from ..diagnosis import Bank
from ..diagnosis.agree import agree
from ..diagnosis.diagnosis import NOTHING, Diagnosis
from ..result import FunctionResult
from .function_states import (
    IsRight,
    Seen,
    asked_alone,
    failed_in,
    function_results,
    place_to_tell,
    seen_by_checks,
    written_and_wrong,
)
from .locate import proven_in, ways_of, with_functions
from .other_functions import Rest, function_that_fails
from .require_answer import Withdrawn

ChecksFailedBy = Callable[[], Mapping[str, Sequence[Set[str]]]]


@dataclass(frozen=True)
class Conversation:
    """What an attempt was asked.

    ended: the call that ended the process, by the id of the check.
    rest: what was asked after a check had stopped at another function; `asked_later` holds those calls and their replies.
    """

    transcript: Sequence[Exchange]
    ended: Mapping[str, Call]
    source: str
    rest: Rest = ()
    asked_later: Sequence[Exchange] = ()


@dataclass(frozen=True)
class ByFunction:
    """places: the function of each check, by the check's id; "" where it asks several and passed."""

    functions: tuple[FunctionResult, ...] = ()
    diagnosis: Diagnosis = NOTHING
    places: Mapping[str, str] = field(default_factory=dict)


def by_function(
    bank: Bank,
    reference: LocalRunner,
    replays: Replays,
    outcomes: Sequence[CheckOutcome],
    diagnosis: Diagnosis,
    conversation: Conversation,
    checks_failed_by: ChecksFailedBy = dict,
) -> ByFunction:
    """Return what is known of each function that the checks ask.

    checks_failed_by: for each misconception the checks that each of its mutants fails; empty if that is not known.
    """

    def is_right(exchange: Exchange) -> bool:
        return agree(exchange.reply, reference.execute(exchange.call))

    places = _places(outcomes, conversation, is_right)
    every = [*conversation.transcript, *conversation.asked_later]
    targets = {*(target_of(e.call) for e in every), *map(target_of, conversation.ended.values())}
    names = [name for name in reference.namespace if name in targets]  # in the order of their definitions
    seen = seen_by_checks(names, outcomes, places, every, conversation.rest)
    wrong = written_and_wrong(seen, conversation.source)
    ways = ways_of(bank, reference, replays, every if len(wrong) > 1 else [], is_right)
    proven = proven_in([*((places.get(o.id, ""), o) for o in outcomes), *conversation.rest])
    placed = with_functions(diagnosis, wrong, conversation.source, proven, ways, bank.texts)
    seen = [_with_what_shows(function, outcomes, places, placed, checks_failed_by) for function in seen]
    seen = [replace(each, arguments=_arguments(reference.namespace.get(each.name))) for each in seen]
    return ByFunction(function_results(seen, conversation.source, {d.function for d in placed.every}), placed, places)


def _arguments(function: object) -> tuple[str, ...]:
    """Return the names of a function's arguments; of anything else none."""
    return tuple(inspect.signature(function).parameters) if inspect.isfunction(function) else ()


def _with_what_shows(
    seen: Seen,
    outcomes: Sequence[CheckOutcome],
    places: Mapping[str, str],
    diagnosis: Diagnosis,
    checks_failed_by: ChecksFailedBy,
) -> Seen:
    """Return the same, with the check to tell, if it fails several and there is a name for it."""
    failed = [o for o in outcomes if o.outcome not in ("passed", "skipped") and places.get(o.id) == seen.name]
    named = [d.id for d in diagnosis.named if seen.name in (d.function, *d.also_in)]
    if len(failed) < 2 or not named:
        return seen
    told = to_tell(failed, {name: frozenset[str]().union(*checks_failed_by().get(name, ())) for name in named})
    return seen.told(told.title, told.evidence, told.raised)


def to_tell(failed: Sequence[CheckOutcome], reached: Mapping[str, Set[str]]) -> CheckOutcome:
    """Return a check that shows a function's first misconception; else one that shows none of the others; else the first that fails.

    Args:
        failed: in the order of their layers; the first stays where it ended the process.
        reached: for each misconception, in their order, the checks that some mutant of it fails.
    """
    if failed[0].outcome in ("timeout", "crashed"):
        return failed[0]

    def place(outcome: CheckOutcome) -> tuple[bool, int]:
        told = place_to_tell([*reached], lambda name: name == outcome.suspect or outcome.id in reached[name])
        return says_unwritten(outcome.raised), told  # of a method: that is no news

    return min(failed, key=place)


def _places(outcomes: Sequence[CheckOutcome], conversation: Conversation, is_right: IsRight) -> dict[str, str]:
    exchanges: dict[str, list[Exchange]] = {}
    for exchange in conversation.transcript:
        exchanges.setdefault(exchange.check, []).append(exchange)

    def place(outcome: CheckOutcome) -> str:
        asked, ended = exchanges.get(outcome.id, []), conversation.ended.get(outcome.id)
        if outcome.outcome == "passed":
            return asked_alone(asked)
        found = outcome.place if isinstance(outcome, Withdrawn) else failed_in(asked, ended, is_right)
        return function_that_fails(outcome, found, conversation.rest)

    return {outcome.id: place(outcome) for outcome in outcomes}
