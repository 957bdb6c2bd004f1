"""The pass/fail dictionary: mutants that fail the same calls in the same way; and hard-coded sizes.

One mistake can be written with different numbers. The set of failing calls and the kind of failure
can still identify it. An attempt with a hard-coded size is right exactly for the calls with this
size.
"""

from __future__ import annotations

import ast
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain, combinations_with_replacement

from torch import Tensor

from ..box.worker.messages import Build, Call, StandIn
from ..checks.explain import is_refusal
from ..submission.source import Source
from .evidence import learns_more
from .fault_dictionary import (
    Candidate,
    FaultDictionary,
    RecordedMutant,
    Response,
    evidence,
    facets_of,
)
from .fingerprint import SIZES, ReplyField, ReplyFingerprint
from .observed_reply import ObservedReply, is_of_copies

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


def pass_fail_match(response: Response) -> dict[int, str]:
    """Return the wrong calls, mapped to the misconception of all mutants with the same symptoms.

    Return none if these mutants have several misconceptions, if there are no such mutants, or if
    too many calls are wrong.
    """
    recording, observations = response.recording, response.written
    calls = [i for i in sorted(response.calls) if not is_of_copies(recording.calls[i])]
    if any(i not in observations for i in calls):
        return {}
    symptoms = {i: s for i in calls if (s := _symptom(recording, i, observations[i].actual))}
    if not symptoms or _are_ambiguous(symptoms, observations, len(calls)):
        return {}
    # If parameters differ in each wrong call, all numbers may differ, so only parameters count.
    only_parameters = all(map(_of_parameters, symptoms.values()))
    squares = _squares(recording, {i: observations[i].actual for i in symptoms})

    def has_same_symptoms(mutant: RecordedMutant) -> bool:
        failing = dict[int, ReplyFingerprint]()
        for i in calls:
            answer = recording.answer(mutant, i)
            if answer is None:
                return False
            symptom, actual_symptom = _symptom(recording, i, answer), symptoms.get(i, ())
            if only_parameters:
                symptom, actual_symptom = _of_parameters(symptom), _of_parameters(actual_symptom)
            if symptom != actual_symptom:
                return False
            if i in symptoms:
                failing[i] = answer
        return _squares(recording, failing) == squares

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
    return moved and not learns_more(observations.values())


def _is_about(recording: FaultDictionary, id_: str, calls: Sequence[int]) -> bool:
    """Return whether a misconception concerns these calls.

    More than a few of its mutants must fail in all these calls, and one must raise in some call.
    """
    bits = sum(1 << i for i in calls)
    raises, failing, count = False, 0, 0
    for m, mutant in enumerate(recording.mutants):
        if mutant.id == id_:
            replies = recording.answers(m, calls).values()
            raises = raises or any(reply.raised for reply in replies)
            failing += recording.detected_in[m] & bits == bits
            count += 1
    return raises and failing > MIN_MUTANTS * count


def _of_parameters(symptom: Symptom) -> Symptom:
    """Return the part of a symptom that says that the parameters differ."""
    return tuple(phrase for phrase in symptom if phrase.startswith("parameters"))


def _symptom(recording: FaultDictionary, call: int, fingerprint: ReplyFingerprint) -> Symptom:
    """Return how a reply differs from the reference's, or an empty tuple if it agrees."""
    expected, facets = recording.expected_reply(call), facets_of(recording, call)
    if expected.raised == "refused":
        return () if fingerprint.raised == "refused" else NOT_REFUSED
    if expected.raised or fingerprint.raised:
        return () if expected.raised == fingerprint.raised else (f"raised {fingerprint.raised}",)
    differences = list[str]()
    if not fingerprint.agrees(expected, ("outputs",)):
        differences.append(_symptom_of_outputs(expected, fingerprint, recording.calls[call]))
    if "parameters" in facets and expected.parameters != fingerprint.parameters:
        differences.append(f"parameters {_symptom_of_parameters(expected, fingerprint)}")
    for facet in facets:
        if facet in ("outputs", "parameters") or fingerprint.agrees(expected, (facet,)):
            continue
        if facet not in GRADIENTS:
            differences.append(facet)
        elif not differences:  # wrong numbers or other parameters have wrong gradients anyway
            is_cut = bool(_gradients_that_arrive(expected) - _gradients_that_arrive(fingerprint))
            differences.append(f"{facet}{' cut' if is_cut else ''}")
    return tuple(differences)


def _gradients_that_arrive(fingerprint: ReplyFingerprint) -> set[str]:
    return {name for name, g in fingerprint.gradients.items() if g is not None and g.norm}


def _symptom_of_outputs(
    expected: ReplyFingerprint, fingerprint: ReplyFingerprint, call: Call
) -> str:
    if fingerprint.output_kinds != expected.output_kinds:
        return "kind"
    expected_shapes = [output.shape or () for output in expected.outputs]
    shapes = [output.shape or () for output in fingerprint.outputs]
    if shapes != expected_shapes:
        if [*map(len, shapes)] != [*map(len, expected_shapes)]:
            return "axes"
        # a size that no input has is written into the code, and can be any number
        is_of_inputs = {*chain.from_iterable(shapes)} <= {1, *sizes_of(call)}
        return f"shape {shapes}" if is_of_inputs else "shape"
    is_finite = all(math.isfinite(output.norm) for output in fingerprint.outputs)
    return "numbers" if is_finite else "not finite"


def _symptom_of_parameters(expected: ReplyFingerprint, fingerprint: ReplyFingerprint) -> str:
    extra = fingerprint.parameters.keys() - expected.parameters.keys()
    missing = "missing, " if expected.parameters.keys() - fingerprint.parameters.keys() else ""
    if extra and all(
        name.endswith(".bias") and f"{name[:-4]}weight" in expected.parameters for name in extra
    ):
        return f"{missing}a bias"
    return f"{missing}{'more' if extra else ''}"


def _squares(
    recording: FaultDictionary, replies: Mapping[int, ReplyFingerprint]
) -> Mapping[int, int]:
    """Return for each call the size of the extra parameter, if it is one square matrix in all.

    A mask is such a parameter.
    """
    extra = [
        (i, name, shape)
        for i, reply in replies.items()
        for name, shape in reply.parameters.items()
        if name not in recording.expected_reply(i).parameters
    ]
    square = all(len(shape) > 1 and shape[-1] == shape[-2] for _, _, shape in extra)
    return (
        {i: shape[-1] for i, _, shape in extra}
        if square and len({name for _, name, _ in extra}) == 1
        else {}
    )


HARD_CODED = "hard_coded_shape"
MIN_SHARE = 2 / 3  # part of the wrong calls; in others the size may stand for another axis as well
_READ = 300  # characters of a message
_END = re.compile(r"index (\d+) is out of bounds for dimension \d+ with size \1\b")
MAX_AXIS = 3  # an integer up to this is usually an axis or a number of axes, not a size


def _integers(source: Source, of_ranges: bool = False) -> Iterator[int]:
    nodes: Iterable[ast.AST] = source.nodes
    if of_ranges:
        calls = (node for node in nodes if isinstance(node, ast.Call))
        ranges = (
            call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "range"
        )
        nodes = chain.from_iterable(call.args for call in ranges)
    return (
        node.value for node in nodes if isinstance(node, ast.Constant) and type(node.value) is int
    )


def has_written_size(source: Source) -> bool:
    """Return whether a text contains an integer that is likely a size, or is not at hand."""
    return not source.text or any(n > MAX_AXIS for n in _integers(source))


def written_sizes(response: Response) -> list[Candidate]:
    """Return the misconception of functions with a size that is written into the code.

    A function has it if most of its wrong calls show the same integer of the text: in the
    exception's message, as the length of a loop that runs past the end of an axis, or as a size of
    the output. At least two calls must show it although none of their inputs has an axis of that
    size.
    """
    written = {n for n in _integers(response.source) if n > MAX_AXIS}
    loops = {n for n in _integers(response.source, of_ranges=True) if n > MAX_AXIS}
    allowed = {i: e for i, e in response.syndrome.items() if written and e.is_allowed}
    hard_coded = set[int]()
    for calls in _by_function(allowed):
        foreign, in_messages = Counter[int](), Counter[int]()
        for observation in calls.values():
            foreign.update(_foreign(observation, written, loops))
            in_messages.update(written & {*_message_sizes(observation)})
        counts = foreign | in_messages
        least = MIN_SHARE * len(calls)
        if any(foreign[size] > 1 and count >= least for size, count in counts.items()):
            hard_coded |= calls.keys()
    return evidence("weak", {i: HARD_CODED for i in response.syndrome if i in hard_coded})


def _message_sizes(observation: ObservedReply) -> list[int]:
    return (
        [*map(int, SIZES.findall(observation.reply.raised.message[:_READ]))]
        if observation.reply.raised
        else []
    )


def _foreign(observation: ObservedReply, written: Set[int], loops: Set[int]) -> set[int]:
    """Return the integers of the text that a wrong call shows although no input has such a size.

    They are in the exception's message, or in the output's shape instead of the right size. If an
    axis is cut into parts of that size and a remainder is left, the message may contain the total
    size of the whole parts instead. If an index is as large as its axis, a loop has run past the
    end of the axis: then each longer loop counts.

    Args:
        observation: the wrong call.
        written: the integers of the text.
        loops: those that are arguments of `range`.
    """
    if observation.reply.raised is not None:
        end = _END.search(observation.reply.raised.message[:_READ])
        if end:
            return {n for n in loops if n > int(end[1])}
        sizes = [*sizes_of(observation.call)]
        # a size that one axis of the inputs has, but that the message contains twice, counts
        foreign = Counter(_message_sizes(observation)) - Counter(sizes)
        return {n for n in written if n in foreign or _cuts(n, sizes, foreign)}
    changed_sizes = set[int]()
    outputs = zip(observation.actual.outputs, observation.expected.outputs, strict=False)
    for output, expected_output in outputs:
        shape, expected_shape = output.shape or (), expected_output.shape or ()
        if len(shape) == len(expected_shape):
            changed_sizes |= {a for a, b in zip(shape, expected_shape, strict=True) if a != b}
    return changed_sizes & written


def _cuts(divisor: int, sizes: Iterable[int], foreign: Collection[int]) -> bool:
    """Return whether a size, without its remainder after the division, is in `foreign`."""
    return any(
        size > divisor and size % divisor and size - size % divisor in foreign for size in sizes
    )


def rank_of(call: Call) -> int:
    """Return the largest number of axes of the call's tensors."""
    return max((value.dim() for value in call.inputs if isinstance(value, Tensor)), default=0)


def number_of_axes(response: Response) -> list[Candidate]:
    """Return the misconception of functions that accept only some numbers of axes.

    Such a function raises or returns another number of axes for all others. Modules are left out,
    because they take one number of axes. So is an exception in a line with a `.T`: it is due to a
    third axis.
    """
    nodes = response.source.nodes
    turned = {n.lineno for n in nodes if isinstance(n, ast.Attribute) and n.attr == "T"}
    observations = dict[int, ObservedReply]()
    for i, e in response.written.items():
        is_turned = e.reply.raised is not None and e.reply.raised.line in turned
        if isinstance(e.call.subject, str) and rank_of(e.call) and not is_turned:
            observations[i] = e
    names = dict[int, str]()
    for calls in _by_function(observations):
        failing = {i: observation for i, observation in calls.items() if i in response.syndrome}
        accepted = [e for i, e in calls.items() if i not in failing and e.reply.raised is None]
        accepted_ranks = {rank_of(e.call) for e in accepted}
        ranks = {rank_of(e.call) for e in failing.values()}
        if (
            accepted_ranks
            and accepted_ranks.isdisjoint(ranks)
            and all(map(_has_no_answer, failing.values()))
        ):
            names |= dict.fromkeys(failing, HARD_CODED)
    return evidence("weak", names)


def _by_function(observations: Mapping[int, ObservedReply]) -> Iterable[dict[int, ObservedReply]]:
    functions: dict[str, dict[int, ObservedReply]] = {}
    for i, observation in observations.items():
        functions.setdefault(observation.function, {})[i] = observation
    return functions.values()


def _has_no_answer(observation: ObservedReply) -> bool:
    if observation.reply.raised is not None:
        return observation.is_allowed and not is_refusal(observation.reply.raised)
    return any(
        actual.tensor is not None and expected is not None and actual.tensor.dim() != expected.dim()
        for actual, expected in zip(
            observation.reply.outputs, observation.expected_outputs, strict=False
        )
    )
