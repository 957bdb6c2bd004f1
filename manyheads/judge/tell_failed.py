"""What hidden checks show of an attempt beside its answers to public calls: where each failed, and what it proves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ..box.worker.messages import Call
from ..checks.outcome import CheckOutcome
from ..checks.sanitize import sanitize
from ..checks.transcript import Exchange, target_of
from ..diagnosis.agree import asks_for_a_gpu, is_comparable
from ..diagnosis.diagnosis import AllWords, Diagnosis, named
from ..diagnosis.guards import REFUSES, UNDIVIDED
from ..diagnosis.proofs import can_cause
from ..result import FunctionResult
from ..submission.unwritten import UNTOUCHED
from .function_results import Findings
from .function_states import FINE, uses

IsRight = Callable[[Exchange], bool]


def with_places(
    outcomes: Sequence[CheckOutcome], transcript: Sequence[Exchange], ended: Mapping[str, Call], is_right: IsRight
) -> list[CheckOutcome]:
    """Return the outcomes, each with its function; "" where it asks several and passed.

    transcript: what the checks asked. ended: the call that ended the process, by the id of the check.
    """
    asked: dict[str, list[Exchange]] = {}
    for exchange in transcript:
        asked.setdefault(exchange.check, []).append(exchange)

    def place(outcome: CheckOutcome) -> str:
        own = asked.get(outcome.id, [])
        if outcome.outcome == "passed":
            targets = {target_of(e.call) for e in own}
            return targets.pop() if len(targets) == 1 else ""
        return outcome.place or _failed_in(own, ended.get(outcome.id), is_right)

    return [replace(outcome, place=place(outcome)) for outcome in outcomes]


def _failed_in(exchanges: Sequence[Exchange], ended: Call | None, is_right: IsRight) -> str:
    """Return the function at which a check failed: the last that it called, or one that gave this a wrong answer; "" for none."""
    if ended is not None or not exchanges:
        return target_of(ended) if ended is not None else ""

    def is_wrong(each: Exchange) -> bool:  # whether it raises can be judged, where numbers cannot
        can_be_judged = is_comparable(each.call) or (each.reply.raised and not asks_for_a_gpu(each.call))
        return bool(each.reply.mutated) or (bool(can_be_judged) and not is_right(each))

    wrong, last = [target_of(e.call) for e in exchanges if is_wrong(e)], target_of(exchanges[-1].call)
    return wrong[0] if wrong and last not in wrong else last


def with_hidden_checks(
    told: Findings,
    outcomes: Sequence[CheckOutcome],
    source: str,
    words: AllWords,
    failed_by: Mapping[str, list[frozenset[str]]],
) -> Findings:
    """Return what is told, with what only the hidden checks show.

    A function that fails one of them and passes what is public is wrong. A misconception that a failed check proves by
    itself stands with the others; beside them, where it can not be why the checks fail.
    """
    failed = [o for o in outcomes if o.outcome not in ("passed", "skipped")]
    first = {outcome.place: outcome for outcome in reversed(failed)}
    functions: dict[str, FunctionResult] = {}
    for each in told.functions:
        if each.name in first and each.state in FINE:
            others = [o.name for o in functions.values() if o.state not in FINE and o.name in uses(source, each.name)]
            each = FunctionResult(
                name=each.name,
                state="waiting" if others else "wrong",
                waits_for=next(iter(others), ""),
                check=first[each.name].title,
                evidence=sanitize(first[each.name].evidence),
            )
        functions[each.name] = each
    # A stub does nothing that it should not.
    written = {name for name, each in functions.items() if each.state not in ("unwritten", "undefined")}
    proven: dict[str, str] = {}
    for outcome in failed:
        if outcome.place in written and _is_news(outcome, told.diagnosis, failed_by):
            proven.setdefault(outcome.suspect, outcome.place)
    new = tuple(named(words, id_).model_copy(update={"function": place}) for id_, place in proven.items())
    diagnosis, unexplained = told.diagnosis, {o.id for o in failed if not o.suspect}
    if diagnosis.named or can_cause([*proven], unexplained, {o.id for o in failed}, lambda: failed_by):
        both = sorted((*diagnosis.named, *new), key=lambda d: d.id == UNTOUCHED)
        diagnosis = replace(diagnosis, named=tuple(both))
    else:
        diagnosis = replace(diagnosis, also=(*diagnosis.also, *new))
    return replace(told, functions=tuple(functions.values()), diagnosis=diagnosis)


def _is_news(outcome: CheckOutcome, diagnosis: Diagnosis, failed_by: Mapping[str, list[frozenset[str]]]) -> bool:
    """Return whether a failed check proves a misconception that does not follow from what is named."""
    known = {id_ for each in diagnosis.every for id_ in (each.id, *each.alternatives)}
    if REFUSES in known:
        known.add(UNDIVIDED)  # the same guard, seen from the other side
    follows = any(outcome.id in checks for each in diagnosis.named for checks in failed_by.get(each.id, ()))
    return bool(outcome.suspect) and outcome.suspect not in known and not follows
