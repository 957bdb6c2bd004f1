"""What is told of an attempt that failed hidden checks: what its answers to public calls show, as at home, and what those checks prove."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ..box.connection import AttemptEnded
from ..box.level import Box
from ..box.worker.limits import Limits
from ..box.worker.messages import Call
from ..checks.outcome import CheckOutcome
from ..checks.sanitize import sanitize
from ..checks.transcript import Exchange, target_of
from ..course import Exercise
from ..diagnosis.agree import asks_for_a_gpu, is_comparable
from ..diagnosis.bank import load_bank
from ..diagnosis.diagnosis import AllWords, Diagnosis, named
from ..diagnosis.guards import REFUSES, UNDIVIDED
from ..diagnosis.proofs import can_cause
from ..diagnosis.recording import Recording
from ..result import FunctionResult
from ..submission import AttemptSource
from ..submission.unwritten import UNTOUCHED
from .attempt_runner import AttemptRunner
from .function_results import FINE, Functions, uses
from .memory import Memory
from .public_checks import answer_public_calls

IsRight = Callable[[Exchange], bool]


def ask_public_calls(
    recording: Recording, box: Box, limits: Limits, source: AttemptSource, exercise: Exercise, memory: Memory
) -> Functions | None:
    """Return what the attempt's answers to the public calls show; None where it does not answer them.

    They are put to a process of their own, which has met no hidden input and can put none into a message. So what is told
    of its answers needs no guard.
    """
    for call in recording.calls:
        memory.hold_as_it_is(call)
    attempt = AttemptRunner(box, source, limits, memory=memory)
    try:
        if attempt.load() is not None:
            return None
        return answer_public_calls(recording, attempt, source.source, exercise, load_bank(exercise), is_wrong=True)
    except AttemptEnded:
        return None
    finally:
        attempt.close()


def places_of(
    outcomes: Sequence[CheckOutcome], transcript: Sequence[Exchange], ended: Mapping[str, Call], is_right: IsRight
) -> dict[str, str]:
    """Return the function of each check, by the check's id; "" where it asks several and passed.

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

    return {outcome.id: place(outcome) for outcome in outcomes}


def _failed_in(exchanges: Sequence[Exchange], ended: Call | None, is_right: IsRight) -> str:
    """Return the function at which a check failed: the last that it called, or one that gave this a wrong answer; "" for none."""
    if ended is not None or not exchanges:
        return target_of(ended) if ended is not None else ""
    last = target_of(exchanges[-1].call)
    # Whether it raises can be judged, where numbers cannot.
    judged = [is_comparable(e.call) or (e.reply.raised and not asks_for_a_gpu(e.call)) for e in exchanges]
    each = zip(exchanges, judged, strict=True)
    wrong = [target_of(e.call) for e, is_judged in each if e.reply.mutated or (is_judged and not is_right(e))]
    return wrong[0] if wrong and last not in wrong else last


def with_hidden_checks(
    told: Functions,
    outcomes: Sequence[CheckOutcome],
    places: Mapping[str, str],
    source: str,
    words: AllWords,
    failed_by: Mapping[str, list[frozenset[str]]],
) -> Functions:
    """Return what is told, with what only the hidden checks show.

    A function that fails one of them and passes what is public is wrong. A misconception that a failed check proves by
    itself stands with the others; beside them, where it can not be why the checks fail.
    """
    failed = [o for o in outcomes if o.outcome not in ("passed", "skipped")]
    first: dict[str, CheckOutcome] = {}
    for outcome in failed:
        first.setdefault(places.get(outcome.id, ""), outcome)
    functions: list[FunctionResult] = []
    for each in told.functions:
        if each.name in first and each.state in FINE:
            others = [o.name for o in functions if o.state not in FINE and o.name in uses(source, each.name)]
            each = FunctionResult(
                name=each.name,
                state="waiting" if others else "wrong",
                waits_for=next(iter(others), ""),
                check=first[each.name].title,
                evidence=sanitize(first[each.name].evidence),
            )
        functions.append(each)
    written = {each.name for each in functions if each.state not in ("unwritten", "undefined")}
    proofs = [o for o in failed if places.get(o.id, "") in written]  # a stub does nothing that it should not
    diagnosis = _with_suspects(told.diagnosis, failed, proofs, places, words, failed_by)
    return replace(told, functions=tuple(functions), diagnosis=diagnosis)


def _with_suspects(
    diagnosis: Diagnosis,
    failed: Sequence[CheckOutcome],
    proofs: Sequence[CheckOutcome],
    places: Mapping[str, str],
    words: AllWords,
    failed_by: Mapping[str, list[frozenset[str]]],
) -> Diagnosis:
    """Return the diagnosis with the misconceptions that failed checks prove, but for those that follow from what is named."""
    known = {id_ for each in diagnosis.every for id_ in (each.id, *each.alternatives)}
    if REFUSES in known:
        known.add(UNDIVIDED)  # the same guard, seen from the other side
    follows = {check for each in diagnosis.named for checks in failed_by.get(each.id, ()) for check in checks}
    proven: dict[str, str] = {}
    for outcome in proofs:
        if outcome.suspect and outcome.suspect not in known and outcome.id not in follows:
            proven.setdefault(outcome.suspect, places.get(outcome.id, ""))
    new = tuple(named(words, id_).model_copy(update={"function": place}) for id_, place in proven.items())
    unexplained = {o.id for o in failed if not o.suspect}
    if diagnosis.named or can_cause([*proven], unexplained, {o.id for o in failed}, lambda: failed_by):
        return replace(diagnosis, named=tuple(sorted((*diagnosis.named, *new), key=lambda d: d.id == UNTOUCHED)))
    return replace(diagnosis, also=(*diagnosis.also, *new))
