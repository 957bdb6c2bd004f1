"""Metamorphic relations between the answers to several calls, which wrong numbers may satisfy.

In a check of causality or independence, two calls differ in an edit of the input, or the input of
one is a part of the other's. A relation that holds between the reference's answers must hold
between the attempt's own answers. So an attempt with nothing but a wrong scale is not reported to
see the future.

Each relation is a function of pairs (the reference's answer to a call, the attempt's answer). It
returns a message if the relation is violated, and "" if not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations, permutations

import torch
from torch import Tensor

from ..box.worker.messages import Build, Call, StandIn
from ..checks.asserts import label

# Tolerances relative to the largest value.
_STAYS, _SAME = 1e-5, 1e-6  # two numbers are equal: in an attempt's answers, in the reference's
_MOVES = 1e-9  # two numbers of an attempt differ
_SURVIVORS = 1e-3  # two sums of the weights that survive dropout are equal
_DIFFERENCE = 1e-4  # two largest differences of answers are equal, relative to them
_LEAST = 1e-30  # so that nothing is divided by 0

# `observed_reply` summarises the answers to many copies of one input in four rows: the extremes.
# The first three have numbers, in this order; the last one has flags.
_MINIMUM, _MAXIMUM, _SMALLEST, _IS_DROPPED_ALONE = range(4)
_ROWS_OF_NUMBERS = slice(_SMALLEST + 1)

EDIT = "{edit}"  # stands in a message for the difference between the calls

ReplyPair = tuple[Tensor, Tensor]  # the reference's answer to a call, and an attempt's


def relation_applies(first: Tensor, second: Tensor) -> bool:
    """Return whether a relation between the answers to two calls can be tested.

    The reference's answers must have one shape and some equal numbers at the same index, or one
    must be a part of the other.
    """
    if _index_of(first, second) is not None or _index_of(second, first) is not None:
        return True
    same = _equal_entries(first, second)
    return same is not None and bool(same.any())


def zeros_missed(answers: Sequence[ReplyPair]) -> str:
    """Return a message if numbers that should be 0 are not 0, or "".

    The message is about the first answer with such numbers.
    """
    for expected, actual in answers:
        if not actual.numel():
            continue
        zero = expected == 0
        missed = int((zero & (actual.abs() > _STAYS * actual.abs().max())).sum())
        count = int(zero.sum())
        if missed and count == 1:
            return "the number that should be 0 has another value"
        if missed:
            amount = f"all {count}" if missed == count else f"{missed} of the {count}"
            return f"{amount} numbers that should be 0 have another value"
    return ""


def leaks_a_share(answers: Sequence[ReplyPair]) -> bool:
    """Return whether weights that should be 0 take a share, and scale the others down by it.

    This happens if a mask fills with a number that is not low enough. Return False if a shape is
    wrong, if the reference's rows are no weights (their sum is not 1), or if no weight should be 0
    in any answer.
    """
    for expected, actual in answers:
        if expected.shape != actual.shape:
            return False
        if not bool(((expected.sum(-1) - 1).abs() < _SAME).all()):
            return False
        hidden = expected == 0
        share = actual.masked_fill(~hidden, 0).sum(-1, keepdim=True)
        is_scaled = bool(((actual - expected * (1 - share)).abs()[~hidden] < _SAME).all())
        if not is_scaled or not bool((actual[hidden] > 0).all()):
            return False
    return any(bool((expected == 0).any()) for expected, _ in answers)


def fills_with_a_number(answers: Sequence[ReplyPair]) -> bool:
    """Return whether one number below 0 stands for each −inf of the reference's answers.

    All finite numbers must be the reference's. Return False if a shape is wrong, or if the
    reference's answers have no −inf.
    """
    if any(expected.shape != actual.shape for expected, actual in answers):
        return False
    fills = [actual[expected == -math.inf] for expected, actual in answers]
    filled = torch.cat([torch.empty(0), *fills])
    if not len(filled):
        return False
    number = float(filled[0])
    if not number < -_SAME:
        return False
    rounding = _SAME * max(1.0, abs(number))
    if not bool(((filled - filled[0]).abs() < rounding).all()):
        return False
    for expected, actual in answers:
        finite = expected.isfinite()
        if finite.any() and not _is_near(expected[finite], actual[finite]):
            return False
    return True


def violates_causality(answers: Sequence[ReplyPair]) -> str:
    """Return a message if an edit changes numbers of the answer that it must not change, or "".

    These are the numbers that are equal in the reference's two answers. EDIT stands for the edit.
    """
    for same, before, after in _edits(answers):
        apart, largest = (before - after).abs(), float(before.abs().max())
        moved = int(((apart > _STAYS * largest) & same).sum())
        if moved:
            unchanged = int(same.sum())
            amount = f"all {unchanged}" if moved == unchanged > 1 else f"{moved} of the {unchanged}"
            return f"{EDIT} changes {amount} numbers of the answer that should not depend on it"
    return ""


def misses_an_effect(answers: Sequence[ReplyPair]) -> str:
    """Return a message if an edit has no effect where it changes the reference's answer, or "".

    For each axis and each index in it: if the edit changes some number there in the reference's
    answer, it must change some number there in the attempt's. EDIT stands for the edit.
    """
    for same, before, after in _edits(answers, all_may_move=True):
        moves = (before - after).abs() > _MOVES * float(before.abs().max())
        for axis in range(same.dim()):
            must_move = _is_anywhere_at_index(~same, axis)
            if bool((must_move & ~_is_anywhere_at_index(moves, axis)).any()):
                return f"{EDIT} leaves numbers as they were that it should change"
    return ""


def _is_anywhere_at_index(mask: Tensor, axis: int) -> Tensor:
    """Return for each index of an axis whether the mask is True anywhere at it."""
    return mask.movedim(axis, 0).reshape(mask.shape[axis], -1).any(1)


def parts_differ(answers: Sequence[ReplyPair]) -> str:
    """Return a message if an answer differs from the part of another that it must equal, or "".

    If one of the reference's answers is a part of another one, the attempt's answer must be the
    same part of its other answer.
    """
    for (full, actual_full), (fragment, actual_fragment) in permutations(answers, 2):
        index = _index_of(full, fragment)
        if index is None:
            continue
        apart = (actual_full[index] - actual_fragment).abs()
        if bool((apart > _STAYS * actual_full.abs().max()).any()):
            return "a part of the input gives something else when it stands alone"
    return ""


def _index_of(full: Tensor, fragment: Tensor) -> tuple[int, ...] | None:
    """Return the first index in the leading axes of `full` at which `fragment` stands.

    Return None if it stands nowhere, or if `full` does not have more axes.
    """
    leading = full.dim() - fragment.dim()
    if leading <= 0 or full.shape[leading:] != fragment.shape or not full.numel():
        return None
    near = (full - fragment).abs() <= _SAME * full.abs().max()
    indices = near.reshape(*full.shape[:leading], -1).all(-1).nonzero().tolist()
    return tuple(indices[0]) if indices else None


def _edits(
    answers: Sequence[ReplyPair], all_may_move: bool = False
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield for each two calls a mask of equal numbers, and the attempt's two answers.

    The mask is `_equal_entries` of the reference's two answers. Two calls are skipped if they have
    no mask. Two calls without an equal number are skipped unless `all_may_move` is true.
    """
    for (first, before), (second, after) in combinations(answers, 2):
        same = _equal_entries(first, second)
        if same is not None and (all_may_move or bool(same.any())):
            yield same, before, after


def _equal_entries(answer: Tensor, edited: Tensor) -> Tensor | None:
    """Return a mask that is True where two answers have equal numbers at the same index.

    Return None if their shapes differ or have no axis.
    """
    if answer.shape != edited.shape or not answer.dim():
        return None
    return (answer - edited).abs() <= _SAME * answer.abs().max()


def is_difference(first: Tensor, second: Tensor, number: Tensor) -> bool:
    """Return whether a tensor is one number, the largest difference of two answers, and not 0.

    Return False also if the answers have different shapes, or no axes.
    """
    if first.shape != second.shape or not first.dim() or number.dim():
        return False
    return bool(number.abs() > _STAYS) and _is_largest_difference(first, second, number)


def difference_is_another(answers: Sequence[ReplyPair]) -> str:
    """Return a message if the third answer is not the largest difference of the first two, or "".

    Also return "" if one of the first two answers is wrong on its own, because then the relation
    shows nothing.
    """
    (expected_first, first), (expected_second, second), (_, number) = answers
    if not _is_near(expected_first, first) or not _is_near(expected_second, second):
        return ""
    if _is_largest_difference(first, second, number):
        return ""
    return f"the number that it gives is {_describe_number(first, second, number)}"


def _describe_number(first: Tensor, second: Tensor, number: Tensor) -> str:
    """Return a description of a number that should be the largest difference of two answers."""
    apart = (first - second).abs().double()
    actual, largest, mean = float(number), float(apart.max()), float(apart.mean())
    if actual == 0:
        return "0, and the two answers differ"
    if actual < 0:
        return "below 0, as no absolute difference is"
    if math.isclose(actual, mean, rel_tol=_STAYS, abs_tol=_STAYS * largest):
        return "the mean of the absolute differences, not the largest of them"
    return "not the largest absolute difference of the two answers"


def dropout_differs(answers: Sequence[ReplyPair]) -> str:
    """Return a message if dropout does not turn the eval answer into the training answers, or "".

    The answers are one in eval mode, and the extremes of many answers in training. If each training
    number of the reference is 0 or the eval number times one factor, the same must hold for the
    attempt, with its own eval number. Otherwise the attempt's extremes must be the reference's, and
    nothing is tested if its eval answer is wrong. In both cases it must zero single numbers where
    the reference does, and only there (`dropout_mask_differs`).
    """
    (expected_eval, actual_eval), (extremes, actual_extremes) = answers
    factor = _scale_of_survivors(expected_eval, extremes)
    if factor is None:
        if not _is_near(expected_eval, actual_eval):
            return ""
        # The tolerance is larger here. A mask may leave a tiny weight on hidden positions. If
        # dropout leaves one other weight, the tiny one is a larger share of the sum of the two.
        # That is no mistake in dropout.
        is_right = _is_near(
            extremes[_ROWS_OF_NUMBERS], actual_extremes[_ROWS_OF_NUMBERS], _SURVIVORS
        )
    else:
        is_right = _is_near(
            _dropped_or_scaled(actual_eval, factor), actual_extremes[_ROWS_OF_NUMBERS]
        )
    if is_right and not dropout_mask_differs([(extremes, actual_extremes)]):
        return ""
    return (
        "asked often in training, it does not give what dropout should leave: something is "
        "dropped too often, never, elsewhere or at another rate, or is not scaled up"
    )


def is_dropped_at_another_rate(answers: Sequence[ReplyPair]) -> bool:
    """Return whether dropout has another rate than the given one.

    The answers are those of `dropout_differs`; without exactly two, return False. Two conditions
    must hold:

    1. Each number that survives is the eval number times one factor above 1, in the reference's
       answers and in the attempt's.
    2. No dropout with the given rate gives the attempt's factor: neither one or several dropouts
       too few or too many, nor one whose rate is the share that should survive.
    """
    if len(answers) != 2:
        return False
    (expected_eval, actual_eval), (extremes, actual_extremes) = answers
    expected_factor = _scale_of_survivors(expected_eval, extremes)
    actual_factor = _scale_of_survivors(actual_eval, actual_extremes)
    if expected_factor is None or actual_factor is None:
        return False
    if expected_factor <= 1 or actual_factor <= 1:
        return False
    # Halves count as well: if the reference itself has two dropouts, a single one is a half.
    half_dropouts = 2 * math.log(actual_factor) / math.log(expected_factor)
    # A factor is 1 / (the share that survives).
    is_inverted = abs(1 - 1 / actual_factor - 1 / expected_factor) < _SURVIVORS
    return not is_inverted and abs(half_dropouts - round(half_dropouts)) > _SURVIVORS


def dropout_mask_differs(answers: Sequence[ReplyPair]) -> str:
    """Return a message if dropout zeroes single numbers and should not, or the reverse, or "".

    Each answer holds the extremes of many answers in training. Only its flags are compared.
    """
    for extremes, actual_extremes in answers:
        expected_flags = extremes[_IS_DROPPED_ALONE]
        flags = actual_extremes[_IS_DROPPED_ALONE]
        if bool((flags < expected_flags).any()):
            return (
                "asked often in training, single numbers of the answer are never dropped, and "
                "they should be"
            )
        if bool((flags > expected_flags).any()):
            return (
                "asked often in training, single numbers of the answer are dropped, and they "
                "should not be"
            )
    return ""


def survivors_differ(answers: Sequence[ReplyPair]) -> str:
    """Return a message if dropout leaves numbers whose sizes differ more, or less, than expected.

    Each answer holds the extremes of many answers in training. The smallest number that dropout
    leaves, divided by the largest, must be the same in the attempt as in the reference. This share
    does not change if dropout zeroes and scales whole answers. Return "" if nothing differs.
    """
    for expected, actual in answers:
        if not _is_near(_surviving_share(expected), _surviving_share(actual)):
            return (
                "asked often in training, the numbers that dropout leaves have other sizes than "
                "they should: is it applied to the tensor that the docstring names?"
            )
    return ""


def _surviving_share(extremes: Tensor) -> Tensor:
    """Return for each number its smallest absolute value that is not 0, divided by its largest."""
    largest = torch.maximum(extremes[_MINIMUM].abs(), extremes[_MAXIMUM].abs())
    return extremes[_SMALLEST] / largest.clamp_min(_LEAST)


def _scale_of_survivors(eval_answer: Tensor, extremes: Tensor) -> float | None:
    """Return the factor by which dropout scales each number that survives, or None.

    Return None if the training answers do not consist of zeros and scaled numbers of the eval
    answer. Return None also if the call in eval mode has several rows, which need not be copies of
    one input, or if its answer is 0.
    """
    if len(eval_answer) != 1 or not bool(eval_answer.any()):
        return None
    factor = float(extremes[_SMALLEST].norm() / eval_answer.norm())
    is_scaled = _is_near(extremes[_ROWS_OF_NUMBERS], _dropped_or_scaled(eval_answer, factor))
    return factor if is_scaled else None


def _dropped_or_scaled(eval_answer: Tensor, factor: float) -> Tensor:
    """Return the extremes of answers whose numbers are each 0 or the eval number times `factor`.

    These are the rows with numbers: the minimum, the maximum and the smallest absolute value.
    """
    scaled = factor * eval_answer[0]
    return torch.stack([scaled.clamp_max(0), scaled.clamp_min(0), scaled.abs()])


def _is_near(expected: Tensor, actual: Tensor, tolerance: float = _STAYS) -> bool:
    """Return whether two tensors are equal up to a fraction of the largest expected number."""
    return bool(((expected - actual).abs() <= tolerance * expected.abs().max()).all())


def _is_largest_difference(first: Tensor, second: Tensor, number: Tensor) -> bool:
    """Return whether a number is the largest difference of two answers, to rounding.

    If the two answers are equal, their difference is nothing but rounding, so the tolerance also
    depends on the size of the first answer.
    """
    largest = (first - second).abs().max()
    tolerance = _DIFFERENCE * largest + _SAME * first.abs().max()
    return bool((largest - number).abs() <= tolerance)


def edit_of(first: Call, second: Call) -> str:
    """Return a description of the difference between two calls.

    If tensors differ, it names the first one: "an edit of the first argument in [:, 6:]". Otherwise
    it names all values that differ: "another value of dropout". If nothing differs, it is "a second
    call". The last two end with " in eval mode" if the calls build modules, all in eval mode.
    """
    first_inputs, second_inputs = _inputs(first), _inputs(second)
    builds = [call.subject for call in (first, second) if isinstance(call.subject, Build)]
    mode = " in eval mode" if builds and not any(build.training for build in builds) else ""
    values = []
    for name in first_inputs | second_inputs:
        first_value, second_value = first_inputs.get(name), second_inputs.get(name)
        if isinstance(first_value, Tensor) and isinstance(second_value, Tensor):
            if not torch.equal(first_value, second_value):
                return f"an edit of {label(name)}{_edited_block(first_value, second_value)}"
        elif repr(first_value) != repr(second_value):
            values.append(label(name))
    if not values:
        return f"a second call{mode}"
    start = "another value of" if len(values) == 1 else "a call with other values of"
    return f"{start} {' and '.join(values)}{mode}"


def _inputs(call: Call) -> dict[str, object]:
    """Return all values that a call passes, by name: also to a constructor, and as weights.

    The attributes that a module gets are among them.
    """
    build, inputs = call.subject, dict[str, object]()
    if isinstance(build, Build):
        for position, value in enumerate(build.args, 1):
            inputs[f"argument {position} of {build.target}"] = value
        inputs |= {**build.kwargs, **build.attributes, **(build.state or {})}
    for name, value in call.arguments.items():
        if isinstance(value, StandIn):
            inputs |= {f"{name}.{linear}": weight for linear, weight in value.linears.items()}
        else:
            inputs[name] = value
    return inputs


def _edited_block(before: Tensor, after: Tensor) -> str:
    """Return the smallest block that contains all differences, as a Python index: " in [:, 6:]".

    Return "" if the block is the whole tensor, if the indices with a difference are not consecutive
    on some axis, or if the shapes differ. A single index is written as a number, and full axes at
    the end are left out. Tensors of one shape must differ somewhere.
    """
    if before.shape != after.shape:
        return ""
    changed, slices = before != after, list[str]()
    for axis, size in enumerate(before.shape):
        edited = _is_anywhere_at_index(changed, axis).nonzero().flatten().tolist()
        start, end = edited[0], edited[-1] + 1
        if len(edited) < end - start:  # there is a gap
            return ""
        if len(edited) == 1 and size > 1:
            slices.append(str(start))
        else:
            stop = end if end < size else ""
            slices.append(f"{start or ''}:{stop}")
    while slices and slices[-1] == ":":  # the last axes are edited everywhere
        slices.pop()
    return f" in [{', '.join(slices)}]" if slices else ""
