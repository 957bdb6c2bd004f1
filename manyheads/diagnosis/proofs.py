"""What an answer, an exception or parameters prove by themselves, and whether that can be why
something else is wrong.
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
DECIMALS, FEWEST = 4, 12  # of rounded numbers at most; numbers that show it
ROUNDING = 1e-6  # of a number in float32
UNREGISTERED = "params_not_registered"
# of parameters that are too many, and of those that are missing
Names = tuple[frozenset[str], frozenset[str]]


def proven_by(raised: Raised | None, mutates: bool) -> str:
    """Return the misconception that an exception proves by itself, or "".

    mutates: whether an argument was seen to change. Autograd's complaint of a change in place may
        be of another tensor.
    """
    error_kind = kind_of(raised) if raised is not None else None
    name = (error_kind.misconception if error_kind else None) or ""
    return "" if name == MUTATED and not mutates else name


def proven_by_answer(recording: FaultDictionary, index: int, observation: ObservedReply) -> str:
    """Return the id of the misconception that an answer proves by itself, or "".

    It is proved by an argument that was changed, a tensor of another device, a refusal that did not
    come, a module with the attributes of a mutant, or layers of other sizes. Only what a visible
    check asks of this call is looked at; of arguments, what one asks of any call. Only what mutants
    of the exercise stand for is named. For a refusal, attributes and sizes all mutants that answer
    so must have one name.
    """
    of_this, name = recording.aspects[index], ""
    if (
        observation.reply.mutated
        and not observation.expected.mutated
        and any("mutated" in aspects for aspects in recording.aspects)
    ):
        name = MUTATED
    elif "refused" in of_this and _is_no_refusal(observation.expected, observation.actual):
        name = _name_of_all(recording, index, recording.mutants, _is_no_refusal)
    elif (
        "attributes" in of_this
        and observation.actual.raised is None
        and observation.actual.attributes != observation.expected.attributes
    ):
        name = _of_the_same_attributes(recording, index, observation.actual)
    elif "parameters" in of_this and _has_other_sizes(observation.expected, observation.actual):
        name = _name_of_all(recording, index, recording.mutants, _has_other_sizes)
    elif "device" in of_this:
        name = fault_of_device(observation)
    return name if name and any(name == mutant.id for mutant in recording.mutants) else ""


def are_rounded(replies: Iterable[Reply]) -> bool:
    """Return whether all numbers of these answers have few decimals.

    Those that are whole say nothing.
    """
    count, tensors = 0, (out.tensor for reply in replies for out in reply.outputs)
    for tensor in (
        output.double() for output in tensors if output is not None and not output.is_meta
    ):
        numbers = tensor[tensor.isfinite() & (tensor != tensor.round())] * 10**DECIMALS
        if not ((numbers - numbers.round()).abs() < 10**DECIMALS * ROUNDING).all():
            return False
        count += len(numbers)
    return count >= FEWEST


def _of_the_same_attributes(
    recording: FaultDictionary, index: int, actual: ReplyFingerprint
) -> str:
    """Return the misconception of all mutants with these attributes whose faults are nowhere
    else.
    """
    target = target_of(recording.calls[index])
    elsewhere = [i for i in recording.facets if target_of(recording.calls[i]) != target]
    mutants = [m for m in recording.mutants if all(m.answers[i] == 0 for i in elsewhere)]
    return _name_of_all(
        recording,
        index,
        mutants,
        lambda _, answer: answer.raised is None and answer.attributes == actual.attributes,
    )


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
    """Return the misconception of all those of the mutants that answer a call in this way; "" where
    there are several, or none.
    """
    expected = recording.expected_reply(index)
    answers = ((mutant.id, recording.answer(mutant, index)) for mutant in mutants)
    names = {id_ for id_, answer in answers if answer is not None and answers_so(expected, answer)}
    return names.pop() if len(names) == 1 else ""


Place = TypeVar("Place")  # where something is wrong: a check, or a call


def can_cause(
    names: Collection[str],
    unexplained: Collection[Place],
    failures: Set[Place],
    reached_by: Callable[[], Mapping[str, Sequence[Set[Place]]]],
) -> bool:
    """Return whether mutants of these misconceptions together go wrong in all unexplained places,
    and nowhere else.

    Args:
        names: ids of misconceptions that are proved.
        unexplained: where the attempt is wrong, and no mutant answers as it does.
        failures: all places where the attempt is wrong.
        reached_by: for each misconception where each of its mutants goes wrong; nothing at all if
            that is not known, and then this is True. Called only if it is needed.
    """
    if not names or not unexplained:
        return True
    places_by_name = reached_by()
    reached = {
        location
        for name in names
        for places in places_by_name.get(name, ())
        if places <= failures
        for location in places
    }
    return not places_by_name or reached.issuperset(unexplained)


def learns_more(answers: Iterable[tuple[Reply, Collection[str]]]) -> bool:
    """Return whether the outputs depend on parameters that the reference does not have: then no
    mutant need have the same values.

    A gradient that is not zero proves it. answers: each with the names of the gradients that the
    reference has.
    """
    return any(
        gradient is not None and bool(gradient.any()) and name not in expected_names
        for reply, expected_names in answers
        for name, gradient in reply.gradients.items()
    )


def proven_by_parameters(
    recording: FaultDictionary, observations: Mapping[int, ObservedReply]
) -> dict[int, str]:
    """By the number of each call that is asked for its parameters, and has others.

    The misconception of all mutants that have those in the same calls. Nothing where there are
    several such misconceptions, or none.
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

    alike = (
        mutant.id
        for mutant in recording.mutants
        if all(has(recording.answer(mutant, i), i) for i in calls)
    )
    names = (
        {*alike} - {UNTOUCHED} if wrong_calls else set[str]()
    )  # who answers has written something
    are_fewer = all(missing and not extra for extra, missing in differences.values())
    if wrong_calls and are_fewer and UNREGISTERED in {mutant.id for mutant in recording.mutants}:
        # no `.to` reaches them: then two dtypes meet
        raised = (observation.reply.raised for observation in observations.values())
        names = {UNREGISTERED} if any(r and is_dtype_fault(r) for r in raised) else names
    return dict.fromkeys(wrong_calls, names.pop()) if len(names) == 1 else {}


def without_more(
    observations: Mapping[int, ObservedReply], calls: Collection[int]
) -> dict[int, ObservedReply]:
    """Return the calls as though the parameters that are too many were not there; nothing where one
    is missing, or none too many.

    Those are zero, so that what else is wrong is seen beside them. calls: the calls that are asked
    for their parameters, and have others.
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
