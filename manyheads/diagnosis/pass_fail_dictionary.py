"""The pass/fail dictionary: mutants that fail the same calls in the same way; and hard-coded sizes.

One mistake can be written with different numbers. The set of failing calls and the kind of failure
can still identify it. An attempt with a hard-coded size is right only for the calls with this size.
"""

from __future__ import annotations

import ast
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain, combinations_with_replacement

from torch import Tensor

from ..box.worker.messages import Build, Call, StandIn
from ..checks.explain_exceptions import is_refusal
from ..submission.source import Source
from .fault_dictionary import (
    Candidate,
    FaultDictionary,
    RecordedMutant,
    Response,
    bits_of,
    evidence,
)
from .fingerprint import SIZES, ReplyField, ReplyFingerprint
from .observed_reply import ObservedReply, is_of_copies

WRONG_AXIS = "size_wrong_axis"

_MISMATCH = re.compile(r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)")


def has_foreign_size(observations: Iterable[ObservedReply]) -> bool:
    """Return whether some call raised PyTorch's error about two sizes, and one is foreign.

    A size is foreign if it is neither 1, nor a size of the call, nor a product of two such sizes.
    """
    for observation in observations:
        raised = observation.reply.raised
        mismatch = None if raised is None else _MISMATCH.search(raised.message)
        if mismatch is not None:
            sizes = {1, *sizes_of(observation.call)}
            products = {a * b for a, b in combinations_with_replacement(sizes, 2)}
            if any(int(size) not in products for size in mismatch.groups()):
                return True
    return False


def sizes_of(call: Call) -> Iterator[int]:
    """Yield each size of a tensor of the call, and each integer that it passes.

    The arguments of a module to build are among them, and so are the weights and attributes of a
    module that is passed. Sizes may be repeated.
    """
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


MAX_WRONG_SHARE = 1 / 3  # many mistakes change the numbers of a larger share of the calls
# A misconception is about something else if no more than this share of its mutants fail in
# some calls.
MIN_SHARE_OF_MUTANTS = 1 / 8
GRADIENTS: tuple[ReplyField, ...] = ("gradients", "argument_gradients")

Symptom = tuple[str, ...]  # how a reply differs from the reference's, without numbers; () if equal
NOT_REFUSED: Symptom = ("not refused",)


def pass_fail_match(response: Response) -> dict[int, str]:
    """Return the misconception of all mutants with the same symptoms, by wrong call.

    A mutant must be right in the other calls, and have masks of the same sizes (`_mask_sizes`).
    Calls with many copies are left out. If the attempt raises another exception instead of refusing
    some calls, the misconception must concern these calls (`_is_about`).

    Return none if these mutants have several misconceptions, or if there are no such mutants.
    Return none also if a call has no reply, if no call has a symptom, or if many mistakes have such
    symptoms (`_are_ambiguous`): above all if too many calls are wrong.
    """
    recording, observations = response.recording, response.written
    calls = [i for i in sorted(response.calls) if not is_of_copies(recording.calls[i])]
    if any(i not in observations for i in calls):
        return {}
    symptoms = dict[int, Symptom]()
    for i in calls:
        if symptom := _symptom(recording, i, observations[i].actual):
            symptoms[i] = symptom
    if not symptoms or _are_ambiguous(symptoms, observations, len(calls)):
        return {}
    mask_sizes = _mask_sizes(recording, {i: observations[i].actual for i in symptoms})
    names = set[str]()
    for mutant in recording.mutants:
        wrong_answers = _answers_with_symptoms(recording, mutant, calls, symptoms)
        if wrong_answers and _mask_sizes(recording, wrong_answers) == mask_sizes:
            names.add(mutant.id)
    # In some calls the attempt should refuse the input, and raises another exception. So it does
    # not accept the input, as most mutants with this symptom do. The misconception must have a
    # mutant that raises there, too.
    raises_instead_of_refusing = [
        i
        for i, symptom in symptoms.items()
        if symptom == NOT_REFUSED and observations[i].reply.raised is not None
    ]
    if raises_instead_of_refusing:
        names = {n for n in names if _is_about(recording, n, raises_instead_of_refusing)}
    return dict.fromkeys(symptoms, names.pop()) if len(names) == 1 else {}


def _answers_with_symptoms(
    recording: FaultDictionary,
    mutant: RecordedMutant,
    calls: Iterable[int],
    symptoms: Mapping[int, Symptom],
) -> dict[int, ReplyFingerprint]:
    """Return a mutant's replies to the calls with symptoms, or none if its symptoms are others.

    If parameters differ in each wrong call, only the symptoms of parameters are compared.

    Args:
        recording: the fault dictionary.
        mutant: the mutant. With one random reply, it has other symptoms.
        calls: all calls.
        symptoms: the attempt's symptoms. In the other calls it is right.
    """
    # With other parameters all numbers may differ.
    always_other_parameters = all(map(_of_parameters, symptoms.values()))
    answers = dict[int, ReplyFingerprint]()
    for i in calls:
        answer = recording.answer(mutant, i)
        if answer is None:
            return {}
        symptom, actual_symptom = _symptom(recording, i, answer), symptoms.get(i, ())
        if always_other_parameters:
            symptom, actual_symptom = _of_parameters(symptom), _of_parameters(actual_symptom)
        if symptom != actual_symptom:
            return {}
        if i in symptoms:
            answers[i] = answer
    return answers


def _are_ambiguous(
    symptoms: Mapping[int, Symptom], observations: Mapping[int, ObservedReply], call_count: int
) -> bool:
    """Return whether many different mistakes have such symptoms.

    1. If outputs have another kind in some call, return True: they may have another value as well.
    2. If parameters do not differ in each wrong call, return whether the share of wrong calls is
       above MAX_WRONG_SHARE.
    3. Otherwise return whether more than parameters differ in some wrong call. But return False if
       the outputs of some call depend on extra parameters.

    Args:
        symptoms: the symptoms of the wrong calls.
        observations: the attempt's replies, by call.
        call_count: the number of all calls that are compared.
    """
    if any("kind" in symptom for symptom in symptoms.values()):
        return True
    always_other_parameters = all(map(_of_parameters, symptoms.values()))
    if not always_other_parameters:
        return len(symptoms) > MAX_WRONG_SHARE * call_count
    differs_in_more = any(symptom != _of_parameters(symptom) for symptom in symptoms.values())
    return differs_in_more and not any(map(_uses_extra_parameters, observations.values()))


def _uses_extra_parameters(observation: ObservedReply) -> bool:
    """Return whether the outputs depend on parameters that the reference does not have.

    A gradient that is not 0 proves it. Then no mutant need have the same values.
    """
    return not _gradients_that_arrive(observation.actual) <= observation.expected.gradients.keys()


def _is_about(recording: FaultDictionary, id_: str, calls: Sequence[int]) -> bool:
    """Return whether a misconception concerns these calls.

    More than MIN_SHARE_OF_MUTANTS of its mutants must be wrong in every one of these calls. At
    least one of its mutants must raise in such a call.
    """
    call_bits = bits_of(calls)
    raises, failing_count, mutant_count = False, 0, 0
    for m, mutant in enumerate(recording.mutants):
        if mutant.id == id_:
            replies = recording.answers(m, calls).values()
            raises = raises or any(reply.raised for reply in replies)
            failing_count += recording.detected_in[m] & call_bits == call_bits
            mutant_count += 1
    return raises and failing_count > MIN_SHARE_OF_MUTANTS * mutant_count


def _of_parameters(symptom: Symptom) -> Symptom:
    """Return the part of a symptom about parameters; empty if these do not differ."""
    return tuple(phrase for phrase in symptom if phrase.startswith("parameters"))


def _symptom(recording: FaultDictionary, call: int, reply: ReplyFingerprint) -> Symptom:
    """Return the symptom of a reply to a call, or () if it is as the reference's.

    If the reference refuses the call, and the attempt does not, the symptom is NOT_REFUSED. If only
    one of the two raises, or they raise differently, it is "raised" with the `raised` of this
    reply. If neither raises, `_symptom_of_answer` compares the answers.
    """
    expected = recording.expected_reply(call)
    if not (expected.raised or reply.raised):
        return _symptom_of_answer(recording, call, reply)
    if expected.raised == reply.raised:
        return ()
    return NOT_REFUSED if expected.raised == "refused" else (f"raised {reply.raised}",)


def _symptom_of_answer(recording: FaultDictionary, call: int, reply: ReplyFingerprint) -> Symptom:
    """Return a phrase for each difference between an answer and the reference's answer.

    The outputs are always compared, and then those fields that are recorded as compared in this
    call. Gradients are named only if nothing before them differs, because wrong numbers and other
    parameters have wrong gradients anyway.
    """
    expected = recording.expected_reply(call)
    fields = recording.compared_fields[call]
    differences = list[str]()
    if not reply.agrees(expected, ("outputs",)):
        differences.append(_symptom_of_outputs(expected, reply, recording.calls[call]))
    if "parameters" in fields and expected.parameters != reply.parameters:
        differences.append(f"parameters {_symptom_of_parameters(expected, reply)}")
    for field_name in fields:
        if field_name in ("outputs", "parameters") or reply.agrees(expected, (field_name,)):
            continue
        if field_name not in GRADIENTS:
            differences.append(field_name)
        elif not differences:
            is_cut = bool(_gradients_that_arrive(expected) - _gradients_that_arrive(reply))
            differences.append(f"{field_name}{' cut' if is_cut else ''}")
    return tuple(differences)


def _gradients_that_arrive(reply: ReplyFingerprint) -> set[str]:
    """Return the names of the gradients that are neither None nor 0."""
    return {name for name, g in reply.gradients.items() if g is not None and g.norm}


def _symptom_of_outputs(expected: ReplyFingerprint, reply: ReplyFingerprint, call: Call) -> str:
    """Return the first difference between outputs: "kind", "axes", "shape", or "numbers".

    The shapes of all outputs follow "shape" if inputs have all their sizes. If a number is not
    finite, "not finite" is returned instead of "numbers".
    """
    if reply.output_kinds != expected.output_kinds:
        return "kind"
    expected_shapes = [output.shape or () for output in expected.outputs]
    shapes = [output.shape or () for output in reply.outputs]
    if shapes != expected_shapes:
        if [*map(len, shapes)] != [*map(len, expected_shapes)]:
            return "axes"
        # a size that no input has is written into the code, and can be any number
        is_of_inputs = {*chain.from_iterable(shapes)} <= {1, *sizes_of(call)}
        return f"shape {shapes}" if is_of_inputs else "shape"
    is_finite = all(math.isfinite(output.norm) for output in reply.outputs)
    return "numbers" if is_finite else "not finite"


def _symptom_of_parameters(expected: ReplyFingerprint, reply: ReplyFingerprint) -> str:
    """Return the difference between parameters as a text of up to two phrases.

    The first is "missing, " if parameters are missing. The second is "a bias" if parameters are
    extra and each is the bias of a layer whose weight is expected, or "more" if others are extra.
    The text is empty if only shapes of parameters differ.
    """
    extra = reply.parameters.keys() - expected.parameters.keys()
    missing = "missing, " if expected.parameters.keys() - reply.parameters.keys() else ""
    layers = {name.removesuffix("weight") for name in expected.parameters}
    if extra and all(
        name.endswith(".bias") and name.removesuffix("bias") in layers for name in extra
    ):
        return f"{missing}a bias"
    return f"{missing}{'more' if extra else ''}"


def _mask_sizes(
    recording: FaultDictionary, replies: Mapping[int, ReplyFingerprint]
) -> Mapping[int, int]:
    """Return the size T of a (T, T) mask that is a parameter, by call; {} if there is no such mask.

    Such a mask is the only extra parameter in all these replies, and square in each. A call without
    it has no entry.
    """
    names, sizes = set[str](), dict[int, int]()
    for i, reply in replies.items():
        for name in reply.parameters.keys() - recording.expected_reply(i).parameters:
            shape = reply.parameters[name]
            if len(shape) < 2 or shape[-1] != shape[-2]:
                return {}
            names.add(name)
            sizes[i] = shape[-1]
    return sizes if len(names) == 1 else {}


HARD_CODED = "hard_coded_shape"
MIN_SHARE = 2 / 3  # part of the wrong calls; in others the size may stand for another axis as well
_MAX_CHARACTERS = 300  # a message may be a student's, and very long
_PAST_END = re.compile(r"index (\d+) is out of bounds for dimension \d+ with size \1\b")
MAX_AXIS = 3  # an integer up to this is usually an axis or a number of axes, not a size


def _constants(nodes: Iterable[ast.AST]) -> set[int]:
    """Return the integers among these nodes of a text that are likely sizes."""
    values = (node.value for node in nodes if isinstance(node, ast.Constant))
    return {value for value in values if type(value) is int and value > MAX_AXIS}


def _range_ends(source: Source) -> set[int]:
    """Return the integers of a text that are likely sizes and are arguments of `range`."""
    calls = (node for node in source.nodes if isinstance(node, ast.Call))
    ranges = (call for call in calls if getattr(call.func, "id", "") == "range")
    return _constants(chain.from_iterable(call.args for call in ranges))


def has_written_size(source: Source) -> bool:
    """Return whether a text contains an integer that is likely a size, or is not at hand."""
    return not source.text or bool(_constants(source.nodes))


def _lines_of_refusals(source: Source) -> set[int]:
    """Return the lines on which a `raise` or an `assert` of the attempt begins."""
    return {node.lineno for node in source.nodes if isinstance(node, ast.Raise | ast.Assert)}


def written_sizes(response: Response) -> list[Candidate]:
    """Return the misconception of functions with a size that is written into the code.

    A function has it if MIN_SHARE of its wrong calls or more show the same integer of the text. The
    integer may be in the exception's message, the length of a loop that runs past the end of an
    axis, or a size of the output. At least two calls must show it although no input has an axis of
    that size. Calls that the reference refuses are left out. So are refusals by a library, because
    their numbers need not be sizes: `nn.Dropout(1024)` raises an error about probabilities. A
    refusal on an unknown line counts as the attempt's own.
    """
    constants, range_ends = _constants(response.source.nodes), _range_ends(response.source)
    if not constants:
        return []
    lines = _lines_of_refusals(response.source)
    allowed = dict[int, ObservedReply]()
    for i, observation in response.syndrome.items():
        raised = observation.reply.raised
        by_library = raised and is_refusal(raised) and raised.line and raised.line not in lines
        if observation.is_allowed and not by_library:
            allowed[i] = observation
    hard_coded = set[int]()
    for calls in _by_function(allowed):
        # For each integer, the calls that show it although no input has that size; and all calls
        # whose message has it. The maximum counts.
        foreign, in_messages = Counter[int](), Counter[int]()
        for observation in calls.values():
            foreign.update(_constants_shown(observation, constants, range_ends))
            in_messages.update(constants & {*_message_sizes(observation)})
        counts = foreign | in_messages
        least = MIN_SHARE * len(calls)
        if any(foreign[size] > 1 and count >= least for size, count in counts.items()):
            hard_coded |= calls.keys()
    return evidence("weak", dict.fromkeys(sorted(hard_coded), HARD_CODED))


def _message(observation: ObservedReply) -> str:
    """Return the start of the exception's message, or "" if nothing was raised."""
    raised = observation.reply.raised
    return "" if raised is None else raised.message[:_MAX_CHARACTERS]


def _message_sizes(observation: ObservedReply) -> list[int]:
    """Return the sizes in the exception's message, also repeated ones; [] without an exception."""
    return [*map(int, SIZES.findall(_message(observation)))]


def _constants_shown(
    observation: ObservedReply, constants: Set[int], range_ends: Set[int]
) -> set[int]:
    """Return the constants of the text that a wrong call shows although no input has such a size.

    If the call raises, they are in the exception's message. Otherwise they stand in an output's
    shape instead of the right size; outputs with another number of axes are left out.

    Args:
        observation: the wrong call.
        constants: the integers of the text that are likely sizes.
        range_ends: those that are arguments of `range`.
    """
    if observation.reply.raised is not None:
        return _constants_in_message(observation, constants, range_ends)
    wrong_sizes = set[int]()
    outputs = zip(observation.actual.outputs, observation.expected.outputs, strict=False)
    for output, expected_output in outputs:
        shape, expected_shape = output.shape or (), expected_output.shape or ()
        if len(shape) == len(expected_shape):
            wrong_sizes |= {a for a, b in zip(shape, expected_shape, strict=True) if a != b}
    return wrong_sizes & constants


def _constants_in_message(
    observation: ObservedReply, constants: Set[int], range_ends: Set[int]
) -> set[int]:
    """Return the constants that an exception's message shows. See `_constants_shown`.

    1. If an index is as large as its axis, a loop has run past the end of the axis. Then these are
       the constants in calls of `range` that are larger than the axis.
    2. Otherwise these are the constants that the message has and the call has not.
    3. A constant by which an axis of the inputs is cut into parts counts, too, if a remainder is
       left and the message has the total size of the whole parts. For an axis of 10 and parts of 4,
       the message has 8.
    """
    index_past_end = _PAST_END.search(_message(observation))
    if index_past_end:
        return {constant for constant in range_ends if constant > int(index_past_end[1])}
    sizes = [*sizes_of(observation.call)]
    # A size counts, too, if the message contains it more often than the inputs have it.
    foreign_sizes = Counter(_message_sizes(observation)) - Counter(sizes)
    return {
        constant
        for constant in constants
        if constant in foreign_sizes
        or not foreign_sizes.keys().isdisjoint(_whole_parts(constant, sizes))
    }


def _whole_parts(divisor: int, sizes: Iterable[int]) -> set[int]:
    """Return the total size of the whole parts of each axis that the divisor cuts with a remainder.

    An axis that is shorter than the divisor has no whole part, and is left out.
    """
    return {size - size % divisor for size in sizes if size > divisor and size % divisor}


def rank_of(call: Call) -> int:
    """Return the largest number of axes of the tensors that a call passes, or 0 without tensors."""
    return max((value.dim() for value in call.inputs if isinstance(value, Tensor)), default=0)


def number_of_axes(response: Response) -> list[Candidate]:
    """Return the misconception of functions that accept only some numbers of axes.

    Such a function is right for some numbers of axes. For all others it raises an error or returns
    another number of axes. Modules are left out, because they take one number of axes. So is an
    exception in a line with a `.T`, which turns all axes: it is due to a third axis.
    """
    nodes = response.source.nodes
    lines_with_T = {n.lineno for n in nodes if isinstance(n, ast.Attribute) and n.attr == "T"}
    observations = dict[int, ObservedReply]()
    for i, observation in response.written.items():
        raised, call = observation.reply.raised, observation.call
        is_due_to_T = raised is not None and raised.line in lines_with_T
        if isinstance(call.subject, str) and rank_of(call) and not is_due_to_T:
            observations[i] = observation
    names = dict[int, str]()
    for calls in _by_function(observations):
        wrong_calls = calls.keys() & response.syndrome.keys()
        right_calls = calls.keys() - wrong_calls
        accepted_ranks = {rank_of(calls[i].call) for i in right_calls if not calls[i].reply.raised}
        wrong_ranks = {rank_of(calls[i].call) for i in wrong_calls}
        are_apart = bool(accepted_ranks) and accepted_ranks.isdisjoint(wrong_ranks)
        if are_apart and all(_rejects_rank(calls[i]) for i in wrong_calls):
            names |= dict.fromkeys(wrong_calls, HARD_CODED)
    return evidence("weak", names)


def _by_function(observations: Mapping[int, ObservedReply]) -> Iterable[dict[int, ObservedReply]]:
    """Return for each function its replies, by call."""
    functions: dict[str, dict[int, ObservedReply]] = {}
    for i, observation in observations.items():
        functions.setdefault(observation.function, {})[i] = observation
    return functions.values()


def _rejects_rank(observation: ObservedReply) -> bool:
    """Return whether an allowed call raises an error, or returns another number of axes.

    A refusal by the attempt is no such error. Return False if the reference refuses the call and
    the attempt raises.
    """
    if observation.reply.raised is not None:
        return observation.is_allowed and not is_refusal(observation.reply.raised)
    outputs = zip(observation.reply.outputs, observation.expected_outputs, strict=False)
    return any(
        output.tensor is not None and expected is not None and output.tensor.dim() != expected.dim()
        for output, expected in outputs
    )
