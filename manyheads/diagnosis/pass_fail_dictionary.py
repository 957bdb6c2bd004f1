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

    They are ambiguous in each of these cases:

    1. The outputs have another kind in some call: they may have another value as well.
    2. The parameters are right in some wrong call, and the share of wrong calls is above
       MAX_WRONG_SHARE.
    3. The parameters differ in each wrong call, more than parameters differ in some, and the
       outputs of no call depend on extra parameters.

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

    They do if such a parameter has a gradient that is not 0.
    """
    return not _gradients_that_arrive(observation.actual) <= observation.expected.gradients.keys()


def _is_about(recording: FaultDictionary, id_: str, calls: Sequence[int]) -> bool:
    """Return whether a misconception concerns these calls, all of which the attempt raises in.

    1. At least one of its mutants raises in one of the calls, as the attempt does.
    2. More than MIN_SHARE_OF_MUTANTS of its mutants are each wrong in all of the calls.
    """
    call_bits = bits_of(calls)
    some_raise, fails_all = False, list[bool]()
    for m, mutant in enumerate(recording.mutants):
        if mutant.id == id_:
            replies = recording.answers(m, calls).values()
            some_raise = some_raise or any(reply.raised for reply in replies)
            fails_all.append((recording.detected_in[m] & call_bits) == call_bits)
    return some_raise and sum(fails_all) > MIN_SHARE_OF_MUTANTS * len(fails_all)


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
    """Return a word for the first difference between outputs.

    It is "kind", "axes" for another number of axes, "shape", "not finite", or "numbers" if all
    numbers are finite. The shapes of all outputs follow "shape" if inputs have all their sizes.
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
    """Return the integer constants among these nodes that are likely sizes."""
    values = (node.value for node in nodes if isinstance(node, ast.Constant))
    return {value for value in values if type(value) is int and value > MAX_AXIS}


def _range_ends(source: Source) -> set[int]:
    """Return the integer constants that are likely sizes and are arguments of `range`."""
    calls = (node for node in source.nodes if isinstance(node, ast.Call))
    ranges = (call for call in calls if getattr(call.func, "id", "") == "range")
    return _constants(chain.from_iterable(call.args for call in ranges))


def has_written_size(source: Source) -> bool:
    """Return whether a source contains an integer that is likely a size, or has no text."""
    return not source.text or bool(_constants(source.nodes))


def _lines_of_refusals(source: Source) -> set[int]:
    """Return the lines on which a `raise` or an `assert` of the attempt begins."""
    return {node.lineno for node in source.nodes if isinstance(node, ast.Raise | ast.Assert)}


def written_sizes(response: Response) -> list[Candidate]:
    """Return the misconception of functions with a size that is written into the code.

    A function has it if one integer constant of the attempt's source meets both conditions:

    1. At least two wrong calls show it although no input has such a size (`_constants_shown`).
    2. These calls, or the calls whose exception's message has it, are MIN_SHARE or more of the
       function's wrong calls.

    Wrong calls count only if the reference accepts them. Refusals by a library do not count,
    because their numbers need not be sizes: `nn.Dropout(1024)` raises an error about probabilities.
    A refusal on an unknown line counts as the attempt's own.
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
        # the number of calls that show a constant, and of those whose message has it
        foreign, in_messages = Counter[int](), Counter[int]()
        for observation in calls.values():
            foreign.update(_constants_shown(observation, constants, range_ends))
            in_messages.update(constants & {*_message_sizes(observation)})
        least = MIN_SHARE * len(calls)
        for size, count in foreign.items():
            if count > 1 and max(count, in_messages[size]) >= least:
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
    """Return the constants of the source that a wrong call shows.

    If the call raises, the exception's message shows them (`_constants_in_message`). Otherwise they
    are wrong sizes of outputs that have the right number of axes.

    Args:
        observation: the wrong call.
        constants: the integers of the source that are likely sizes.
        range_ends: the constants that are arguments of `range`.
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

    If the message says that an index is as large as its axis, a loop has run past the end of the
    axis. Then return the constants in calls of `range` that are larger than the axis. Otherwise
    return a constant in each of these cases:

    1. The message contains it more often than the inputs have an axis of that size.
    2. It cuts an axis of the inputs into parts and leaves a remainder, and the message has the
       total size of the whole parts in this way. For an axis of 10 and parts of 4, this is 8.
    """
    index_past_end = _PAST_END.search(_message(observation))
    if index_past_end:
        return {constant for constant in range_ends if constant > int(index_past_end[1])}
    sizes = [*sizes_of(observation.call)]
    foreign_sizes = Counter(_message_sizes(observation)) - Counter(sizes)
    return {
        constant
        for constant in constants
        if constant in foreign_sizes
        or not foreign_sizes.keys().isdisjoint(_whole_parts(constant, sizes))
    }


def _whole_parts(divisor: int, sizes: Iterable[int]) -> set[int]:
    """Return the total size of the whole parts of each axis that the divisor cuts with a remainder.

    The axis must be longer than the divisor. Otherwise it has no whole part.
    """
    return {size - size % divisor for size in sizes if size > divisor and size % divisor}


def rank_of(call: Call) -> int:
    """Return the largest number of axes of the tensors that a call passes, or 0 without tensors."""
    return max((value.dim() for value in call.inputs if isinstance(value, Tensor)), default=0)


def number_of_axes(response: Response) -> list[Candidate]:
    """Return the misconception of functions that accept only some numbers of axes.

    Such a function is right for some numbers of axes. For all others it raises an error or returns
    another number of axes. Modules do not count, because they take one number of axes. Nor does an
    exception in a line with a `.T`, which turns all axes: its cause is a third axis.
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
    """Return whether a call shows that the attempt does not take this number of axes.

    This is so if some output has another number of axes than the reference's, or if the reference
    accepts the call and the attempt raises an exception that is no refusal.
    """
    if observation.reply.raised is not None:
        return observation.is_allowed and not is_refusal(observation.reply.raised)
    outputs = zip(observation.reply.outputs, observation.expected_outputs, strict=False)
    return any(
        output.tensor is not None and expected is not None and output.tensor.dim() != expected.dim()
        for output, expected in outputs
    )
