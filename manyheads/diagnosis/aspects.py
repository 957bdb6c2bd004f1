"""Compare what a visible check compares, aspect by aspect: whether a call is answered, with which
shape, numbers, gradients.

A hidden check is code. On a student's machine stands, in its place, a list of aspects and of the
calls that each is asked of; `authoring.asked_aspects` chooses them so that both give the same
verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import cycle, islice, zip_longest

from torch import Tensor

from ..box.worker.answers import Output
from ..checks.answer import Answer, answers_of
from ..checks.asserts import NONE, assert_finite, assert_matches, assert_shape, label
from ..checks.outcome import REFUSAL_DUE, AttemptRaised, CheckFailed
from ..checks.projection import with_extremes
from .fingerprint import EVIDENCE, Evidence, Facet, has_no_numbers, is_argument
from .metamorphic import (
    EDIT,
    Pair,
    difference_is_another,
    dropped_otherwise,
    edit_of,
    left_otherwise,
    moves_too_little,
    moves_too_much,
    parts_differ,
    struck_otherwise,
    zeros_missed,
)
from .observe import Observed, first_of, looks_at_no_numbers, on_another_device
from .recording import Aspect

ROUNDING = 1e-5  # of two sums that are equal where a gradient is that of a linear function


def gradients_arrive(comparison: Observed) -> None:
    """Every gradient arrives that the reference has. Raises CheckFailed."""
    _arrive(comparison, list(comparison.right.gradients))


def gradients(comparison: Observed) -> None:
    """Every gradient is the reference's. Raises CheckFailed."""
    _agree(comparison, list(comparison.right.gradients))


def argument_gradients_arrive(comparison: Observed) -> None:
    """As `gradients_arrive`, of the tensors that are passed, where the answer has the reference's
    shape.

    With another one no gradient was asked for. A right attempt may copy all weights of the layers
    that are passed into a layer of torch's own, which works with a fused kernel: then none of their
    gradients is due. Raises CheckFailed.
    """
    shapes = [None if o.tensor is None else tuple(o.tensor.shape) for o in comparison.reply.outputs]
    if shapes == [o.shape for o in comparison.right.outputs]:
        held = [name for name in comparison.right.gradients if not is_argument(name)]
        is_used = any(comparison.found.gradients.get(name) is not None for name in held)
        operations = comparison.reply.operations
        is_copied = not is_used and operations is not None and operations.fused
        _arrive(comparison, [*_arguments(comparison), *(() if is_copied else held)])


def argument_gradients(comparison: Observed) -> None:
    """As `gradients`, of the tensors that are passed. Raises CheckFailed."""
    _agree(comparison, _arguments(comparison))


def adjoint(comparison: Observed) -> None:
    """Hold the gradient to the answer: it weighs the argument as the cotangent weighs the answer.

    So it is where a function is linear, whichever linear function it is. Raises CheckFailed.
    """
    (name, *others), cotangent = _arguments(comparison) or [""], comparison.call.cotangent
    mine, answers = (
        comparison.reply.gradients.get(name),
        [o.tensor for o in comparison.reply.outputs],
    )
    if (
        others
        or mine is None
        or not isinstance(cotangent, Tensor)
        or len(answers) != 1
        or answers[0] is None
    ):
        return
    answer, argument = answers[0], comparison.call.arguments[name]
    if (
        isinstance(argument, Tensor)
        and answer.shape == cotangent.shape
        and mine.shape == argument.shape
    ):
        weighed = answer.double() * cotangent
        off = float((weighed.sum() - (argument * mine.double()).sum()).abs())
        if not off <= ROUNDING * max(float(weighed.abs().sum()), 1e-30):
            raise CheckFailed("the gradient that comes back is not that of the output")


def _arguments(comparison: Observed) -> list[str]:
    return [name for name in comparison.right.gradients if is_argument(name)]


def _arrive(comparison: Observed, names: list[str]) -> None:
    mine, right = comparison.found.gradients, comparison.right.gradients
    cut = [name for name in names if right[name] is not None and mine.get(name) is None]
    if cut:
        raise CheckFailed(f"no gradient reaches {' and '.join(map(label, cut))}")


def _agree(comparison: Observed, names: list[str]) -> None:
    mine = {name: comparison.found.gradients.get(name) for name in names}
    right = {name: comparison.right.gradients[name] for name in names}
    found, expected = (
        replace(r, gradients=g) for r, g in ((comparison.found, mine), (comparison.right, right))
    )
    if not found.agrees(expected, ("gradients",)):
        raise CheckFailed("the gradients differ from the expected ones")


def compare(aspect: Aspect, calls: Sequence[Observed]) -> None:
    """Hold an attempt to one aspect of the reference's replies.

    Raises CheckFailed, with evidence.
    """
    if aspect in _RELATIONS:
        _relation(aspect, calls)
        return
    for call in calls:
        if aspect in _OF_WHAT_RAISED or (call.right.raised is None and call.reply.raised is None):
            _OF_ONE_CALL[aspect](call)


def is_broken(aspect: Aspect, calls: Sequence[Observed]) -> bool:
    """Return whether an attempt is not as the reference in one aspect."""
    if aspect in ("values", "values_of_a_kind") and any(
        _returns_another(aspect, call) for call in calls
    ):
        return True  # sooner than the evidence can be written
    try:
        compare(aspect, calls)
    except CheckFailed:
        return True
    return False


def _returns_another(aspect: Aspect, call: Observed) -> bool:
    if (
        call.right.raised is not None
        or call.reply.raised is not None
        or call.found.agrees(call.right, ("outputs",))
    ):
        return False
    return aspect == "values" or _is_of_a_kind(call)


def _answered(comparison: Observed) -> None:
    raised = comparison.reply.raised
    if (
        comparison.right.raised is None
        and raised is not None
        and not looks_at_no_numbers(comparison)
    ):
        raise AttemptRaised(raised)


def _refused(comparison: Observed) -> None:
    if comparison.right.raised != "refused":
        return
    if comparison.reply.raised is None:
        raise CheckFailed(
            "this should be refused, and is accepted in silence: raise a ValueError that names "
            "the numbers"
        )
    if comparison.found.raised != "refused":
        raise AttemptRaised(comparison.reply.raised, REFUSAL_DUE)


def _kind(comparison: Observed) -> None:
    if [o.kind for o in comparison.found.outputs] == [o.kind for o in comparison.right.outputs]:
        return
    Answer(comparison.call, comparison.reply).must_return()
    for mine, right in zip(
        answers_of(comparison.call, comparison.reply), comparison.right.outputs, strict=False
    ):
        if right.kind == NONE and mine.kind != NONE:
            raise CheckFailed(f"{mine.label} should be None; yours is {mine.returned}")
        if right.kind != mine.kind:
            raise mine.of_another_kind(right.kind, mine.kind)
        if right.kind == "tensor":
            _ = mine.outputs
    due, came = len(comparison.right.outputs), len(comparison.reply.outputs)
    raise CheckFailed(f"{due} result{'s' * (due != 1)} should come back; yours returns {came}")


def _shape(comparison: Observed) -> None:
    for (mine, part), right in zip(_labelled(comparison), comparison.right.outputs, strict=False):
        if mine.tensor is not None and right.shape is not None:
            assert_shape(mine.tensor, right.shape, part)


def _finite(comparison: Observed) -> None:
    is_odd = any(output.extremes for output in comparison.found.outputs)
    for (mine, part), expected in zip(
        _labelled(comparison), cycle(comparison.expected), strict=False
    ):
        if (
            is_odd
            and expected is not None
            and mine.tensor is not None
            and bool(expected.isfinite().all())
        ):
            assert_finite(mine.tensor, part)


def _values(comparison: Observed) -> None:
    _kind(comparison)
    agrees = comparison.found.agrees(comparison.right, ("outputs",))
    for mine, expected in zip(
        answers_of(comparison.call, comparison.reply), comparison.expected, strict=False
    ):
        if expected is None:
            continue
        # then only rounding is left to be seen: a finite fill that is low enough is the same as
        # −inf
        if agrees:
            assert_matches(with_extremes(mine.output), with_extremes(expected), mine.label)
        else:
            assert_matches(mine, expected)
    if not agrees:
        elsewhere = [
            o.device
            for o in comparison.reply.outputs
            if has_no_numbers(comparison.right) and o.device != "meta"
        ]
        said = (
            f"the output is on {elsewhere[0]}, and not on the device that was asked for"
            if elsewhere
            else ""
        )
        raise CheckFailed(said or "the output is not the expected one")


def _values_of_a_kind(comparison: Observed) -> None:
    """As `_values`, where both are truths or both numbers: who answers with the other kind may mean
    it otherwise.
    """
    if _is_of_a_kind(comparison):
        _values(comparison)


def _is_of_a_kind(comparison: Observed) -> bool:
    mine, right = (
        ["bool" in (d or "") for d in each.dtype] for each in (comparison.found, comparison.right)
    )
    return mine == right


def _dtype(comparison: Observed) -> None:
    if comparison.found.dtype == comparison.right.dtype:
        return
    for (_, part), mine, right in zip_longest(
        _labelled(comparison), comparison.found.dtype, comparison.right.dtype, fillvalue=("", "")
    ):
        if mine != right:
            raise CheckFailed(
                f"{part or 'the output'} should be {right}; yours is {mine or 'none'}"
            )


def _labelled(comparison: Observed) -> list[tuple[Output, str]]:
    labels = (answer.label for answer in answers_of(comparison.call, comparison.reply))
    return list(zip(comparison.reply.outputs, labels, strict=False))


def _parameters(comparison: Observed) -> None:
    mine, right = comparison.found.parameters, comparison.right.parameters
    extra, missing = sorted(mine.keys() - right.keys()), sorted(right.keys() - mine.keys())
    if extra or missing:
        raise CheckFailed(
            f"parameters too many: {extra or 'none'}; parameters missing: {missing or 'none'}"
        )
    if mine != right:
        raise CheckFailed("the parameters have other shapes than asked for")


_LEFT_BEHIND = {
    "its mode": "the module is left in another mode, training or eval, than it was in",
    "its weights": "the weights of the module are other ones after the call",
    "gradients": "gradients are recorded on the way, and nobody needs them",
}


def _attributes(comparison: Observed) -> None:
    mine, right = comparison.found.attributes, comparison.right.attributes
    for name in (name for name in {**right, **mine} if mine.get(name) != right.get(name)):
        due, came = right.get(name), mine.get(name, "not there")
        came = came if came in ("True", "False", "None", "not there") else "something else"
        # a check's own words, where it made it
        what = f"the attribute {name}" if name.isidentifier() else name
        raise CheckFailed(_LEFT_BEHIND.get(name, f"{what} should be {due}; yours is {came}"))


def _mutated(comparison: Observed) -> None:
    if comparison.found.mutated != comparison.right.mutated:
        raise CheckFailed(
            "an argument was changed in place: the caller still needs it, so compute a new one"
        )


def _device(comparison: Observed) -> None:
    """Of calls with meta tensors, which have no numbers: the answer has none either, and nothing of
    another device met it.
    """
    if evidence := on_another_device(comparison):
        raise CheckFailed(evidence)


def _is_as_recorded(facet: Facet, evidence: Evidence) -> Callable[[Observed], None]:
    def compare_facet(each: Observed) -> None:
        if not each.found.agrees(each.right, (facet,)):
            is_due = bool(getattr(each.right, facet))
            raise CheckFailed(evidence if isinstance(evidence, str) else evidence[is_due])

    return compare_facet


def pairs_of(calls: Sequence[Observed]) -> list[Pair]:
    """Return the first outputs of the reference and of an attempt, for calls that both answer."""
    return [
        (expected.double(), next(answers_of(call.call, call.reply)).output.double())
        for call in calls
        if call.reply.raised is None and (expected := first_of(call.expected)) is not None
    ]


def _relation(aspect: Aspect, calls: Sequence[Observed]) -> None:
    """Hold the answers to these calls together.

    Those to an edit, and those to a part of the input, are held together output by output: a later
    step of a call may hear what the first does not. A mask's −inf, which an attempt may write as a
    low finite number, cannot be held against a part of the largest number: where the reference's
    answer is not finite, nothing is asked.
    """
    count = min(len(call.expected) for call in calls) if aspect in OF_PAIRS else 1
    for output in range(count):
        pairs = _pairs_at(output, aspect, calls)
        evidence = _RELATIONS[aspect](pairs) if pairs else ""
        if evidence:
            difference = edit_of(calls[0].call, calls[-1].call) if EDIT in evidence else ""
            raise CheckFailed(evidence.replace(EDIT, difference))


def _pairs_at(output: int, aspect: Aspect, calls: Sequence[Observed]) -> list[Pair]:
    """Return one output of each call, the reference's and an attempt's; none if nothing is asked of
    it.
    """
    pairs = []
    for call in calls:
        expected = call.expected[output] if output < len(call.expected) else None
        if call.reply.raised is not None or expected is None or not bool(expected.isfinite().all()):
            return []
        _kind(call)
        mine = next(islice(answers_of(call.call, call.reply), output, None)).output
        assert_shape(mine, expected.shape)
        if aspect == "difference" and (call.reply.mutated or not bool(mine.isfinite().all())):
            return []  # one call of the three has changed what another is asked
        pairs.append((expected.double(), mine.double()))
    return pairs


OF_PAIRS: tuple[Aspect, ...] = ("stays", "moves", "parts")
# asked of calls that raised, too
_OF_WHAT_RAISED: tuple[Aspect, ...] = ("answered", "refused", "device")
_RELATIONS: dict[Aspect, Callable[[Sequence[Pair]], str]] = {
    "zeros": zeros_missed,
    "stays": moves_too_much,
    "moves": moves_too_little,
    "parts": parts_differ,
    "difference": difference_is_another,
    "dropped": dropped_otherwise,
    "left": left_otherwise,
    "struck": struck_otherwise,
}
_OF_ONE_CALL: dict[Aspect, Callable[[Observed], None]] = {
    "answered": _answered,
    "refused": _refused,
    "kind": _kind,
    "shape": _shape,
    "finite": _finite,
    "values": _values,
    "values_of_a_kind": _values_of_a_kind,
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
