"""Metamorphic relations: not the numbers of the answers, but how the answers to several calls
belong together.

The calls of a check of causality or independence differ in an edit of the input, or one asks for a
part of what another asks for. What holds between the reference's answers must hold between an
attempt's: so an attempt that only scales wrongly is not told that it sees the future.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain, combinations, permutations, product

import torch
from torch import Tensor

from ..box.worker.messages import Build, Call, StandIn
from ..checks.asserts import label

_STAYS, _SAME = 1e-5, 1e-6  # of the largest value: in an attempt's answers, in the reference's
_MOVES = 1e-9
_LEFT = 1e-3  # of the largest value: what dropout leaves of several weights
_LEAST = 1e-30  # so that nothing is divided by 0

EDIT = "{edit}"  # in a sentence: in what the calls differ

Pair = tuple[Tensor, Tensor]  # the reference's answer to a call, and an attempt's


def relation_applies(first: Tensor, second: Tensor) -> bool:
    """Return whether the reference's answers to two calls have a relation to which an attempt's can
    be held.
    """
    edits = _edits([(first, first), (second, second)])
    return next(chain(_places(first, second), _places(second, first), edits), None) is not None


def zeros_missed(answers: Sequence[Pair]) -> str:
    """Return what to say where numbers are not 0 that are 0 in the reference's answers; "" where
    there are none.
    """
    for expected, actual in answers:
        zero = expected == 0
        missed = (
            int((zero & (actual.abs() > _STAYS * actual.abs().max())).sum())
            if actual.numel()
            else 0
        )
        if missed:
            count = int(zero.sum())
            if count == 1:
                return "the number that should be 0 has another value"
            return (
                f"{f'all {count}' if missed == count else f'{missed} of the {count}'} numbers that "
                "should be 0 have another value"
            )
    return ""


def leaks_a_share(answers: Sequence[Pair]) -> bool:
    """Return whether every row is the reference's weights, but for a share that all take from them
    that should be 0.

    As where these are hidden by a number that is not low enough.
    """
    for expected, actual in answers:
        if expected.shape != actual.shape or not bool(((expected.sum(-1) - 1).abs() < _SAME).all()):
            return False
        hidden = expected == 0
        share = actual.masked_fill(~hidden, 0).sum(-1, keepdim=True)
        seen_alike = bool(((actual - expected * (1 - share)).abs()[~hidden] < _SAME).all())
        if not seen_alike or not bool((actual[hidden] > 0).all()):
            return False
    return any(bool((expected == 0).any()) for expected, _ in answers)


def fills_with_a_number(answers: Sequence[Pair]) -> bool:
    """Return whether the answers are the reference's, but for one finite number below 0 wherever
    these are −inf.
    """
    if any(expected.shape != actual.shape for expected, actual in answers):
        return False
    filled = torch.cat(
        [torch.empty(0), *(actual[expected == -math.inf] for expected, actual in answers)]
    )
    if not len(filled) or not float(filled[0]) < -_SAME:
        return False
    rounding = _SAME * max(1.0, abs(float(filled[0])))
    if not bool(((filled - filled[0]).abs() < rounding).all()):
        return False
    return all(
        _is_near(expected[finite], actual[finite])
        for expected, actual in answers
        if (finite := expected.isfinite()).any()
    )


def violates_causality(answers: Sequence[Pair]) -> str:
    """Return what to say where numbers differ between two calls that are the same in the
    reference's answers.
    """
    for same, before, after in _edits(answers):
        apart, largest = (before - after).abs(), float(before.abs().max())
        moved = int(((apart > _STAYS * largest) & same).sum())
        if moved:
            unchanged = int(same.sum())
            amount = f"all {unchanged}" if moved == unchanged > 1 else f"{moved} of the {unchanged}"
            return f"{EDIT} changes {amount} numbers of the answer that should not depend on it"
    return ""


def misses_an_effect(answers: Sequence[Pair]) -> str:
    """Return what to say where an edit moves nothing at an index, along any axis, at which it moves
    the reference's answers.
    """
    for same, before, after in _edits(answers, all_may_move=True):
        apart, largest = (before - after).abs(), float(before.abs().max())
        for axis in range(same.dim()):
            other_axes = [d for d in range(same.dim()) if d != axis]
            must_move = (~same).sum(other_axes) > 0 if other_axes else ~same
            moves = (
                (apart > _MOVES * largest).sum(other_axes) > 0
                if other_axes
                else apart > _MOVES * largest
            )
            if bool((must_move & ~moves).any()):
                return f"{EDIT} leaves numbers as they were that it should change"
    return ""


def parts_differ(answers: Sequence[Pair]) -> str:
    """Return what to say where one answer is a part of another in the reference's answers and not
    in an attempt's.
    """
    for (full, actual), (fragment, found_alone) in permutations(answers, 2):
        for index in _places(full, fragment):
            inside = actual[index]
            if bool(((inside - found_alone).abs() > _STAYS * actual.abs().max()).any()):
                return "a part of the input gives something else when it stands alone"
    return ""


def _places(full: Tensor, fragment: Tensor) -> Iterator[tuple[int, ...]]:
    """Yield indices of the leading axes, one at most, at which the reference's whole answer holds
    the part.
    """
    leading = full.dim() - fragment.dim()
    if leading <= 0 or full.shape[leading:] != fragment.shape or not fragment.numel():
        return
    for index in product(*(range(size) for size in full.shape[:leading])):
        if bool(((full[index] - fragment).abs() <= _SAME * full.abs().max()).all()):
            yield index
            return


def _edits(
    answers: Sequence[Pair], all_may_move: bool = False
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield (where the reference's two answers are the same, an attempt's two), for answers that
    have something in common.
    """
    for (first, before), (second, after) in combinations(answers, 2):
        if first.shape == second.shape and first.dim():
            same = (first - second).abs() <= _SAME * first.abs().max()
            if all_may_move or bool(same.any()):
                yield same, before, after


def is_difference(first: Tensor, second: Tensor, number: Tensor) -> bool:
    """Return whether a number is the largest difference of two answers, and they do differ."""
    if (
        first.shape != second.shape
        or not first.dim()
        or number.dim()
        or not bool(number.abs() > _STAYS)
    ):
        return False
    return _is_largest_difference(first, second, number)


def difference_is_another(answers: Sequence[Pair]) -> str:
    """Return what is wrong where the third answer of the reference is the largest difference of the
    first two.

    "" if nothing is, or if the first two are wrong themselves, perhaps others in every call.
    """
    (expected, first), (other_right, second), (_, number) = answers
    if (
        not _is_near(expected, first)
        or not _is_near(other_right, second)
        or _is_largest_difference(first, second, number)
    ):
        return ""
    return f"the number that it gives is {_what_it_is(first, second, number)}"


def _what_it_is(first: Tensor, second: Tensor, number: Tensor) -> str:
    """Return what a number is that is not the largest difference of an attempt's own two
    answers.
    """
    apart = (first - second).abs().double()
    actual, largest, mean = float(number), float(apart.max()), float(apart.mean())
    if actual == 0:
        return "0, and the two answers differ"
    if actual < 0:
        return "below 0, as no absolute difference is"
    if math.isclose(actual, mean, rel_tol=_STAYS, abs_tol=_STAYS * largest):
        return "the mean of the absolute differences, not the largest of them"
    return "not the largest absolute difference of the two answers"


def dropped_otherwise(answers: Sequence[Pair]) -> str:
    """Return what is wrong where the extremes of many answers in training are not those that one in
    eval mode leads to; else "".

    Where the reference's numbers are each 0 or that in eval mode times one factor, so must an
    attempt's be, of its own number. Elsewhere nothing is said of an attempt whose answer in eval
    mode is another than the reference's.
    """
    (expected_eval, calm), (extremes, actual_extremes) = answers
    factor = _factor(expected_eval, extremes)
    if factor is None and not _is_near(expected_eval, calm):
        return ""
    required_extremes = extremes[:3] if factor is None else _struck_or_scaled(calm, factor)
    # Of a weight that dropout leaves alone, a future that is not quite hidden is a larger part: no
    # business of dropout's.
    if _is_near(
        required_extremes, actual_extremes[:3], _STAYS if factor is not None else _LEFT
    ) and not dropout_mask_differs([(extremes, actual_extremes)]):
        return ""
    return (
        "asked often in training, it does not give what dropout should leave: something is "
        "dropped too often, never, elsewhere or at another rate, or is not scaled up"
    )


def is_dropped_at_another_rate(answers: Sequence[Pair]) -> bool:
    """Return whether dropout is at work at another rate than the given one.

    Then each number that it leaves is the attempt's own in eval mode times one factor, which no
    dropout at the given rate
    makes: neither one too few nor too many, nor one at the rate of what should stay.
    """
    if len(answers) != 2:
        return False
    (expected_eval, calm), (extremes, actual_extremes) = answers
    expected_factor, actual_factor = (
        _factor(*pair) if len(pair[0]) == 1 else None
        for pair in ((expected_eval, extremes), (calm, actual_extremes))
    )
    if (
        expected_factor is None
        or actual_factor is None
        or expected_factor <= 1
        or actual_factor <= 1
    ):
        return False
    dropouts = (
        2 * math.log(actual_factor) / math.log(expected_factor)
    )  # by halves: two of them may be due
    stays = abs(1 - 1 / actual_factor - 1 / expected_factor) < _LEFT
    return not stays and abs(dropouts - round(dropouts)) > _LEFT


def dropout_mask_differs(answers: Sequence[Pair]) -> str:
    """Return what is wrong where dropout should strike out single numbers of an answer, and never
    does, or the other way round.

    Of the extremes of many answers in training: whatever their numbers are, and whatever else is
    dropped on the way.
    """
    for extremes, actual_extremes in answers:
        if bool((actual_extremes[3] < extremes[3]).any()):
            return (
                "asked often in training, single numbers of the answer are never dropped, and "
                "they should be"
            )
        if bool((actual_extremes[3] > extremes[3]).any()):
            return (
                "asked often in training, single numbers of the answer are dropped, and they "
                "should not be"
            )
    return ""


def survivors_differ(answers: Sequence[Pair]) -> str:
    """Return what is wrong where another share of the largest answer is left of the smallest one
    that is not 0.

    Of the extremes of many answers in training. A dropout of whole answers, which scales all of
    them, changes no share.
    """
    for extremes, actual_extremes in answers:
        expected_shares, actual_shares = (
            tensor[2] / tensor[:2].abs().amax(0).clamp_min(_LEAST)
            for tensor in (extremes, actual_extremes)
        )
        if not _is_near(expected_shares, actual_shares):
            return (
                "asked often in training, what dropout leaves of the answer is another part "
                "of it than it should be"
            )
    return ""


def _factor(eval_answer: Tensor, extremes: Tensor) -> float | None:
    if len(eval_answer) != 1 or not bool(eval_answer.any()):
        return None
    factor = float(extremes[2].norm() / eval_answer.norm())
    return factor if _is_near(extremes[:3], _struck_or_scaled(eval_answer, factor)) else None


def _struck_or_scaled(calm: Tensor, factor: float) -> Tensor:
    """Return the extremes of many answers in which each number is 0, or this one times the
    factor.
    """
    scaled = factor * calm[0]
    return torch.stack([scaled.clamp_max(0), scaled.clamp_min(0), scaled.abs()])


def _is_near(expected: Tensor, actual: Tensor, tolerance: float = _STAYS) -> bool:
    return bool(((expected - actual).abs() <= tolerance * expected.abs().max()).all())


def _is_largest_difference(first: Tensor, second: Tensor, number: Tensor) -> bool:
    """To rounding, which is all that the difference of two equal answers is."""
    apart = (first - second).abs().max()
    return bool((apart - number).abs() <= 1e-4 * apart + _SAME * first.abs().max())


def edit_of(first: Call, second: Call) -> str:
    """Return "an edit of the first argument in [:, 6:]", "another value of dropout in eval mode",
    "a second call".
    """
    first_inputs, two = _inputs(first), _inputs(second)
    builds = [call.subject for call in (first, second) if isinstance(call.subject, Build)]
    mode = " in eval mode" if builds and not any(build.training for build in builds) else ""
    values = []
    for name in first_inputs | two:
        first_value, second_value = first_inputs.get(name), two.get(name)
        if isinstance(first_value, Tensor) and isinstance(second_value, Tensor):
            if not torch.equal(first_value, second_value):
                return f"an edit of {label(name)}{_edited(first_value, second_value)}"
        elif repr(first_value) != repr(second_value):
            values.append(label(name))
    several = "a call with other values of" if len(values) > 1 else "another value of"
    return (f"{several} {' and '.join(values)}" if values else "a second call") + mode


def _inputs(call: Call) -> dict[str, object]:
    build, inputs = call.subject, dict[str, object]()
    if isinstance(build, Build):
        inputs = {
            f"argument {position} of {build.target}": value
            for position, value in enumerate(build.args, 1)
        }
        inputs |= {**build.kwargs, **build.attributes, **(build.state or {})}
    for name, value in call.arguments.items():
        weights = {
            f"{name}.{linear}": weight for linear, weight in getattr(value, "linears", {}).items()
        }
        inputs |= weights if isinstance(value, StandIn) else {name: value}
    return inputs


def _edited(before: Tensor, after: Tensor) -> str:
    """Return where two tensors differ, as Python writes it: " in [:, 6:]"; "" where that is
    everywhere, or in no one piece.
    """
    cuts = []
    for axis, size in enumerate(before.shape if before.shape == after.shape else ()):
        hit = (
            (before != after).movedim(axis, 0).reshape(size, -1).any(1).nonzero().flatten().tolist()
        )
        start, end = hit[0], hit[-1] + 1
        if len(hit) < end - start:
            return ""
        cuts.append(
            str(start) if len(hit) == 1 < size else f"{start or ''}:{end if end < size else ''}"
        )
    while cuts and cuts[-1] == ":":
        cuts.pop()
    return f" in [{', '.join(cuts)}]" if cuts else ""
