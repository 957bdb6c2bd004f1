"""What a visible check compares, aspect by aspect: whether a call is answered, with which shape, with which numbers…

A hidden check is code. On a student's machine stands, in its place, a list of aspects and of the calls that each is
asked of; `authoring.aspects` chooses them so that both give the same verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle, zip_longest

from ..box.worker.answers import Output
from ..checks.answer import Answer, answers_of
from ..checks.asserts import NONE, assert_finite, assert_matches, assert_shape
from ..checks.failed import AttemptRaised, CheckFailed
from ..checks.projection import with_extremes
from ..diagnosis.compared import Compared, first_of
from ..diagnosis.fingerprint import EVIDENCE, Facet
from ..diagnosis.recording import Aspect
from .devices import looks_at_no_numbers, on_another_device
from .gradients import (
    adjoint,
    argument_gradients,
    argument_gradients_arrive,
    gradients,
    gradients_arrive,
)
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


def compare(aspect: Aspect, calls: Sequence[Compared]) -> None:
    """Hold an attempt to one aspect of the reference's replies. Raises CheckFailed, with evidence."""
    if aspect in _RELATIONS:
        _relation(_RELATIONS[aspect], calls)
        return
    for each in calls:
        if aspect in _OF_WHAT_RAISED or (each.right.raised is None and each.reply.raised is None):
            _OF_ONE_CALL[aspect](each)


def is_broken(aspect: Aspect, calls: Sequence[Compared]) -> bool:
    """Whether an attempt is not as the reference in one aspect."""
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
    raise CheckFailed("another number of results was expected")


def _shape(each: Compared) -> None:
    for (mine, label), right in zip(_labelled(each), each.right.outputs, strict=False):
        if mine.tensor is not None and right.shape is not None:
            assert_shape(mine.tensor, right.shape, label)


def _finite(each: Compared) -> None:
    for (mine, label), expected in zip(_labelled(each), cycle(each.expected), strict=False):
        if expected is not None and mine.tensor is not None and bool(expected.isfinite().all()):
            assert_finite(mine.tensor, label)


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
    for (_, label), mine, right in zip_longest(_labelled(each), each.found.dtype, each.right.dtype, fillvalue=("", "")):
        if mine != right:
            raise CheckFailed(f"{label or 'the output'} should be {right}; yours is {mine or 'none'}")


def _labelled(each: Compared) -> list[tuple[Output, str]]:
    """Each output, and what a student calls it."""
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


def _is_as_recorded(facet: Facet, evidence: str) -> Callable[[Compared], None]:
    def compare_facet(each: Compared) -> None:
        if not each.found.agrees(each.right, (facet,)):
            raise CheckFailed(evidence)

    return compare_facet


def pairs_of(calls: Sequence[Compared]) -> list[Pair]:
    """The first outputs of the reference and of an attempt, for calls that both answer."""
    return [
        (expected.double(), next(answers_of(each.call, each.reply)).output.double())
        for each in calls
        if each.reply.raised is None and (expected := first_of(each.expected)) is not None
    ]


def _relation(says: Callable[[Sequence[Pair]], str], calls: Sequence[Compared]) -> None:
    """Hold the answers to these calls together. A mask's −inf, which an attempt may write as a low finite number, cannot be
    held against a part of the largest number: where the reference's answer is not finite, nothing is asked."""
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
