"""Direct evidence: the misconceptions that a reply, an exception or parameters show on their own.

`can_cause` decides whether such a misconception can be the cause of other wrong replies.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import TypeVar

from ..box.worker.messages import Raised, Reply
from ..checks.explain import is_dtype_fault, kind_of
from ..checks.runner import target_of
from ..submission.source import UNTOUCHED
from .fingerprint import ReplyFingerprint
from .observe import ObservedReply, fault_of_device
from .recording import FaultDictionary, RecordedMutant

MUTATED, ROUNDED = "input_mutated", "output_rounded"
MAX_DECIMALS = 4  # a number with more decimals does not count as rounded
MIN_NUMBERS = 12  # so many numbers must be rounded
ROUNDING = 1e-6  # the relative rounding error of a number in float32
UNREGISTERED = "params_not_registered"
# the names of extra parameters, and those of missing parameters
Names = tuple[frozenset[str], frozenset[str]]


def proven_by(raised: Raised | None, mutates: bool) -> str:
    """Return the misconception that an exception proves by itself, or "".

    Args:
        raised: the exception.
        mutates: whether an argument was seen to change. If not, autograd's error about a change in
            place is due to another tensor, and proves nothing about arguments.
    """
    error_kind = kind_of(raised) if raised is not None else None
    name = (error_kind.misconception if error_kind else None) or ""
    return "" if name == MUTATED and not mutates else name


def proven_by_answer(recording: FaultDictionary, index: int, observation: ObservedReply) -> str:
    """Return the id of the misconception that an answer proves by itself, or "".

    The evidence is a changed argument, a tensor on another device, a missing refusal, a module with
    the attributes of a mutant, or layers of other sizes. For a refusal, attributes and sizes, all
    mutants that reply in this way must have one misconception.

    Uses only the oracles that visible checks apply to this call (for a changed argument: to any
    call), and only misconceptions in this exercise's bank.
    """
    oracles, name = recording.aspects[index], ""
    if (
        observation.reply.mutated
        and not observation.expected.mutated
        and any("mutated" in aspects for aspects in recording.aspects)
    ):
        name = MUTATED
    elif "refused" in oracles and _is_no_refusal(observation.expected, observation.actual):
        name = _name_of_all(recording, index, recording.mutants, _is_no_refusal)
    elif (
        "attributes" in oracles
        and observation.actual.raised is None
        and observation.actual.attributes != observation.expected.attributes
    ):
        name = _of_the_same_attributes(recording, index, observation.actual)
    elif "parameters" in oracles and _has_other_sizes(observation.expected, observation.actual):
        name = _name_of_all(recording, index, recording.mutants, _has_other_sizes)
    elif "device" in oracles:
        name = fault_of_device(observation)
    return name if name and any(name == mutant.id for mutant in recording.mutants) else ""


def are_rounded(replies: Iterable[Reply]) -> bool:
    """Return whether all numbers of these answers have few decimals.

    Whole numbers are left out, because they are no evidence.
    """
    count, tensors = 0, (out.tensor for reply in replies for out in reply.outputs)
    for tensor in (
        output.double() for output in tensors if output is not None and not output.is_meta
    ):
        numbers = tensor[tensor.isfinite() & (tensor != tensor.round())] * 10**MAX_DECIMALS
        if not ((numbers - numbers.round()).abs() < 10**MAX_DECIMALS * ROUNDING).all():
            return False
        count += len(numbers)
    return count >= MIN_NUMBERS


def _of_the_same_attributes(
    recording: FaultDictionary, index: int, actual: ReplyFingerprint
) -> str:
    """Return the misconception of all mutants with these attributes that no other function detects.

    Return "" if they have several misconceptions.
    """
    target = target_of(recording.calls[index])
    elsewhere = [i for i in recording.facets if target_of(recording.calls[i]) != target]
    mutants = [m for m in recording.mutants if _has_reference_answers(m, elsewhere)]
    return _name_of_all(
        recording,
        index,
        mutants,
        lambda _, answer: answer.raised is None and answer.attributes == actual.attributes,
    )


def _has_reference_answers(mutant: RecordedMutant, calls: Iterable[int]) -> bool:
    return all(mutant.answers[i] == 0 for i in calls)


def _has_other_sizes(expected: ReplyFingerprint, fingerprint: ReplyFingerprint) -> bool:
    expected_shapes, actual_shapes = expected.parameters, fingerprint.parameters
    return (
        fingerprint.raised is None
        and actual_shapes.keys() == expected_shapes.keys()
        and actual_shapes != expected_shapes
    )


def _is_no_refusal(expected: ReplyFingerprint, fingerprint: ReplyFingerprint) -> bool:
    return expected.raised == "refused" and fingerprint.raised is None


def _name_of_all(
    recording: FaultDictionary,
    index: int,
    mutants: Sequence[RecordedMutant],
    answers_so: Callable[[ReplyFingerprint, ReplyFingerprint], bool],
) -> str:
    """Return the misconception of all mutants that reply to a call in this way.

    Return "" if they have several misconceptions, or if there are no such mutants.

    Args:
        recording: the fault dictionary.
        index: the call.
        mutants: the mutants to look at.
        answers_so: takes the reference's reply and a mutant's, and returns whether it counts.
    """
    expected = recording.expected_reply(index)
    answers = ((mutant.id, recording.answer(mutant, index)) for mutant in mutants)
    names = {id_ for id_, answer in answers if answer is not None and answers_so(expected, answer)}
    return names.pop() if len(names) == 1 else ""


Failure = TypeVar("Failure")  # a check or a call that fails


def can_cause(
    names: Collection[str],
    unexplained: Collection[Failure],
    failures: Set[Failure],
    reached_by: Callable[[], Mapping[str, Sequence[Set[Failure]]]],
) -> bool:
    """Return whether these misconceptions can be the cause of all unexplained failures.

    Mutants of these misconceptions that cause none but the attempt's failures must together cause
    all unexplained ones.

    Args:
        names: ids of proven misconceptions.
        unexplained: failures of the attempt for which there is no candidate.
        failures: all failures of the attempt.
        reached_by: returns for each misconception the failures of each of its mutants, or an empty
            mapping if they are not known: then the result is True. Called only if it is needed.
    """
    if not names or not unexplained:
        return True
    failures_by_name = reached_by()
    reached = set[Failure]()
    for name in names:
        for mutant_failures in failures_by_name.get(name, ()):
            if mutant_failures <= failures:
                reached |= mutant_failures
    return not failures_by_name or reached.issuperset(unexplained)


def learns_more(answers: Iterable[tuple[Reply, Collection[str]]]) -> bool:
    """Return whether the outputs depend on parameters that the reference does not have.

    A gradient that is not zero proves it. Then no mutant need have the same values.

    Args:
        answers: replies, each with the names of the gradients that the reference has.
    """
    return any(
        gradient is not None and bool(gradient.any()) and name not in expected_names
        for reply, expected_names in answers
        for name, gradient in reply.gradients.items()
    )


def proven_by_parameters(
    recording: FaultDictionary, observations: Mapping[int, ObservedReply]
) -> dict[int, str]:
    """Return the calls with other parameters, mapped to the misconception that these prove.

    It is the misconception of all mutants with the same extra and missing parameters in all calls.
    Return none if these mutants have several misconceptions, or if there are no such mutants.
    """
    asks = [ask for check in recording.visible for ask in check.asks if ask.oracle == "parameters"]
    calls = sorted({i for ask in asks for group in ask.calls for i in group})
    if any(i not in observations or observations[i].actual.raised for i in calls):
        return {}
    differences = {
        i: _parameter_difference(recording.expected_reply(i), observations[i].actual) for i in calls
    }
    wrong_calls = [i for i, names in differences.items() if any(names)]

    def has(answer: ReplyFingerprint | None, i: int) -> bool:
        return (
            answer is not None
            and not answer.raised
            and _parameter_difference(recording.expected_reply(i), answer) == differences[i]
        )

    names = set[str]()
    if wrong_calls:
        for mutant in recording.mutants:
            if all(has(recording.answer(mutant, i), i) for i in calls):
                names.add(mutant.id)
        names.discard(UNTOUCHED)  # an attempt that answers is not an untouched stub
    are_fewer = all(missing and not extra for extra, missing in differences.values())
    if wrong_calls and are_fewer and UNREGISTERED in {mutant.id for mutant in recording.mutants}:
        # `.to` does not reach parameters that are not registered: two dtypes meet
        raised = (observation.reply.raised for observation in observations.values())
        names = {UNREGISTERED} if any(r and is_dtype_fault(r) for r in raised) else names
    return dict.fromkeys(wrong_calls, names.pop()) if len(names) == 1 else {}


def without_more(
    observations: Mapping[int, ObservedReply], calls: Collection[int]
) -> dict[int, ObservedReply]:
    """Return the replies without the extra parameters, or none if a parameter is missing.

    Calls set extra parameters to zero, so the values show what else is wrong.

    Args:
        observations: the replies, by call.
        calls: the calls in which parameters differ. If there are none, return none.
    """
    if not calls or any(
        observation.expected.parameters.keys() - observation.actual.parameters
        for observation in observations.values()
    ):
        return {}
    fewer = dict[int, ObservedReply]()
    for i, observation in observations.items():
        gradients = {
            name: g
            for name, g in observation.actual.gradients.items()
            if name in observation.expected.gradients
        }
        parameters = {
            name: observation.actual.parameters[name] for name in observation.expected.parameters
        }
        fewer[i] = replace(
            observation,
            actual=replace(observation.actual, gradients=gradients, parameters=parameters),
        )
    return fewer


def _parameter_difference(expected: ReplyFingerprint, fingerprint: ReplyFingerprint) -> Names:
    expected_names, actual_names = expected.parameters.keys(), fingerprint.parameters.keys()
    return frozenset(actual_names - expected_names), frozenset(expected_names - actual_names)
