"""Name the misconceptions that an attempt's replies show, compared with the fault dictionary."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from dataclasses import replace

from ..checks.explain import is_dtype_fault, is_unfinished
from ..submission.source import UNTOUCHED, Source
from .bank import Bank, Diagnosis, named
from .evidence import MUTATED, REFUSES, UNREGISTERED, can_cause, proven_by_exceptions
from .fault_dictionary import BASES, DIRECT, FaultDictionary, Response, wrong_replies
from .fingerprint import has_no_numbers
from .observed_reply import (
    ObservedReply,
    device_error,
    device_misconception,
    is_moved_after_a_call,
    is_of_copies,
    needs_meta_numbers,
)
from .rules import RULES


def diagnose(
    recording: FaultDictionary,
    observations: Mapping[int, ObservedReply],
    source: Source,
    bank: Bank | None = None,
) -> Diagnosis:
    """Name the misconceptions that explain an attempt's replies.

    Args:
        recording: the exercise's fault dictionary.
        observations: the replies, by the index of the recorded call.
        source: the attempt's text; it is empty if it is not at hand.
        bank: the exercise's mutants, of which two can be combined in one. None on a student's
            machine, which has no mutants.
    """
    response = _response(recording, observations, source, bank)
    for rule, when in RULES:
        state = "explained" if response.explanations else "unexplained"
        if when in ("always", state) and (candidates := rule(response)):
            response = replace(response, candidates=(*response.candidates, *candidates))
    return _diagnosis(response)


def _response(
    recording: FaultDictionary,
    observations: Mapping[int, ObservedReply],
    source: Source,
    bank: Bank | None,
) -> Response:
    """Return the response of an attempt, before any rule is applied.

    A call that reaches a function which is not written yet shows nothing about other functions, and
    is set apart. A call is left out if other calls make it redundant.
    """
    unfinished, finished = dict[int, ObservedReply](), dict[int, ObservedReply]()
    for i, observation in observations.items():
        replies = unfinished if _is_unfinished(observation, source) else finished
        replies[i] = observation
    redundant_calls = {
        i for i, observation in finished.items() if _is_redundant(observation, finished.values())
    }
    written = {i: reply for i, reply in finished.items() if i not in redundant_calls}
    compared_calls = recording.facets.keys()
    response = Response(
        recording,
        written=written,
        syndrome=wrong_replies(recording, written),
        calls=compared_calls - redundant_calls - unfinished.keys(),
        source=source,
        bank=bank,
        unfinished=unfinished,
        mutates=any(observation.reply.mutated for observation in observations.values()),
    )
    return replace(response, unmatched_dropout=_unmatched_dropout(response))


def _is_unfinished(observation: ObservedReply, source: Source) -> bool:
    raised = observation.reply.raised
    is_empty = observation.function in source.unwritten_names
    return is_empty or bool(raised and is_unfinished(raised))


def _unmatched_dropout(response: Response) -> Set[int]:
    """Return the wrong calls with dropout at work to which no mutant replies as the attempt does.

    A second mistake may change their numbers, too, and the other calls tell which mistake it is.
    Return none if there are no other wrong calls.
    """
    copies = {i for i, e in response.syndrome.items() if is_of_copies(e.call)}
    if copies == response.syndrome.keys():
        return set()
    for m in response.mutants:
        copies -= {i for i in copies if response.matches(m, i)}
    return copies


def _is_redundant(observation: ObservedReply, observations: Collection[ObservedReply]) -> bool:
    """Return whether a call adds no evidence to the evidence of other calls.

    One case is a module that moves to the meta device after a first call, and leaves a tensor
    behind. The call is redundant if the tensor stays behind without the first call as well, or if
    it is no mask: other calls show the other tensors that a module keeps.

    The other case is a call with meta tensors that raises. It is redundant if it raises because it
    reads their numbers, or if the function raises on most ordinary inputs as well.
    """
    of_function = (peer for peer in observations if peer.function == observation.function)
    if is_moved_after_a_call(observation.call) and device_error(observation):
        moved_before = [peer for peer in of_function if not is_moved_after_a_call(peer.call)]
        return not device_misconception(observation) or any(map(device_error, moved_before))
    if observation.reply.raised is None or not has_no_numbers(observation.expected):
        return False
    if needs_meta_numbers(observation) and not device_error(observation):
        return True
    allowed = (peer for peer in of_function if peer.is_allowed)
    ordinary = [peer for peer in allowed if not has_no_numbers(peer.expected)]
    raising = [peer for peer in ordinary if peer.reply.raised is not None]
    return 2 * len(raising) > len(ordinary)


def _diagnosis(response: Response) -> Diagnosis:
    """Return the misconceptions in order.

    Exceptions come first, because they stop the code; then explanations, then other evidence. A
    function that is not written comes last, because it shows nothing about the functions that are.
    If nothing explains the wrong values, and no evidence can be their cause, the evidence goes to
    `Diagnosis.also`.
    """
    consequences = _consequences(response)
    candidates = tuple(
        candidate
        for candidate in response.candidates
        if candidate.basis not in DIRECT or consequences.isdisjoint(candidate.calls)
    )
    counted = replace(response, candidates=candidates)
    # If mutants explain the whole response, they explain other parameters, too.
    excluded = {"parameters alone"} if response.explanations else set()
    proven = counted.shown_by(*(basis for basis in BASES if basis not in excluded))
    ids = dict.fromkeys(proven.values())
    alternatives = dict[str, tuple[str, ...]]()
    for candidate in response.explanations:
        # If one of several mutants with the same replies is proven, it is that one.
        if ids.keys().isdisjoint(candidate.ids):
            alternatives.setdefault(candidate.id, candidate.alternatives)
    order = [*counted.shown_by("exception", "guard").values()]
    if MUTATED in ids:  # it is named before the gradient that it cuts
        order.append(MUTATED)
    order += [*alternatives, *ids]
    # Weights that the attempt was not given need no explanation of their numbers.
    is_cause = bool(response.explanations or consequences) or _can_cause(response, proven)
    causes, also = (order, []) if is_cause else ([], order)
    words = response.recording.words
    named_ids = dict.fromkeys([*causes, *_unwritten(response)])
    return Diagnosis(
        tuple(named(words, id_, alternatives.get(id_, ())) for id_ in named_ids),
        tuple(named(words, id_) for id_ in dict.fromkeys(also)),
        together=tuple(alternatives) if len(alternatives) > 1 else (),
        answers=response.digest(),
    )


def _consequences(response: Response) -> set[int]:
    """Return the calls in which two dtypes meet because `.to` does not reach some layers.

    Return none unless a candidate says that layers are not registered.
    """
    ids = {*response.shown_by("parameters alone", "parameters").values()}
    if UNREGISTERED not in ids.union(candidate.id for candidate in response.explanations):
        return set()
    calls = set[int]()
    for i in response.shown_by("exception", "guard"):
        raised = response.written[i].reply.raised
        if raised is not None and is_dtype_fault(raised):
            calls.add(i)
    return calls


def _unwritten(response: Response) -> list[str]:
    """Return the misconceptions that replies of functions which are not written show."""
    names = proven_by_exceptions(response.unfinished, response.mutates)
    empty = response.source.unwritten_names
    names |= {i: UNTOUCHED for i, e in response.unfinished.items() if e.function in empty}
    return [names[i] for i in response.unfinished if i in names]


def _can_cause(response: Response, proven: Mapping[int, str]) -> bool:
    """Return whether the evidence can be the cause of all wrong values that it does not show.

    Code behind a guard does not run, so no cause is needed for it.
    """
    names, syndrome = {*proven.values()}, response.syndrome.keys()
    unexplained = syndrome - proven.keys() - response.odd_refusals
    return REFUSES in names or can_cause(
        names, unexplained, syndrome, lambda: _detections(response)
    )


def _detections(response: Response) -> dict[str, list[set[int]]]:
    """Return for each misconception, and each of its mutants, the calls that detect the mutant.

    Calls that the attempt rightly refuses are left out: no code after the refusal runs. If the
    mutant's reply is nondeterministic, the call counts if the attempt is wrong there.
    """
    detections = dict[str, list[set[int]]]()
    informative = [
        i
        for i in response.calls
        if i in response.syndrome or response.recording.expected_reply(i).raised != "refused"
    ]
    for m in response.mutants:
        calls = {
            i
            for i in informative
            if not response.survives(m, i)
            or (i in response.syndrome and response.is_uninformative(m, i))
        }
        detections.setdefault(response.id(m), []).append(calls)
    return detections
