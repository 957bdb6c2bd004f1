"""Look up a response in the pass/fail dictionary: only which calls fail, and how, not the numbers.

One mistake can be written in several ways that give different numbers: a distance without its
absolute value, a refusal of another type, an additional parameter. Mutants that fail in the same
calls, with the same symptom in each call, can identify it all the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain, combinations_with_replacement

from torch import Tensor

from ..box.worker.messages import Build, Call, StandIn
from .fingerprint import ReplyField, ReplyFingerprint
from .observe import ObservedReply, is_of_copies
from .proofs import learns_more
from .recording import FaultDictionary, RecordedMutant, facets_of

WRONG_AXIS = "size_wrong_axis"

_UNFIT = re.compile(r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)")


def has_foreign_size(observations: Iterable[ObservedReply]) -> bool:
    """Return whether a size mismatch names a size that the call does not have.

    A product of two of the call's sizes does not count.
    """
    for observation in observations:
        if observation.reply.raised is not None and (
            mismatch := _UNFIT.search(observation.reply.raised.message)
        ):
            products = {
                a * b for a, b in combinations_with_replacement({1, *sizes_of(observation.call)}, 2)
            }
            if any(int(size) not in products for size in mismatch.groups()):
                return True
    return False


def sizes_of(call: Call) -> Iterator[int]:
    """Yield each size of a tensor of the call, and each integer that it passes."""
    for argument in call.inputs:
        values: list[object] = [argument]
        if isinstance(argument, StandIn):
            values = [*argument.linears.values(), *argument.attributes.values()]
        elif isinstance(argument, Build):
            values = [*argument.args, *argument.kwargs.values()]
        for value in values:
            if isinstance(value, Tensor):
                yield from value.shape
            elif isinstance(value, int):
                yield value


MAX_WRONG = 1 / 3  # part of all calls; many mistakes change the numbers of more calls than that
# A misconception is about something else if no more than this part of its mutants fail there.
MIN_MUTANTS = 1 / 8
GRADIENTS: tuple[ReplyField, ...] = ("gradients", "argument_gradients")

Symptom = tuple[str, ...]  # how a reply differs from the reference's, without numbers
NOT_REFUSED: Symptom = ("not refused",)


def pass_fail_match(
    recording: FaultDictionary, observations: Mapping[int, ObservedReply], visible_calls: Set[int]
) -> dict[int, str]:
    """Return the wrong calls, mapped to the misconception of all mutants with the same symptoms.

    Return none if these mutants have several misconceptions, if there are no such mutants, or if
    too many calls are wrong.

    Args:
        recording: the fault dictionary.
        observations: the replies, by call.
        visible_calls: the calls of visible checks that show something about the attempt.
    """
    calls = [i for i in sorted(visible_calls) if not is_of_copies(recording.calls[i])]
    if any(i not in observations for i in calls):
        return {}
    expected = {i: recording.expected_reply(i) for i in calls}
    facets = {i: facets_of(recording, i) for i in calls}
    sizes = {i: {1, *sizes_of(recording.calls[i])} for i in calls}
    symptoms = {
        i: symptom
        for i in calls
        if (symptom := _symptom(expected[i], observations[i].actual, facets[i], sizes[i]))
    }
    if not symptoms or _are_ambiguous(symptoms, observations, len(calls)):
        return {}
    # If parameters differ in each wrong call, all numbers may differ, so only parameters count.
    only_parameters = all(map(_of_parameters, symptoms.values()))
    squares = _squares(expected, {i: observations[i].actual for i in symptoms})

    def has_same_symptoms(mutant: RecordedMutant) -> bool:
        answers = dict[int, ReplyFingerprint]()
        for i in calls:
            answer = recording.answer(mutant, i)
            if answer is None:
                return False
            answers[i] = answer
            symptom, actual_symptom = (
                _symptom(expected[i], answer, facets[i], sizes[i]),
                symptoms.get(i, ()),
            )
            if only_parameters:
                symptom, actual_symptom = _of_parameters(symptom), _of_parameters(actual_symptom)
            if symptom != actual_symptom:
                return False
        return _squares(expected, {i: answers[i] for i in symptoms}) == squares

    names = {mutant.id for mutant in recording.mutants if has_same_symptoms(mutant)}
    # Calls in which the attempt raises another exception than the expected refusal: it does not
    # accept these inputs. The misconception must have a mutant that raises there, too.
    raising = [
        i
        for i, symptom in symptoms.items()
        if symptom == NOT_REFUSED and observations[i].reply.raised is not None
    ]
    if raising:
        names = {name for name in names if _is_about(recording, name, raising)}
    return dict.fromkeys(symptoms, names.pop()) if len(names) == 1 else {}


def _are_ambiguous(
    symptoms: Mapping[int, Symptom], observations: Mapping[int, ObservedReply], call_count: int
) -> bool:
    """Return whether many different mistakes have such symptoms."""
    # an output of another type may have another value as well
    if any("kind" in symptom for symptom in symptoms.values()):
        return True
    if not all(map(_of_parameters, symptoms.values())):
        return len(symptoms) > MAX_WRONG * call_count
    moved = any(symptom != _of_parameters(symptom) for symptom in symptoms.values())
    return moved and not learns_more((e.reply, e.expected.gradients) for e in observations.values())


def _is_about(recording: FaultDictionary, id_: str, calls: Sequence[int]) -> bool:
    """Return whether a misconception concerns these calls.

    More than a few of its mutants must fail in all these calls, and one must raise in some call.
    """
    bits = sum(1 << i for i in calls)
    raises, failing, count = False, 0, 0
    for mutant, detections in zip(recording.mutants, recording.detected_in, strict=True):
        if mutant.id == id_:
            answers = (recording.answer(mutant, i) for i in calls)
            raises = raises or any(answer is not None and answer.raised for answer in answers)
            failing += detections & bits == bits
            count += 1
    return raises and failing > MIN_MUTANTS * count


def _of_parameters(symptom: Symptom) -> Symptom:
    """Return the part of a symptom that says that the parameters differ."""
    return tuple(phrase for phrase in symptom if phrase.startswith("parameters"))


def _symptom(
    expected: ReplyFingerprint,
    fingerprint: ReplyFingerprint,
    facets: tuple[ReplyField, ...],
    sizes: Set[int],
) -> Symptom:
    """Return how a reply differs from the reference's, or an empty tuple if it agrees.

    Args:
        expected: the reference's reply.
        fingerprint: the reply.
        facets: the fields to compare.
        sizes: the sizes in the call.
    """
    if expected.raised == "refused":
        return () if fingerprint.raised == "refused" else NOT_REFUSED
    if expected.raised or fingerprint.raised:
        return () if expected.raised == fingerprint.raised else (f"raised {fingerprint.raised}",)
    differences = (
        []
        if fingerprint.agrees(expected, ("outputs",))
        else [_symptom_of_outputs(expected, fingerprint, sizes)]
    )
    if "parameters" in facets and expected.parameters != fingerprint.parameters:
        differences.append(f"parameters {_symptom_of_parameters(expected, fingerprint)}")
    for facet in facets:
        if facet in ("outputs", "parameters") or fingerprint.agrees(expected, (facet,)):
            continue
        if facet not in GRADIENTS:
            differences.append(facet)
        elif not differences:  # wrong numbers or other parameters have wrong gradients anyway
            gradient_names = (
                name
                for name, gradient in expected.gradients.items()
                if gradient is not None and gradient.norm
            )
            is_cut = any(
                (actual_gradient := fingerprint.gradients.get(name)) is None
                or not actual_gradient.norm
                for name in gradient_names
            )
            differences.append(f"{facet}{' cut' if is_cut else ''}")
    return tuple(differences)


def _symptom_of_outputs(
    expected: ReplyFingerprint, fingerprint: ReplyFingerprint, sizes: Set[int]
) -> str:
    if [output.kind for output in fingerprint.outputs] != [
        output.kind for output in expected.outputs
    ]:
        return "kind"
    expected_shapes = [output.shape or () for output in expected.outputs]
    shapes = [output.shape or () for output in fingerprint.outputs]
    if shapes != expected_shapes:
        if [*map(len, shapes)] != [*map(len, expected_shapes)]:
            return "axes"
        # a size that no input has is written into the code, and can be any number
        return f"shape {shapes}" if {*chain.from_iterable(shapes)} <= sizes else "shape"
    return (
        "numbers"
        if all(math.isfinite(output.norm) for output in fingerprint.outputs)
        else "not finite"
    )


def _symptom_of_parameters(expected: ReplyFingerprint, fingerprint: ReplyFingerprint) -> str:
    extra = fingerprint.parameters.keys() - expected.parameters.keys()
    missing = "missing, " if expected.parameters.keys() - fingerprint.parameters.keys() else ""
    if extra and all(
        name.endswith(".bias") and f"{name[:-4]}weight" in expected.parameters for name in extra
    ):
        return f"{missing}a bias"
    return f"{missing}{'more' if extra else ''}"


def _squares(
    expected: Mapping[int, ReplyFingerprint], replies: Mapping[int, ReplyFingerprint]
) -> Mapping[int, int]:
    """Return for each call the size of the extra parameter, if it is one square matrix in all.

    A mask is such a parameter.
    """
    extra = [
        (i, name, shape)
        for i, reply in replies.items()
        for name, shape in reply.parameters.items()
        if name not in expected[i].parameters
    ]
    square = all(len(shape) > 1 and shape[-1] == shape[-2] for _, _, shape in extra)
    return (
        {i: shape[-1] for i, _, shape in extra}
        if square and len({name for _, name, _ in extra}) == 1
        else {}
    )
