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


def are_related(first: Tensor, second: Tensor) -> bool:
    """Return whether the reference's answers to two calls have a relation to which an attempt's can
    be held.
    """
    edits = _edits([(first, first), (second, second)])
    return next(chain(_places(first, second), _places(second, first), edits), None) is not None


def zeros_missed(answers: Sequence[Pair]) -> str:
    """Return what to say where numbers are not 0 that are 0 in the reference's answers; "" where
    there are none.
    """
    for expected, found in answers:
        zero = expected == 0
        missed = (
            int((zero & (found.abs() > _STAYS * found.abs().max())).sum()) if found.numel() else 0
        )
        if missed:
            due = int(zero.sum())
            if due == 1:
                return "the number that should be 0 has another value"
            return (
                f"{f'all {due}' if missed == due else f'{missed} of the {due}'} numbers that "
                "should be 0 have another value"
            )
    return ""


def leaks_a_share(answers: Sequence[Pair]) -> bool:
    """Return whether every row is the reference's weights, but for a share that all take from them
    that should be 0.

    As where these are hidden by a number that is not low enough.
    """
    for expected, found in answers:
        if expected.shape != found.shape or not bool(((expected.sum(-1) - 1).abs() < _SAME).all()):
            return False
        hidden = expected == 0
        share = found.masked_fill(~hidden, 0).sum(-1, keepdim=True)
        seen_alike = bool(((found - expected * (1 - share)).abs()[~hidden] < _SAME).all())
        if not seen_alike or not bool((found[hidden] > 0).all()):
            return False
    return any(bool((expected == 0).any()) for expected, _ in answers)


def fills_with_a_number(answers: Sequence[Pair]) -> bool:
    """Return whether the answers are the reference's, but for one finite number below 0 wherever
    these are −inf.
    """
    if any(expected.shape != found.shape for expected, found in answers):
        return False
    filled = torch.cat(
        [torch.empty(0), *(found[expected == -math.inf] for expected, found in answers)]
    )
    if not len(filled) or not float(filled[0]) < -_SAME:
        return False
    rounding = _SAME * max(1.0, abs(float(filled[0])))
    if not bool(((filled - filled[0]).abs() < rounding).all()):
        return False
    return all(
        _is_near(expected[kept], found[kept])
        for expected, found in answers
        if (kept := expected.isfinite()).any()
    )


def moves_too_much(answers: Sequence[Pair]) -> str:
    """Return what to say where numbers differ between two calls that are the same in the
    reference's answers.
    """
    for same, before, after in _edits(answers):
        apart, largest = (before - after).abs(), float(before.abs().max())
        moved = int(((apart > _STAYS * largest) & same).sum())
        if moved:
            kept = int(same.sum())
            which = f"all {kept}" if moved == kept > 1 else f"{moved} of the {kept}"
            return f"{EDIT} changes {which} numbers of the answer that should not depend on it"
    return ""


def moves_too_little(answers: Sequence[Pair]) -> str:
    """Return what to say where an edit moves nothing at an index, along any axis, at which it moves
    the reference's answers.
    """
    for same, before, after in _edits(answers, all_may_move=True):
        apart, largest = (before - after).abs(), float(before.abs().max())
        for axis in range(same.dim()):
            others = [d for d in range(same.dim()) if d != axis]
            asked = (~same).sum(others) > 0 if others else ~same
            moves = (
                (apart > _MOVES * largest).sum(others) > 0 if others else apart > _MOVES * largest
            )
            if bool((asked & ~moves).any()):
                return f"{EDIT} leaves numbers as they were that it should change"
    return ""


def parts_differ(answers: Sequence[Pair]) -> str:
    """Return what to say where one answer is a part of another in the reference's answers and not
    in an attempt's.
    """
    for (whole, found), (part, found_alone) in permutations(answers, 2):
        for index in _places(whole, part):
            inside = found[index]
            if bool(((inside - found_alone).abs() > _STAYS * found.abs().max()).any()):
                return "a part of the input gives something else when it stands alone"
    return ""


def _places(whole: Tensor, part: Tensor) -> Iterator[tuple[int, ...]]:
    """Yield indices of the leading axes, one at most, at which the reference's whole answer holds
    the part.
    """
    leading = whole.dim() - part.dim()
    if leading <= 0 or whole.shape[leading:] != part.shape or not part.numel():
        return
    for index in product(*(range(size) for size in whole.shape[:leading])):
        if bool(((whole[index] - part).abs() <= _SAME * whole.abs().max()).all()):
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
    (right, first), (other_right, second), (_, number) = answers
    if (
        not _is_near(right, first)
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
    given, largest, mean = float(number), float(apart.max()), float(apart.mean())
    if given == 0:
        return "0, and the two answers differ"
    if given < 0:
        return "below 0, as no absolute difference is"
    if math.isclose(given, mean, rel_tol=_STAYS, abs_tol=_STAYS * largest):
        return "the mean of the absolute differences, not the largest of them"
    return "not the largest absolute difference of the two answers"


def dropped_otherwise(answers: Sequence[Pair]) -> str:
    """Return what is wrong where the extremes of many answers in training are not those that one in
    eval mode leads to; else "".

    Where the reference's numbers are each 0 or that in eval mode times one factor, so must an
    attempt's be, of its own number. Elsewhere nothing is said of an attempt whose answer in eval
    mode is another than the reference's.
    """
    (right, calm), (extremes, found) = answers
    factor = _factor(right, extremes)
    if factor is None and not _is_near(right, calm):
        return ""
    due = extremes[:3] if factor is None else _struck_or_scaled(calm, factor)
    # Of a weight that dropout leaves alone, a future that is not quite hidden is a larger part: no
    # business of dropout's.
    if _is_near(due, found[:3], _STAYS if factor is not None else _LEFT) and not struck_otherwise(
        [(extremes, found)]
    ):
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
    (right, calm), (extremes, found) = answers
    due, mine = (
        _factor(*each) if len(each[0]) == 1 else None for each in ((right, extremes), (calm, found))
    )
    if due is None or mine is None or due <= 1 or mine <= 1:
        return False
    dropouts = 2 * math.log(mine) / math.log(due)  # by halves: two of them may be due
    stays = abs(1 - 1 / mine - 1 / due) < _LEFT
    return not stays and abs(dropouts - round(dropouts)) > _LEFT


def struck_otherwise(answers: Sequence[Pair]) -> str:
    """Return what is wrong where dropout should strike out single numbers of an answer, and never
    does, or the other way round.

    Of the extremes of many answers in training: whatever their numbers are, and whatever else is
    dropped on the way.
    """
    for extremes, found in answers:
        if bool((found[3] < extremes[3]).any()):
            return (
                "asked often in training, single numbers of the answer are never dropped, and "
                "they should be"
            )
        if bool((found[3] > extremes[3]).any()):
            return (
                "asked often in training, single numbers of the answer are dropped, and they "
                "should not be"
            )
    return ""


def left_otherwise(answers: Sequence[Pair]) -> str:
    """Return what is wrong where another share of the largest answer is left of the smallest one
    that is not 0.

    Of the extremes of many answers in training. A dropout of whole answers, which scales all of
    them, changes no share.
    """
    for extremes, found in answers:
        due, mine = (
            each[2] / each[:2].abs().amax(0).clamp_min(_LEAST) for each in (extremes, found)
        )
        if not _is_near(due, mine):
            return (
                "asked often in training, what dropout leaves of the answer is another part "
                "of it than it should be"
            )
    return ""


def _factor(right: Tensor, extremes: Tensor) -> float | None:
    if len(right) != 1 or not bool(right.any()):
        return None
    factor = float(extremes[2].norm() / right.norm())
    return factor if _is_near(extremes[:3], _struck_or_scaled(right, factor)) else None


def _struck_or_scaled(calm: Tensor, factor: float) -> Tensor:
    """Return the extremes of many answers in which each number is 0, or this one times the
    factor.
    """
    scaled = factor * calm[0]
    return torch.stack([scaled.clamp_max(0), scaled.clamp_min(0), scaled.abs()])


def _is_near(right: Tensor, mine: Tensor, part: float = _STAYS) -> bool:
    return bool(((right - mine).abs() <= part * right.abs().max()).all())


def _is_largest_difference(first: Tensor, second: Tensor, number: Tensor) -> bool:
    """To rounding, which is all that the difference of two equal answers is."""
    apart = (first - second).abs().max()
    return bool((apart - number).abs() <= 1e-4 * apart + _SAME * first.abs().max())


def edit_of(first: Call, second: Call) -> str:
    """Return "an edit of the first argument in [:, 6:]", "another value of dropout in eval mode",
    "a second call".
    """
    one, two = _given(first), _given(second)
    builds = [call.subject for call in (first, second) if isinstance(call.subject, Build)]
    mode = " in eval mode" if builds and not any(build.training for build in builds) else ""
    values = []
    for name in one | two:
        mine, other = one.get(name), two.get(name)
        if isinstance(mine, Tensor) and isinstance(other, Tensor):
            if not torch.equal(mine, other):
                return f"an edit of {label(name)}{_edited(mine, other)}"
        elif repr(mine) != repr(other):
            values.append(label(name))
    several = "a call with other values of" if len(values) > 1 else "another value of"
    return (f"{several} {' and '.join(values)}" if values else "a second call") + mode


def _given(call: Call) -> dict[str, object]:
    build, given = call.subject, dict[str, object]()
    if isinstance(build, Build):
        given = {
            f"argument {place} of {build.target}": value
            for place, value in enumerate(build.args, 1)
        }
        given |= {**build.kwargs, **build.attributes, **(build.state or {})}
    for name, value in call.arguments.items():
        parts = {f"{name}.{part}": weight for part, weight in getattr(value, "linears", {}).items()}
        given |= parts if isinstance(value, StandIn) else {name: value}
    return given


def _edited(before: Tensor, after: Tensor) -> str:
    """Return where two tensors differ, as Python writes it: " in [:, 6:]"; "" where that is
    everywhere, or in no one piece.
    """
    cuts = []
    for axis, size in enumerate(before.shape if before.shape == after.shape else ()):
        hit = (
            (before != after).movedim(axis, 0).reshape(size, -1).any(1).nonzero().flatten().tolist()
        )
        first, end = hit[0], hit[-1] + 1
        if len(hit) < end - first:
            return ""
        cuts.append(
            str(first) if len(hit) == 1 < size else f"{first or ''}:{end if end < size else ''}"
        )
    while cuts and cuts[-1] == ":":
        cuts.pop()
    return f" in [{', '.join(cuts)}]" if cuts else ""
