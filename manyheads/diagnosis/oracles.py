"""The oracles of visible checks: compare replies aspect by aspect, and interpret a violation.

A hidden check is code. A student's machine has a list of aspects instead, each with the calls that
it applies to. If all mutants that violate an aspect share one misconception, a violation shows this
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
from ..checks.hidden_check import REFUSAL_DUE, AttemptRaised, CheckFailed
from .fault_dictionary import (
    Candidate,
    FaultDictionary,
    Oracle,
    OracleUse,
    PublicCheck,
    Response,
    evidence,
)
from .fingerprint import EVIDENCE, Evidence, ReplyField, has_no_numbers, is_argument, with_extremes
from .metamorphic import (
    EDIT,
    ReplyPair,
    difference_is_another,
    dropout_mask_differs,
    dropped_otherwise,
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
from .observed_reply import ObservedReply, first_of, looks_at_no_numbers, on_another_device

ROUNDING = 1e-5  # relative difference of two sums that are equal for a linear function


def gradients_arrive(comparison: ObservedReply) -> None:
    """Require each gradient that the reference has. Raises CheckFailed."""
    _arrive(comparison, list(comparison.expected.gradients))


def gradients(comparison: ObservedReply) -> None:
    """Require that each gradient is the reference's. Raises CheckFailed."""
    _agree(comparison, list(comparison.expected.gradients))


def argument_gradients_arrive(comparison: ObservedReply) -> None:
    """Require the gradients of the tensors that are passed. Raises CheckFailed.

    Nothing is required if the answer has another shape than the reference's: then no gradient was
    computed. A correct attempt may copy all weights of the layers that are passed into one of
    torch's layers, which uses a fused kernel: then the gradients of these weights are not required.
    """
    shapes = [None if o.tensor is None else tuple(o.tensor.shape) for o in comparison.reply.outputs]
    if shapes == [o.shape for o in comparison.expected.outputs]:
        weights = [name for name in comparison.expected.gradients if not is_argument(name)]
        is_used = any(comparison.actual.gradients.get(name) is not None for name in weights)
        operations = comparison.reply.operations
        is_copied = not is_used and operations is not None and operations.fused
        _arrive(comparison, [*_arguments(comparison), *(() if is_copied else weights)])


def argument_gradients(comparison: ObservedReply) -> None:
    """Require that gradients of the tensors that are passed are right. Raises CheckFailed."""
    _agree(comparison, _arguments(comparison))


def adjoint(comparison: ObservedReply) -> None:
    """Require that the gradient belongs to the attempt's own answer. Raises CheckFailed.

    For every linear function, the inner product of gradient and argument equals the inner product
    of cotangent and answer.
    """
    (name, *other_names), cotangent = _arguments(comparison) or [""], comparison.call.cotangent
    gradient = comparison.reply.gradients.get(name)
    answers = [output.tensor for output in comparison.reply.outputs]
    if (
        other_names
        or gradient is None
        or not isinstance(cotangent, Tensor)
        or len(answers) != 1
        or answers[0] is None
    ):
        return
    answer, argument = answers[0], comparison.call.arguments[name]
    if (
        isinstance(argument, Tensor)
        and answer.shape == cotangent.shape
        and gradient.shape == argument.shape
    ):
        weighed = answer.double() * cotangent
        off = float((weighed.sum() - (argument * gradient.double()).sum()).abs())
        if not off <= ROUNDING * max(float(weighed.abs().sum()), 1e-30):
            raise CheckFailed("the gradient that comes back is not that of the output")


def _arguments(comparison: ObservedReply) -> list[str]:
    return [name for name in comparison.expected.gradients if is_argument(name)]


def _arrive(comparison: ObservedReply, names: list[str]) -> None:
    actual, expected = comparison.actual.gradients, comparison.expected.gradients
    cut = [name for name in names if expected[name] is not None and actual.get(name) is None]
    if cut:
        raise CheckFailed(f"no gradient reaches {' and '.join(map(label, cut))}")


def _agree(comparison: ObservedReply, names: list[str]) -> None:
    actual_gradients = {name: comparison.actual.gradients.get(name) for name in names}
    expected_gradients = {name: comparison.expected.gradients[name] for name in names}
    actual = replace(comparison.actual, gradients=actual_gradients)
    expected = replace(comparison.expected, gradients=expected_gradients)
    if not actual.agrees(expected, ("gradients",)):
        raise CheckFailed("the gradients differ from the expected ones")


def compare(aspect: Oracle, calls: Sequence[ObservedReply]) -> None:
    """Apply one oracle to these calls. Raises CheckFailed, with evidence, if it is violated."""
    if aspect in _RELATIONS:
        _relation(aspect, calls)
        return
    for call in calls:
        if aspect in _FOR_EXCEPTIONS or (call.is_allowed and call.reply.raised is None):
            _OF_ONE_CALL[aspect](call)


def is_broken(aspect: Oracle, calls: Sequence[ObservedReply]) -> bool:
    """Return whether an attempt violates an oracle."""
    if aspect == "values" and any(map(_has_other_values, calls)):
        return True  # faster than `compare`, which writes evidence
    try:
        compare(aspect, calls)
    except CheckFailed:
        return True
    return False


def _has_other_values(call: ObservedReply) -> bool:
    is_answered = call.is_allowed and call.reply.raised is None
    return is_answered and not call.actual.agrees(call.expected, ("outputs",))


def _answered(comparison: ObservedReply) -> None:
    raised = comparison.reply.raised
    if comparison.is_allowed and raised is not None and not looks_at_no_numbers(comparison):
        raise AttemptRaised(raised)


def _refused(comparison: ObservedReply) -> None:
    if comparison.expected.raised != "refused":
        return
    if comparison.reply.raised is None:
        raise CheckFailed(
            "this should be refused, and is accepted in silence: raise a ValueError that names "
            "the numbers"
        )
    if comparison.actual.raised != "refused":
        raise AttemptRaised(comparison.reply.raised, REFUSAL_DUE)


def _compare_kinds(comparison: ObservedReply) -> None:
    if comparison.actual.output_kinds == comparison.expected.output_kinds:
        return
    Answer(comparison.call, comparison.reply).must_return()
    for actual, expected in zip(
        answers_of(comparison.call, comparison.reply), comparison.expected.outputs, strict=False
    ):
        if expected.kind == NONE and actual.kind != NONE:
            raise CheckFailed(f"{actual.label} should be None; yours is {actual.returned}")
        if expected.kind != actual.kind:
            raise actual.wrong_type(expected.kind, actual.kind)
        if expected.kind == "tensor":
            _ = actual.outputs
    count, came = len(comparison.expected.outputs), len(comparison.reply.outputs)
    raise CheckFailed(f"{count} result{'s' * (count != 1)} should come back; yours returns {came}")


def _shape(comparison: ObservedReply) -> None:
    for (actual, output_name), expected in zip(
        _labelled(comparison), comparison.expected.outputs, strict=False
    ):
        if actual.tensor is not None and expected.shape is not None:
            assert_shape(actual.tensor, expected.shape, output_name)


def _finite(comparison: ObservedReply) -> None:
    is_odd = any(output.extremes for output in comparison.actual.outputs)
    for (actual, output_name), expected in zip(
        _labelled(comparison), cycle(comparison.expected_outputs), strict=False
    ):
        if (
            is_odd
            and expected is not None
            and actual.tensor is not None
            and bool(expected.isfinite().all())
        ):
            assert_finite(actual.tensor, output_name)


def _values(comparison: ObservedReply) -> None:
    _compare_kinds(comparison)
    agrees = comparison.actual.agrees(comparison.expected, ("outputs",))
    for actual, expected in zip(
        answers_of(comparison.call, comparison.reply), comparison.expected_outputs, strict=False
    ):
        if expected is None:
            continue
        # If the fingerprints agree, only rounding is left to compare. A finite fill that is low
        # enough is then the same as −inf.
        if agrees:
            assert_matches(with_extremes(actual.output), with_extremes(expected), actual.label)
        else:
            assert_matches(actual, expected)
    if not agrees:
        elsewhere = [
            o.device
            for o in comparison.reply.outputs
            if has_no_numbers(comparison.expected) and o.device != "meta"
        ]
        message = (
            f"the output is on {elsewhere[0]}, and not on the device that was asked for"
            if elsewhere
            else ""
        )
        raise CheckFailed(message or "the output is not the expected one")


def _dtype(comparison: ObservedReply) -> None:
    if comparison.actual.dtype == comparison.expected.dtype:
        return
    for (_, output_name), actual, expected in zip_longest(
        _labelled(comparison),
        comparison.actual.dtype,
        comparison.expected.dtype,
        fillvalue=("", ""),
    ):
        if actual != expected:
            raise CheckFailed(
                f"{output_name or 'the output'} should be {expected}; yours is {actual or 'none'}"
            )


def _labelled(comparison: ObservedReply) -> list[tuple[Output, str]]:
    labels = (answer.label for answer in answers_of(comparison.call, comparison.reply))
    return list(zip(comparison.reply.outputs, labels, strict=False))


def _parameters(comparison: ObservedReply) -> None:
    actual, expected = comparison.actual.parameters, comparison.expected.parameters
    extra, missing = (
        sorted(actual.keys() - expected.keys()),
        sorted(expected.keys() - actual.keys()),
    )
    if extra or missing:
        raise CheckFailed(
            f"parameters too many: {extra or 'none'}; parameters missing: {missing or 'none'}"
        )
    if actual != expected:
        raise CheckFailed("the parameters have other shapes than asked for")


_LEFT_BEHIND = {
    "its mode": "the module is left in another mode, training or eval, than it was in",
    "its weights": "the weights of the module are other ones after the call",
    "gradients": "gradients are recorded on the way, and nobody needs them",
}


def _attributes(comparison: ObservedReply) -> None:
    actual, expected = comparison.actual.attributes, comparison.expected.attributes
    for name in (name for name in {**expected, **actual} if actual.get(name) != expected.get(name)):
        expected_value, came = expected.get(name), actual.get(name, "not there")
        came = came if came in ("True", "False", "None", "not there") else "something else"
        # a name that is no identifier is a phrase that the check has written
        subject = f"the attribute {name}" if name.isidentifier() else name
        raise CheckFailed(
            _LEFT_BEHIND.get(name, f"{subject} should be {expected_value}; yours is {came}")
        )


def _mutated(comparison: ObservedReply) -> None:
    if comparison.actual.mutated != comparison.expected.mutated:
        raise CheckFailed(
            "an argument was changed in place: the caller still needs it, so compute a new one"
        )


def _device(comparison: ObservedReply) -> None:
    """Require that a call with meta tensors returns meta tensors, and uses no other device."""
    if evidence := on_another_device(comparison):
        raise CheckFailed(evidence)


def _is_as_recorded(facet: ReplyField, evidence: Evidence) -> Callable[[ObservedReply], None]:
    def compare_facet(observation: ObservedReply) -> None:
        if not observation.actual.agrees(observation.expected, (facet,)):
            is_due = bool(getattr(observation.expected, facet))
            raise CheckFailed(evidence if isinstance(evidence, str) else evidence[is_due])

    return compare_facet


def pairs_of(calls: Sequence[ObservedReply]) -> list[ReplyPair]:
    """Return the first outputs of the reference and of an attempt, for calls that both answer."""
    return [
        (expected.double(), next(answers_of(call.call, call.reply)).output.double())
        for call in calls
        if call.reply.raised is None and (expected := first_of(call.expected_outputs)) is not None
    ]


def _relation(aspect: Oracle, calls: Sequence[ObservedReply]) -> None:
    """Require a metamorphic relation between the answers to these calls. Raises CheckFailed.

    The relations in `OF_PAIRS` are tested for each output: a later step of a call may depend on an
    input that the first step does not depend on. If a reference's answer is not finite, nothing is
    tested: an attempt may write a mask's −inf as a low finite number, and the tolerance is relative
    to the largest number.
    """
    count = min(len(call.expected_outputs) for call in calls) if aspect in OF_PAIRS else 1
    for output in range(count):
        pairs = _pairs_at(output, aspect, calls)
        evidence = _RELATIONS[aspect](pairs) if pairs else ""
        if evidence:
            difference = edit_of(calls[0].call, calls[-1].call) if EDIT in evidence else ""
            raise CheckFailed(evidence.replace(EDIT, difference))


def _pairs_at(output: int, aspect: Oracle, calls: Sequence[ObservedReply]) -> list[ReplyPair]:
    """Return one output of each call, the reference's and the attempt's, or none to test nothing.

    Nothing is tested if one of the calls raised, or if the reference's output is not finite.
    """
    pairs = []
    for call in calls:
        expected = call.expected_outputs[output] if output < len(call.expected_outputs) else None
        if call.reply.raised is not None or expected is None or not bool(expected.isfinite().all()):
            return []
        _compare_kinds(call)
        actual = next(islice(answers_of(call.call, call.reply), output, None)).output
        assert_shape(actual, expected.shape)
        if aspect == "difference" and (call.reply.mutated or not bool(actual.isfinite().all())):
            return []  # one call of the three has changed the arguments of another
        pairs.append((expected.double(), actual.double()))
    return pairs


OF_PAIRS: tuple[Oracle, ...] = ("stays", "moves", "parts")
# oracles that are applied to calls with an exception as well
_FOR_EXCEPTIONS: tuple[Oracle, ...] = ("answered", "refused", "device")
_RELATIONS: dict[Oracle, Callable[[Sequence[ReplyPair]], str]] = {
    "zeros": zeros_missed,
    "stays": violates_causality,
    "moves": misses_an_effect,
    "parts": parts_differ,
    "difference": difference_is_another,
    "dropped": dropped_otherwise,
    "left": survivors_differ,
    "struck": dropout_mask_differs,
}
_OF_ONE_CALL: dict[Oracle, Callable[[ObservedReply], None]] = {
    "answered": _answered,
    "refused": _refused,
    "kind": _compare_kinds,
    "shape": _shape,
    "finite": _finite,
    "values": _values,
    "dtype": _dtype,
    "parameters": _parameters,
    "attributes": _attributes,
    "mutated": _mutated,
    "gradients_arrive": gradients_arrive,
    "gradients": gradients,
    "argument_gradients_arrive": argument_gradients_arrive,
    "argument_gradients": argument_gradients,
    "adjoint": adjoint,
    "device": _device,
}
_OF_ONE_CALL |= {facet: _is_as_recorded(facet, evidence) for facet, evidence in EVIDENCE.items()}

# Oracles that mutants of several misconceptions violate: for each a misconception, and a test of
# the numbers that identifies it.
_BY_NUMBERS: Mapping[Oracle, tuple[str, Callable[[Sequence[ObservedReply]], bool]]] = {
    "dropped": ("dropout_rate_fixed", lambda calls: is_dropped_at_another_rate(pairs_of(calls))),
    "zeros": ("mask_weak_fill", lambda calls: leaks_a_share(pairs_of(calls))),
    "values": (
        "mask_weak_fill",
        lambda calls: fills_with_a_number(pairs_of(calls)) or fills_with_a_number(_added(calls)),
    ),
}


def proven_by_aspect(
    recording: FaultDictionary, observations: Mapping[int, ObservedReply]
) -> dict[int, str]:
    """Return for each visible check the misconception that its first violated oracle shows.

    The result is keyed by the last call of the group that violates the oracle. The misconception is
    the one that all violating mutants share, or the one that the numbers show. A check that runs
    last shows nothing if another one fails.
    """
    names: dict[int, str] = {}
    for check in sorted(recording.visible, key=lambda c: c.is_last):
        broken = first_broken(groups_of(check, observations), observations)
        if broken is None or (check.is_last and names):
            continue
        ask, calls = broken.ask, [observations[i] for i in broken.calls]
        name = ask.means or _by_numbers(ask.oracle, calls)
        by_count = "" if name else _of_plain_numbers(recording, ask, calls[-1])
        name = name or by_count
        if ask.oracle != "kind" and any(
            e.actual.output_kinds != e.expected.output_kinds for e in calls
        ):
            name = ""
        names[broken.calls[-1]] = name if name in recording.ids else ""
        if by_count:
            names |= dict.fromkeys(_broken_calls(ask, observations), name)
    return {i: name for i, name in names.items() if name}


def _by_numbers(oracle: Oracle, calls: Sequence[ObservedReply]) -> str:
    """Return the misconception that the numbers of a violation show, or ""."""
    if oracle not in _BY_NUMBERS:
        return ""
    name, is_shown = _BY_NUMBERS[oracle]
    have_numbers = all(e.actual.outputs and e.actual.outputs[0].projections for e in calls)
    return name if have_numbers and is_shown(calls) else ""


def plain_numbers(response: Response) -> list[Candidate]:
    """Return for each wrong count the only misconception that miscounts there.

    A count is a plain number, so no wrong tensor elsewhere in the file is its cause.
    """
    names: dict[int, str] = {}
    for ask in chain.from_iterable(check.asks for check in response.recording.visible):
        calls = _broken_calls(ask, response.written) if ask.oracle == "values" else []
        for i in calls[-1:]:
            if name := _of_plain_numbers(response.recording, ask, response.written[i]):
                names |= dict.fromkeys(calls, name)
    return evidence("oracle", names)


def _broken_calls(ask: OracleUse, observations: Mapping[int, ObservedReply]) -> list[int]:
    """Return the calls that violate an oracle on their own."""
    calls = [i for i in chain.from_iterable(ask.calls) if i in observations]
    return [i for i in calls if is_broken(ask.oracle, [observations[i]])]


def _of_plain_numbers(
    recording: FaultDictionary, ask: OracleUse, observation: ObservedReply
) -> str:
    """Return the misconception of all mutants that return wrong plain numbers here.

    Return "" if they have several misconceptions, or if the call returns tensors.
    """
    output_kinds = observation.expected.output_kinds
    if ask.oracle != "values" or "tensor" in output_kinds:
        return ""
    indices, ids = {*chain.from_iterable(ask.calls)}, set[str]()
    for m, mutant in enumerate(recording.mutants):
        replies = recording.answers(m, indices)
        if any(
            reply.output_kinds == output_kinds
            and not reply.agrees(recording.expected_reply(i), ("outputs",))
            for i, reply in replies.items()
        ):
            ids.add(mutant.id)
    return ids.pop() if len(ids) == 1 else ""


def _added(calls: Sequence[ObservedReply]) -> list[ReplyPair]:
    return [
        (expected - argument, actual - argument)
        for call in calls
        for expected, actual in pairs_of([call])
        if isinstance(argument := next(iter(call.call.args), None), Tensor)
        and argument.shape == expected.shape == actual.shape
    ]


@dataclass(frozen=True)
class Violation:
    """A violated oracle, the group of calls that violates it, and the check's error."""

    ask: OracleUse
    calls: tuple[int, ...]
    error: CheckFailed


Group = tuple[OracleUse, tuple[int, ...]]


def groups_of(check: PublicCheck, calls: Container[int]) -> list[Group]:
    """Return the oracles of a check with each group of calls that has all replies."""
    return [
        (ask, group)
        for ask in check.asks
        for group in ask.calls
        if all(map(calls.__contains__, group))
    ]


def first_broken(
    groups: Iterable[Group], observations: Mapping[int, ObservedReply]
) -> Violation | None:
    """Return the first violated oracle, or None.

    Later oracles may be violated for the same reason.
    """
    for ask, group in groups:
        try:
            compare(ask.oracle, [observations[i] for i in group])
        except CheckFailed as error:
            return Violation(ask, group, error)
    return None
