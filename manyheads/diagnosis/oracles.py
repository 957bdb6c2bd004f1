"""The oracles of visible checks: each compares one property of replies; a violation may show why.

A hidden check is code. A student's machine has a list of oracles instead, each with the calls that
it applies to. If all mutants that violate an oracle share one misconception, a violation shows this
misconception.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, cycle, islice, zip_longest

from torch import Tensor

from ..box.worker.messages import Output
from ..checks.answer import Answer, answers_of
from ..checks.asserts import NONE, assert_finite, assert_matches, assert_shape, label
from ..checks.hidden_check import REFUSAL_EXPECTED, AttemptRaised, CheckFailed
from .fault_dictionary import (
    Candidate,
    FaultDictionary,
    Oracle,
    OracleUse,
    PublicCheck,
    Response,
    evidence,
)
from .fingerprint import ReplyField, has_no_numbers, is_argument, with_infinities
from .metamorphic_relations import (
    EDIT,
    ReplyPair,
    difference_is_another,
    dropout_differs,
    dropout_mask_differs,
    edit_of,
    fills_with_a_number,
    is_dropped_at_another_rate,
    leaks_a_share,
    misses_an_effect,
    parts_differ,
    survivors_differ,
    violates_causality,
    zeros_missed,
)
from .observed_reply import ObservedReply, device_error, first_of, needs_meta_numbers

ROUNDING = 1e-5  # relative difference of two sums that are equal for a linear function
_LEAST = 1e-30  # a sum counts as at least this: if all is 0, a difference of 0 passes


def gradients_arrive(observation: ObservedReply) -> None:
    """Require a gradient for each tensor that has one in the reference's reply.

    Raises CheckFailed.
    """
    _require_gradients(observation, list(observation.expected.gradients))


def gradients(observation: ObservedReply) -> None:
    """Require that each gradient is the reference's. Raises CheckFailed."""
    _require_equal_gradients(observation, list(observation.expected.gradients))


def argument_gradients_arrive(observation: ObservedReply) -> None:
    """Require a gradient for each tensor argument, and for the weights of layers that are passed.

    Raises CheckFailed. Nothing is required if the answer has another shape than the reference's:
    then no gradient was computed.

    A correct attempt may copy the weights of the layers that are passed into one of torch's layers.
    So the gradients of these weights are not required if a fused kernel ran and no such weight has
    a gradient.
    """
    outputs = observation.reply.outputs
    shapes = [None if o.tensor is None else tuple(o.tensor.shape) for o in outputs]
    if shapes != [o.shape for o in observation.expected.outputs]:
        return
    weights = [name for name in observation.expected.gradients if not is_argument(name)]
    is_used = any(observation.actual.gradients.get(name) is not None for name in weights)
    operations = observation.reply.operations
    is_copied = not is_used and operations is not None and operations.fused
    names = _argument_names(observation)
    if not is_copied:
        names += weights
    _require_gradients(observation, names)


def argument_gradients(observation: ObservedReply) -> None:
    """Require that each tensor argument has the reference's gradient. Raises CheckFailed."""
    _require_equal_gradients(observation, _argument_names(observation))


def adjoint(observation: ObservedReply) -> None:
    """Require that the gradient belongs to the attempt's own answer. Raises CheckFailed.

    For every linear function, the inner product of gradient and argument equals the inner product
    of cotangent and answer. Nothing is required unless the call has one tensor argument with a
    gradient, and the attempt returns one tensor. Nothing is required either if the gradient is
    None, or if the answer or the gradient has a wrong shape.
    """
    names, outputs = _argument_names(observation), observation.reply.outputs
    cotangent = observation.call.cotangent
    if len(names) != 1 or len(outputs) != 1 or not isinstance(cotangent, Tensor):
        return
    (name,), (output,) = names, outputs
    argument = observation.call.arguments[name]
    gradient, answer = observation.reply.gradients.get(name), output.tensor
    if not isinstance(argument, Tensor) or gradient is None or answer is None:
        return
    if answer.shape != cotangent.shape or gradient.shape != argument.shape:
        return
    weighted_answer = answer.double() * cotangent
    difference = float((weighted_answer.sum() - (argument * gradient.double()).sum()).abs())
    if not difference <= ROUNDING * max(float(weighted_answer.abs().sum()), _LEAST):
        raise CheckFailed("the gradient that comes back is not that of the output")


def _argument_names(observation: ObservedReply) -> list[str]:
    """Return the names of the tensor arguments for which the call asks a gradient."""
    return [name for name in observation.expected.gradients if is_argument(name)]


def _require_gradients(observation: ObservedReply, names: list[str]) -> None:
    """Require those of these gradients that the reference has. Raises CheckFailed."""
    actual, expected = observation.actual.gradients, observation.expected.gradients
    cut = [name for name in names if expected[name] is not None and actual.get(name) is None]
    if cut:
        raise CheckFailed(f"no gradient reaches {' and '.join(map(label, cut))}")


def _require_equal_gradients(observation: ObservedReply, names: list[str]) -> None:
    """Require that these gradients are the reference's. Raises CheckFailed."""
    actual_gradients = {name: observation.actual.gradients.get(name) for name in names}
    expected_gradients = {name: observation.expected.gradients[name] for name in names}
    actual = replace(observation.actual, gradients=actual_gradients)
    expected = replace(observation.expected, gradients=expected_gradients)
    if not actual.agrees(expected, ("gradients",)):
        raise CheckFailed("the gradients differ from the expected ones")


def compare(oracle: Oracle, calls: Sequence[ObservedReply]) -> None:
    """Apply one oracle to these calls. Raises CheckFailed, with evidence, if it is violated.

    A relation is applied to all calls together. Any other oracle is applied to each call that both
    the reference and the attempt answer; those of `_FOR_EXCEPTIONS` are applied to all calls.
    """
    if oracle in _RELATIONS:
        _require_relation(oracle, calls)
        return
    for observation in calls:
        are_answers = observation.is_allowed and observation.reply.raised is None
        if are_answers or oracle in _FOR_EXCEPTIONS:
            _OF_ONE_CALL[oracle](observation)


def is_violated(oracle: Oracle, calls: Sequence[ObservedReply]) -> bool:
    """Return whether an attempt violates an oracle in these calls."""
    # Faster than `compare`, which writes evidence
    if oracle == "values" and any(map(_has_other_values, calls)):
        return True
    try:
        compare(oracle, calls)
    except CheckFailed:
        return True
    return False


def _has_other_values(observation: ObservedReply) -> bool:
    """Return whether the reference and the attempt both answer the call, with other values."""
    are_answers = observation.is_allowed and observation.reply.raised is None
    return are_answers and not observation.actual.agrees(observation.expected, ("outputs",))


def _require_answer(observation: ObservedReply) -> None:
    """Require an answer if the reference gives one. Raises AttemptRaised.

    An exception is allowed if the attempt reads the numbers of a meta tensor, which has none.
    """
    raised = observation.reply.raised
    if observation.is_allowed and raised is not None and not needs_meta_numbers(observation):
        raise AttemptRaised(raised)


def _require_refusal(observation: ObservedReply) -> None:
    """Require a refusal if the reference refuses the call.

    Raises CheckFailed if the attempt answers, and AttemptRaised if it raises another exception.
    """
    if observation.expected.raised != "refused":
        return
    # `reply.raised` is the exception itself, and `actual.raised` its kind.
    if observation.reply.raised is None:
        raise CheckFailed(
            "this should be refused, and is accepted in silence: raise a ValueError that names "
            "the numbers"
        )
    if observation.actual.raised != "refused":
        raise AttemptRaised(observation.reply.raised, REFUSAL_EXPECTED)


def _require_kinds(observation: ObservedReply) -> None:
    """Require as many outputs as the reference has, of the same types. Raises CheckFailed.

    The message names the first output that differs, or else the number of outputs.
    """
    if observation.actual.output_kinds == observation.expected.output_kinds:
        return
    Answer(observation.call, observation.reply).must_return()
    for actual, expected in zip(
        answers_of(observation.call, observation.reply), observation.expected.outputs, strict=False
    ):
        if expected.kind == NONE and actual.kind != NONE:
            raise CheckFailed(f"{actual.label} should be None; yours is {actual.kind_in_words}")
        if expected.kind != actual.kind:
            raise actual.wrong_type(expected.kind, actual.kind)
        if expected.kind == "tensor":
            _ = actual.outputs  # raises if the tensor cannot be read
    count, came = len(observation.expected.outputs), len(observation.reply.outputs)
    results = "1 result" if count == 1 else f"{count} results"
    raise CheckFailed(f"{results} should come back; yours returns {came}")


def _require_shapes(observation: ObservedReply) -> None:
    """Require the reference's shapes of outputs that are tensors. Raises CheckFailed."""
    for (actual, output_name), expected in zip(
        _labelled_outputs(observation), observation.expected.outputs, strict=False
    ):
        if actual.tensor is not None and expected.shape is not None:
            assert_shape(actual.tensor, expected.shape, output_name)


def _require_finite(observation: ObservedReply) -> None:
    """Require each output to be finite if the reference's output is. Raises CheckFailed."""
    if not any(output.extremes for output in observation.actual.outputs):
        return
    # Outputs of all runs, beside those of the reference's first run
    pairs = zip(_labelled_outputs(observation), cycle(observation.expected_outputs), strict=False)
    for (actual, output_name), expected in pairs:
        if expected is None or not bool(expected.isfinite().all()):
            continue
        if actual.tensor is not None:
            assert_finite(actual.tensor, output_name)


def _require_values(observation: ObservedReply) -> None:
    """Require the reference's types and values. Raises CheckFailed.

    The message describes the first output whose numbers differ. If only fingerprints differ, it
    names an output on another device if the call asks for the meta device, or has no details.
    """
    _require_kinds(observation)
    agrees = observation.actual.agrees(observation.expected, ("outputs",))
    for actual, expected in zip(
        answers_of(observation.call, observation.reply), observation.expected_outputs, strict=False
    ):
        if expected is None:
            continue
        # If the fingerprints agree, only rounding is left to compare. A finite fill that is low
        # enough is then the same as −inf.
        if agrees:
            assert_matches(with_infinities(actual.output), with_infinities(expected), actual.label)
        else:
            assert_matches(actual, expected)
    if agrees:
        return
    if has_no_numbers(observation.expected):  # the call asks for the meta device
        for output in observation.reply.outputs:
            if output.device != "meta":
                message = (
                    f"the output is on {output.device}, and not on the device that was asked for"
                )
                raise CheckFailed(message)
    raise CheckFailed("the output is not the expected one")


def _require_dtypes(observation: ObservedReply) -> None:
    """Require the reference's dtype of each output. Raises CheckFailed."""
    output_names = [output_name for _, output_name in _labelled_outputs(observation)]
    # A missing or additional output has the dtype None.
    for output_name, actual, expected in zip_longest(
        output_names, observation.actual.dtype, observation.expected.dtype
    ):
        if actual != expected:
            raise CheckFailed(
                f"{output_name or 'the output'} should be {expected}; yours is {actual or 'none'}"
            )


def _labelled_outputs(observation: ObservedReply) -> list[tuple[Output, str]]:
    """Return the attempt's outputs, each with its name in messages."""
    labels = (answer.label for answer in answers_of(observation.call, observation.reply))
    return list(zip(observation.reply.outputs, labels, strict=False))


def _require_parameters(observation: ObservedReply) -> None:
    """Require parameters with the reference's names and shapes. Raises CheckFailed."""
    actual, expected = observation.actual.parameters, observation.expected.parameters
    extra = sorted(actual.keys() - expected.keys())
    missing = sorted(expected.keys() - actual.keys())
    if extra or missing:
        raise CheckFailed(
            f"parameters too many: {extra or 'none'}; parameters missing: {missing or 'none'}"
        )
    if actual != expected:
        raise CheckFailed("the parameters have other shapes than asked for")


# Messages about the state that a call leaves, which a fingerprint has among the attributes
_LEFT_BEHIND = {
    "its mode": "the module is left in another mode, training or eval, than it was in",
    "its weights": "the weights of the module are other ones after the call",
    "gradients": "gradients are recorded on the way, and nobody needs them",
}


def _require_attributes(observation: ObservedReply) -> None:
    """Require the reference's attributes, and the module's state after the call.

    Raises CheckFailed. The message shows the attempt's value only if it is a truth value or None.
    """
    actual, expected = observation.actual.attributes, observation.expected.attributes
    for name in {**expected, **actual}:
        if actual.get(name) == expected.get(name):
            continue
        value = actual.get(name, "not there")
        if value not in ("True", "False", "None", "not there"):
            value = "something else"
        # a name that is no identifier is a phrase that the check has written
        subject = f"the attribute {name}" if name.isidentifier() else name
        message = f"{subject} should be {expected.get(name)}; yours is {value}"
        raise CheckFailed(_LEFT_BEHIND.get(name, message))


def _require_device(observation: ObservedReply) -> None:
    """Require that a call with meta tensors returns meta tensors, and uses no other device.

    Raises CheckFailed.
    """
    if message := device_error(observation):
        raise CheckFailed(message)


_CHANGED = "an argument was changed in place: the caller still needs it, so compute a new one"
_SQUARE = "on the way a tensor is made in which two axes are as long as the sequence"


def _oracle_of_field(
    field_name: ReplyField, if_empty: str, if_not_empty: str
) -> Callable[[ObservedReply], None]:
    """Return an oracle that requires the reference's value of one reply field.

    Args:
        field_name: the field.
        if_empty: the message if the reference's value is empty or False.
        if_not_empty: the message for all other values.
    """

    def compare_field(observation: ObservedReply) -> None:
        if not observation.actual.agrees(observation.expected, (field_name,)):
            expected_value = getattr(observation.expected, field_name)
            raise CheckFailed(if_not_empty if expected_value else if_empty)

    return compare_field


def pairs_of(calls: Sequence[ObservedReply]) -> list[ReplyPair]:
    """Return the first output of each call, the reference's and the attempt's.

    Only calls that the attempt answers count, and only if the reference's first output has numbers.
    """
    pairs = []
    for observation in calls:
        expected = first_of(observation.expected_outputs)
        if observation.reply.raised is None and expected is not None:
            answer = next(answers_of(observation.call, observation.reply))
            pairs.append((expected.double(), answer.output.double()))
    return pairs


def _require_relation(relation: Oracle, calls: Sequence[ObservedReply]) -> None:
    """Require a metamorphic relation between the answers to these calls. Raises CheckFailed.

    The relations in `OF_PAIRS` are tested for each output that all calls have: a later step of a
    call may depend on an input that the first step does not depend on. Others are tested for the
    first output. An output is not tested if `_outputs_at` returns none. In the message, EDIT is
    replaced by the difference between the first and the last call.
    """
    count = 1
    if relation in OF_PAIRS:
        count = min(len(observation.expected_outputs) for observation in calls)
    for position in range(count):
        pairs = _outputs_at(position, relation, calls)
        message = _RELATIONS[relation](pairs) if pairs else ""
        if EDIT in message:
            message = message.replace(EDIT, edit_of(calls[0].call, calls[-1].call))
        if message:
            raise CheckFailed(message)


def _outputs_at(position: int, relation: Oracle, calls: Sequence[ObservedReply]) -> list[ReplyPair]:
    """Return the output at a position of each call, the reference's and the attempt's.

    Return an empty list, so that the relation is not tested, in these cases:

    1. The attempt raised in one of the calls, or the reference has no such output with numbers.
    2. The reference's output is not finite: an attempt may write a mask's −inf as a low finite
       number, and the tolerance is relative to the largest number.
    3. The relation is "difference", and a call changed its arguments, which the other calls use,
       too, or the attempt's output is not finite.

    Raises CheckFailed if an output of the attempt has another type, or this one another shape.
    """
    pairs = []
    for observation in calls:
        if observation.reply.raised is not None or position >= len(observation.expected_outputs):
            return []
        expected = observation.expected_outputs[position]
        if expected is None or not bool(expected.isfinite().all()):
            return []
        _require_kinds(observation)
        answers = answers_of(observation.call, observation.reply)
        actual = next(islice(answers, position, None)).output
        assert_shape(actual, expected.shape)
        is_unusable = observation.reply.mutated or not bool(actual.isfinite().all())
        if relation == "difference" and is_unusable:
            return []
        pairs.append((expected.double(), actual.double()))
    return pairs


# Relations between pairs of calls. They are tested for each output, not only for the first.
OF_PAIRS: tuple[Oracle, ...] = ("stays", "moves", "parts")
# oracles that are applied to calls with an exception as well
_FOR_EXCEPTIONS: tuple[Oracle, ...] = ("answered", "refused", "device")
_RELATIONS: dict[Oracle, Callable[[Sequence[ReplyPair]], str]] = {
    "zeros": zeros_missed,
    "stays": violates_causality,
    "moves": misses_an_effect,
    "parts": parts_differ,
    "difference": difference_is_another,
    "dropped": dropout_differs,
    "left": survivors_differ,
    "struck": dropout_mask_differs,
}
_OF_ONE_CALL: dict[Oracle, Callable[[ObservedReply], None]] = {
    "answered": _require_answer,
    "refused": _require_refusal,
    "kind": _require_kinds,
    "shape": _require_shapes,
    "finite": _require_finite,
    "values": _require_values,
    "dtype": _require_dtypes,
    "parameters": _require_parameters,
    "attributes": _require_attributes,
    "gradients_arrive": gradients_arrive,
    "gradients": gradients,
    "argument_gradients_arrive": argument_gradients_arrive,
    "argument_gradients": argument_gradients,
    "adjoint": adjoint,
    "device": _require_device,
}
# fields of a reply that are compared by equality, with the messages of `_oracle_of_field`
_EVIDENCE = {
    "mutated": (_CHANGED, _CHANGED),
    "fused": (
        "PyTorch's fused attention is used where the math should be written out",
        "PyTorch's fused attention is not used",
    ),
    "softmax": (
        "PyTorch's softmax is used where it should be written out",
        "PyTorch's softmax is not used",
    ),
    "square": (_SQUARE, _SQUARE),
}
_OF_ONE_CALL |= {name: _oracle_of_field(name, *texts) for name, texts in _EVIDENCE.items()}

# Oracles that mutants of several misconceptions violate: for each a misconception, and a test of
# the numbers that identifies it.
_BY_NUMBERS: Mapping[Oracle, tuple[str, Callable[[Sequence[ObservedReply]], bool]]] = {
    "dropped": ("dropout_rate_fixed", lambda calls: is_dropped_at_another_rate(pairs_of(calls))),
    "zeros": ("mask_weak_fill", lambda calls: leaks_a_share(pairs_of(calls))),
    "values": (
        "mask_weak_fill",
        lambda calls: (
            fills_with_a_number(pairs_of(calls)) or fills_with_a_number(_added_to_argument(calls))
        ),
    ),
}


def shown_by_oracles(
    recording: FaultDictionary, observations: Mapping[int, ObservedReply]
) -> dict[int, str]:
    """Return the misconception that the first violated oracle of each visible check shows, by call.

    It is the first of these:

    1. the one that is recorded for the oracle (`OracleUse.means`): all mutants that violate the
       oracle share it;
    2. the one whose typical numbers the attempt's tensors have (`_shown_by_numbers`);
    3. the one of all mutants with wrong plain numbers (`_shown_by_plain_numbers`).

    The last call of the group that violates the oracle shows it. In case 3, all calls that violate
    the oracle show it, too.

    A check shows nothing if no mutant of the exercise has the misconception. It shows nothing
    either if an output has another type than the reference's, unless the oracle is about types. A
    check that runs last shows nothing if another one fails.
    """
    names: dict[int, str] = {}
    any_failed = False
    for check in sorted(recording.visible, key=lambda c: c.is_last):
        violation = first_violation(groups_of(check, observations), observations)
        if violation is None or (check.is_last and any_failed):
            continue
        any_failed = True
        use, calls = violation.use, [observations[i] for i in violation.calls]
        shown_calls = [violation.calls[-1]]
        name = use.means or _shown_by_numbers(use.oracle, calls)
        if not name:
            name = _shown_by_plain_numbers(recording, use, calls[-1])
            shown_calls += _violating_calls(use, observations) if name else []
        has_expected_types = all(e.actual.output_kinds == e.expected.output_kinds for e in calls)
        if name not in recording.ids or (use.oracle != "kind" and not has_expected_types):
            name = ""  # also in place of a misconception that an earlier check shows by this call
        names |= dict.fromkeys(shown_calls, name)
    return {i: name for i, name in names.items() if name}


def _shown_by_numbers(oracle: Oracle, calls: Sequence[ObservedReply]) -> str:
    """Return the misconception that the numbers of a violation show (`_BY_NUMBERS`), or "".

    The first output of each call must have numbers.
    """
    if oracle not in _BY_NUMBERS:
        return ""
    name, is_shown = _BY_NUMBERS[oracle]
    have_numbers = all(e.actual.outputs and e.actual.outputs[0].projections for e in calls)
    return name if have_numbers and is_shown(calls) else ""


def wrong_plain_numbers(response: Response) -> list[Candidate]:
    """Return evidence from each call with a wrong plain number, such as a count.

    Only calls of the oracle "values" are evidence, and only if `_shown_by_plain_numbers` returns a
    misconception. No wrong tensor elsewhere in the file can be the cause of a plain number. All
    calls of an oracle return the same types, so the last wrong one stands for all.
    """
    names: dict[int, str] = {}
    for use in chain.from_iterable(check.oracle_uses for check in response.recording.visible):
        if use.oracle != "values":
            continue
        wrong_calls = _violating_calls(use, response.written)
        if not wrong_calls:
            continue
        last_wrong_reply = response.written[wrong_calls[-1]]
        if name := _shown_by_plain_numbers(response.recording, use, last_wrong_reply):
            names |= dict.fromkeys(wrong_calls, name)
    return evidence("oracle", names)


def _violating_calls(use: OracleUse, observations: Mapping[int, ObservedReply]) -> list[int]:
    """Return the calls of an oracle that have a reply and violate the oracle, each tested alone."""
    calls = [i for i in chain.from_iterable(use.calls) if i in observations]
    return [i for i in calls if is_violated(use.oracle, [observations[i]])]


def _shown_by_plain_numbers(
    recording: FaultDictionary, use: OracleUse, observation: ObservedReply
) -> str:
    """Return the misconception of all mutants that give a wrong plain number in an oracle's calls.

    Plain numbers are outputs that are no tensors. A mutant gives a wrong one if its reply to some
    call of the oracle is wrong, and has the types of the reference's outputs in the observed call.

    Return "" if there are no such mutants, or if they have several misconceptions. Return "" also
    if the oracle is not "values", or if the reference returns a tensor to the observed call.

    Args:
        recording: the fault dictionary.
        use: the oracle with its calls.
        observation: a call that violates the oracle.
    """
    output_kinds = observation.expected.output_kinds
    if use.oracle != "values" or "tensor" in output_kinds:
        return ""
    calls, ids = {*chain.from_iterable(use.calls)}, set[str]()
    for m, mutant in enumerate(recording.mutants):
        replies = recording.answers(m, calls)
        if any(
            reply.output_kinds == output_kinds
            and not reply.agrees(recording.expected_reply(i), ("outputs",))
            for i, reply in replies.items()
        ):
            ids.add(mutant.id)
    return ids.pop() if len(ids) == 1 else ""


def _added_to_argument(calls: Sequence[ObservedReply]) -> list[ReplyPair]:
    """Return the difference between each answer and the first argument, such as a mask.

    In each pair, the reference's answer comes first. Only calls of `pairs_of` count, and only if
    the first argument is a tensor and both answers have its shape.
    """
    pairs = []
    for observation in calls:
        argument = next(iter(observation.call.args), None)
        for expected, actual in pairs_of([observation]):
            if isinstance(argument, Tensor) and argument.shape == expected.shape == actual.shape:
                pairs.append((expected - argument, actual - argument))
    return pairs


@dataclass(frozen=True)
class Violation:
    """A violated oracle, the group of calls that violates it, and the error with the evidence."""

    use: OracleUse
    calls: tuple[int, ...]
    error: CheckFailed


Group = tuple[OracleUse, tuple[int, ...]]


def groups_of(check: PublicCheck, calls: Container[int]) -> list[Group]:
    """Return each oracle of a check with each of its groups of which all calls are given."""
    return [
        (use, group)
        for use in check.oracle_uses
        for group in use.calls
        if all(map(calls.__contains__, group))
    ]


def first_violation(
    groups: Iterable[Group], observations: Mapping[int, ObservedReply]
) -> Violation | None:
    """Return the first violation in these groups, or None.

    Later ones are not looked for, because they may have the same cause.

    Args:
        groups: each the use of an oracle, with the indices of the calls that it compares.
        observations: the replies, by the index of the call.
    """
    for use, indices in groups:
        try:
            compare(use.oracle, [observations[i] for i in indices])
        except CheckFailed as error:
            return Violation(use, indices, error)
    return None
