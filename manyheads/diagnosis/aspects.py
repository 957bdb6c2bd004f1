"""Compare what a visible check compares, aspect by aspect: whether a call is answered, with which shape, numbers, gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import cycle, zip_longest

from torch import Tensor

from ..box.worker.answers import Output
from ..checks.answer import Answer, answers_of
from ..checks.asserts import NONE, assert_finite, assert_matches, assert_shape, label
from ..checks.outcome import AttemptRaised, CheckFailed
from ..checks.projection import with_extremes
from ..checks.sanitize import kind_name
from .compared import Compared, first_of
from .fingerprint import EVIDENCE, Evidence, Facet, is_argument
from .metamorphic import (
    Pair,
    difference_is_another,
    dropped_otherwise,
    left_otherwise,
    moves_too_little,
    moves_too_much,
    parts_differ,
    struck_otherwise,
    zeros_missed,
)
from .other_device import looks_at_no_numbers, on_another_device
from .recording import Aspect

# What a visible check compares of gradients.

ROUNDING = 1e-5  # of two sums that are equal where a gradient is that of a linear function


def gradients_arrive(each: Compared) -> None:
    """Every gradient arrives that the reference has. Raises CheckFailed."""
    _arrive(each, list(each.right.gradients))


def gradients(each: Compared) -> None:
    """Every gradient is the reference's. Raises CheckFailed."""
    _agree(each, list(each.right.gradients))


def argument_gradients_arrive(each: Compared) -> None:
    """As `gradients_arrive`, of the tensors that are passed, where the answer has the reference's shape.

    With another one no gradient was asked for. What layers that are passed hold may be copied by a right attempt, all of
    it or nothing. Raises CheckFailed.
    """
    shapes = [None if o.tensor is None else tuple(o.tensor.shape) for o in each.reply.outputs]
    if shapes == [o.shape for o in each.right.outputs]:
        held = [name for name in each.right.gradients if not is_argument(name)]
        is_used = any(each.found.gradients.get(name) is not None for name in held)
        _arrive(each, [*_arguments(each), *(held if is_used else ())])


def argument_gradients(each: Compared) -> None:
    """As `gradients`, of the tensors that are passed. Raises CheckFailed."""
    _agree(each, _arguments(each))


def adjoint(each: Compared) -> None:
    """Hold the gradient to the answer: it weighs the argument as the cotangent weighs the answer.

    So it is where a function is linear, whichever linear function it is. Raises CheckFailed.
    """
    (name, *others), cotangent = _arguments(each) or [""], each.call.cotangent
    mine, answers = each.reply.gradients.get(name), [o.tensor for o in each.reply.outputs]
    if others or mine is None or not isinstance(cotangent, Tensor) or len(answers) != 1 or answers[0] is None:
        return
    answer, argument = answers[0], each.call.arguments[name]
    if isinstance(argument, Tensor) and answer.shape == cotangent.shape and mine.shape == argument.shape:
        weighed = answer.double() * cotangent
        off = float((weighed.sum() - (argument * mine.double()).sum()).abs())
        if not off <= ROUNDING * max(float(weighed.abs().sum()), 1e-30):
            raise CheckFailed("the gradient that comes back is not that of the output")


def _arguments(each: Compared) -> list[str]:
    return [name for name in each.right.gradients if is_argument(name)]


def _arrive(each: Compared, names: list[str]) -> None:
    mine, right = each.found.gradients, each.right.gradients
    cut = [name for name in names if right[name] is not None and mine.get(name) is None]
    if cut:
        raise CheckFailed(f"no gradient reaches {' and '.join(map(label, cut))}")


def _agree(each: Compared, names: list[str]) -> None:
    mine = {name: each.found.gradients.get(name) for name in names}
    right = {name: each.right.gradients[name] for name in names}
    found, expected = (replace(r, gradients=g) for r, g in ((each.found, mine), (each.right, right)))
    if not found.agrees(expected, ("gradients",)):
        raise CheckFailed("the gradients differ from the expected ones")


# What a visible check compares, aspect by aspect: whether a call is answered, with which shape, with which numbers…
#
# A hidden check is code. On a student's machine stands, in its place, a list of aspects and of the calls that each is
# asked of; `authoring.asked_aspects` chooses them so that both give the same verdict.


def compare(aspect: Aspect, calls: Sequence[Compared]) -> None:
    """Hold an attempt to one aspect of the reference's replies. Raises CheckFailed, with evidence."""
    if aspect in _RELATIONS:
        _relation(_RELATIONS[aspect], calls)
        return
    for each in calls:
        if aspect in _OF_WHAT_RAISED or (each.right.raised is None and each.reply.raised is None):
            _OF_ONE_CALL[aspect](each)


def is_broken(aspect: Aspect, calls: Sequence[Compared]) -> bool:
    """Return whether an attempt is not as the reference in one aspect."""
    try:
        compare(aspect, calls)
    except CheckFailed:
        return True
    return False


def _answered(each: Compared) -> None:
    raised = each.reply.raised
    if each.right.raised is None and raised is not None and not looks_at_no_numbers(each):
        raise AttemptRaised(raised)


def _refused(each: Compared) -> None:
    if each.right.raised != "refused":
        return
    if each.reply.raised is None:
        raise CheckFailed(
            "this should be refused, and is accepted in silence: raise a ValueError that names the numbers"
        )
    if each.found.raised != "refused":
        raise AttemptRaised(each.reply.raised)


def _kind(each: Compared) -> None:
    if [o.kind for o in each.found.outputs] == [o.kind for o in each.right.outputs]:
        return
    Answer(each.call, each.reply).must_return()
    for mine, right in zip(answers_of(each.call, each.reply), each.right.outputs, strict=False):
        if right.kind == "tensor":
            _ = mine.outputs
        elif right.kind == NONE and mine.kind != NONE:
            raise CheckFailed(f"{mine.label} should be None; yours is {mine.returned}")
        elif right.kind != mine.kind:
            raise CheckFailed(
                f"{mine.label or 'the output'} should be {kind_name(right.kind)}; yours is {mine.returned}"
            )
    due, came = len(each.right.outputs), len(each.reply.outputs)
    raise CheckFailed(f"{due} result{'s' * (due != 1)} should come back; yours returns {came}")


def _shape(each: Compared) -> None:
    for (mine, part), right in zip(_labelled(each), each.right.outputs, strict=False):
        if mine.tensor is not None and right.shape is not None:
            assert_shape(mine.tensor, right.shape, part)


def _finite(each: Compared) -> None:
    for (mine, part), expected in zip(_labelled(each), cycle(each.expected), strict=False):
        if expected is not None and mine.tensor is not None and bool(expected.isfinite().all()):
            assert_finite(mine.tensor, part)


def _values(each: Compared) -> None:
    agrees = each.found.agrees(each.right, ("outputs",))
    for mine, expected in zip(answers_of(each.call, each.reply), each.expected, strict=False):
        if expected is None:
            continue
        if agrees:  # then only rounding is left to be seen: a finite fill that is low enough is the same as −inf
            assert_matches(with_extremes(mine.output), with_extremes(expected), mine.label)
        else:
            assert_matches(mine, expected)
    if not agrees:
        raise CheckFailed("the output is not the expected one")


def _values_of_a_kind(each: Compared) -> None:
    """As `_values`, where both are truths or both numbers: who answers with the other kind may mean it otherwise."""
    if ["bool" in (dtype or "") for dtype in each.found.dtype] == ["bool" in (d or "") for d in each.right.dtype]:
        _values(each)


def _dtype(each: Compared) -> None:
    if each.found.dtype == each.right.dtype:
        return
    for (_, part), mine, right in zip_longest(_labelled(each), each.found.dtype, each.right.dtype, fillvalue=("", "")):
        if mine != right:
            raise CheckFailed(f"{part or 'the output'} should be {right}; yours is {mine or 'none'}")


def _labelled(each: Compared) -> list[tuple[Output, str]]:
    """Return each output, and what a student calls it."""
    labels = (answer.label for answer in answers_of(each.call, each.reply))
    return list(zip(each.reply.outputs, labels, strict=False))


def _parameters(each: Compared) -> None:
    mine, right = each.found.parameters, each.right.parameters
    extra, missing = sorted(mine.keys() - right.keys()), sorted(right.keys() - mine.keys())
    if extra or missing:
        raise CheckFailed(f"parameters too many: {extra or 'none'}; parameters missing: {missing or 'none'}")
    if mine != right:
        raise CheckFailed("the parameters have other shapes than asked for")


def _mutated(each: Compared) -> None:
    if each.found.mutated != each.right.mutated:
        raise CheckFailed("an argument was changed in place: the caller still needs it, so compute a new tensor")


def _device(each: Compared) -> None:
    """Of calls with meta tensors, which have no numbers: the answer has none either, and nothing of another device met it."""
    if evidence := on_another_device(each):
        raise CheckFailed(evidence)


def _is_as_recorded(facet: Facet, evidence: Evidence) -> Callable[[Compared], None]:
    def compare_facet(each: Compared) -> None:
        if not each.found.agrees(each.right, (facet,)):
            is_due = bool(getattr(each.right, facet))
            raise CheckFailed(evidence if isinstance(evidence, str) else evidence[is_due])

    return compare_facet


def pairs_of(calls: Sequence[Compared]) -> list[Pair]:
    """Return the first outputs of the reference and of an attempt, for calls that both answer."""
    return [
        (expected.double(), next(answers_of(each.call, each.reply)).output.double())
        for each in calls
        if each.reply.raised is None and (expected := first_of(each.expected)) is not None
    ]


def _relation(says: Callable[[Sequence[Pair]], str], calls: Sequence[Compared]) -> None:
    """Hold the answers to these calls together.

    A mask's −inf, which an attempt may write as a low finite number, cannot be held against a part of the largest number:
    where the reference's answer is not finite, nothing is asked.
    """
    pairs = []
    for each in calls:
        expected = first_of(each.expected)
        if each.reply.raised is not None or expected is None or not bool(expected.isfinite().all()):
            return
        mine = next(answers_of(each.call, each.reply)).output
        assert_shape(mine, expected.shape)
        if says is difference_is_another and (each.reply.mutated or not bool(mine.isfinite().all())):
            return  # one call of the three has changed what another is asked
        pairs.append((expected.double(), mine.double()))
    if evidence := says(pairs):
        raise CheckFailed(evidence)


_OF_WHAT_RAISED: tuple[Aspect, ...] = ("answered", "refused", "device")  # asked of calls that raised, too
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
_OF_ONE_CALL: dict[Aspect, Callable[[Compared], None]] = {
    "answered": _answered,
    "refused": _refused,
    "kind": _kind,
    "shape": _shape,
    "finite": _finite,
    "values": _values,
    "values_of_a_kind": _values_of_a_kind,
    "dtype": _dtype,
    "parameters": _parameters,
    "mutated": _mutated,
    "gradients_arrive": gradients_arrive,
    "gradients": gradients,
    "argument_gradients_arrive": argument_gradients_arrive,
    "argument_gradients": argument_gradients,
    "adjoint": adjoint,
    "device": _device,
}
_OF_ONE_CALL |= {facet: _is_as_recorded(facet, evidence) for facet, evidence in EVIDENCE.items()}
