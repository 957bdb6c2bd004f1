"""Asserts for checks. A failure says where and by how much, and shows no expected value.

`assert_moved_from` is for functions that only move numbers: a failure says which part of the input
stands in place of which. `changed_positions` serves metamorphic relations: it compares the answers
to an input and to the same input after an edit at one position.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, cast

import torch
from torch import Tensor

from ..box.worker.answer_call import output_of
from .answer import Answer, answers_of, plain, wide
from .explain_exceptions import SafeText
from .hidden_check import (
    REFUSAL_EXPECTED,
    AttemptRaised,
    CheckFailed,
    Evidence,
    Listed,
    Percent,
    Text,
)

# A fraction of the largest expected value. It leaves room for rounding in any order of operations.
TOLERANCE = 1e-5
SLIGHT = 1e-3  # a smaller difference may come from a wrong constant or dtype
REFUSALS = ("ValueError", "AssertionError")
NONE = "NoneType"  # the kind of a part that is None

__all__ = ["CheckFailed"]


def expect(condition: object, evidence: Text, suspect: str = "") -> None:
    """Fail with this evidence unless the condition holds.

    Example: `expect((weights >= 0).all(), "some weights are negative")`

    Args:
        condition: any value; its truth value counts.
        evidence: the sentence that the student reads. It says where and what kind, never an
            expected value. If it contains numbers that depend on the answer, pass an `Evidence`.
        suspect: the id of a misconception for which this failure alone is proof.
    """
    if not condition:
        raise CheckFailed(evidence, suspect)


def assert_matches(got: Answer | Tensor, want: object, name: Text = "") -> None:
    """Assert that the values agree to 1e-5 of the largest expected value. Infinities must be equal.

    If two answers have several parts, all parts must agree except those that are opaque.

    Example: `assert_matches(attempt.attend(q, k, v), attend_oracle(q, k, v))`

    Args:
        got: an answer of the attempt.
        want: an answer of the reference, or a value that the check computed: a tensor, an ndarray,
            a list of numbers, a text, a number.
        name: the name of the answer in messages; by default "the output", or the name of the part.
    """
    if isinstance(got, Answer) and isinstance(want, Answer) and not got.form.is_leaf:
        for leaf, expected_leaf in zip(got.leaves(), want.leaves(), strict=True):
            _assert_leaf(leaf, expected_leaf)
        return
    name = name or _label_of(got)
    actual, expected = _tensor(got), _tensor(want)
    assert_shape(actual, expected.shape, name)
    if actual.dtype != expected.dtype:
        actual, expected = actual.double(), expected.double()
    error = difference(actual, expected)
    if error > TOLERANCE:
        position, count = _worst_position_and_count(actual, expected)
        evidence = Evidence(
            "{} {}: {} of {} values differ, the most at {}{}",
            name,
            actual.shape,
            count,
            actual.numel(),
            position,
            _by(error),
        )
        if not actual.dim():
            evidence = Evidence(
                "{} is a single number, and not the expected one{}", name, _by(error)
            )
        raise CheckFailed(evidence, expected=(*expected.shape, expected.numel()))


def _assert_leaf(actual: Answer, expected: Answer) -> None:
    """Assert that one part matches. If one of the two parts is None, both must be None."""
    if expected.kind == NONE or actual.kind == NONE:
        if actual.kind != expected.kind:
            expected_type, yours = (
                "None" if side.kind == NONE else side.kind_in_words for side in (expected, actual)
            )
            raise CheckFailed(
                Evidence("{} should be {}; yours is {}", actual.label, expected_type, yours)
            )
        return
    assert_matches(actual, expected)


def assert_same(got: Answer | Tensor, second: Answer | Tensor, evidence: Text) -> None:
    """Assert that two answers of the attempt agree with each other. If not, `evidence` is shown.

    Example: `assert_same(attempt.merge_heads(heads), x, "merging does not undo the split")`

    Args:
        got: an answer of the attempt.
        second: another answer, or a tensor that follows from the attempt's answers or inputs.
        evidence: the sentence that the student reads.
    """
    a, b = _tensor(got), _tensor(second)
    if a.shape != b.shape or difference(a.double(), b.double()) > TOLERANCE:
        raise CheckFailed(evidence)


def assert_differs(
    got: Answer | Tensor, mistake: Answer | Tensor, evidence: Text, suspect: str = ""
) -> None:
    """Assert that an answer is not the result of a mistake. If it is, `evidence` is shown.

    Example: `assert_differs(got, attend_oracle(q, k, k), "the keys are mixed, not the values")`

    Args:
        got: an answer of the attempt.
        mistake: the result of the mistake.
        evidence: the sentence that the student reads.
        suspect: the id of a misconception for which this failure alone is proof.
    """
    expect(not agrees(got, mistake), evidence, suspect)


def agrees(got: Answer | Tensor, want: Answer | Tensor) -> bool:
    """Return whether two tensors have one shape, and values that `assert_matches` accepts.

    Example: `if agrees(attempt.rotate(x, positions), x): …`

    Args:
        got: an answer or a tensor.
        want: an answer or a tensor.
    """
    actual, expected = _tensor(got), _tensor(want)
    return actual.shape == expected.shape and difference(actual, expected) <= TOLERANCE


def assert_shape(
    got: Answer | Tensor, shape: torch.Size | tuple[int, ...], name: Text = ""
) -> None:
    """Assert that the answer has this shape.

    Example: `assert_shape(attempt.attend(q, k, v), (B, T, C))`

    Args:
        got: an answer of the attempt.
        shape: as Python writes it: `(B, T, C)`.
        name: the name of the answer in messages; by default "the output", or the name of the part.
    """
    actual, shape = _tensor(got), tuple(shape)
    name = name or _label_of(got)
    if actual.shape != shape:
        evidence = Evidence("{} should have shape {}; yours has {}", name, shape, actual.shape)
        raise CheckFailed(evidence, expected=shape)


def assert_tensor(got: Answer) -> None:
    """Assert that the answer is one tensor.

    Example: `assert_tensor(attempt.split_heads(x, n_head))`

    Args:
        got: an answer of the attempt.
    """
    is_tensor = got.kind == "tensor"
    evidence = Evidence("a tensor was expected; yours returned {}", got.kind_in_words)
    expect(is_tensor, evidence, "interface")


def assert_finite(got: Answer | Tensor, name: Text = "") -> None:
    """Assert that the answer, and each of its parts, has no NaN and no infinity.

    Example: `assert_finite(attempt.causal_weights(scores), "the weights")`

    Args:
        got: an answer of the attempt.
        name: the name of the answer in messages; by default "the output", or the name of the part.
    """
    if isinstance(got, Answer) and not got.form.is_leaf:
        for leaf in got.leaves():
            if leaf.kind != NONE:
                assert_finite(leaf)
        return
    actual = _tensor(got).double()
    name = name or _label_of(got)
    bad = ~actual.isfinite()
    if bad.any():
        anomaly = "NaN" if actual.isnan().any() else "infinite"
        first_index = tuple(int(i) for i in bad.nonzero()[0])
        evidence = Evidence(
            "{}: {} of {} values are {}, the first at {}",
            name,
            int(bad.sum()),
            actual.numel(),
            anomaly,
            first_index,
        )
        raise CheckFailed(evidence)


def assert_gradients_match(
    got: Answer, want: Answer, *names: str, suspect_if_cut: str = ""
) -> None:
    """Assert that the gradients of these names exist and agree.

    Differences are relative to the largest of all these gradients. So a gradient that is zero in
    exact arithmetic, such as the gradient of a key bias, is compared absolutely.

    Example:
    `got, want = (c.with_options(cotangent=g).attend(q, k, v) for c in (attempt, reference))`,
    then `assert_gradients_match(got, want, "args.0", "args.1")`.

    Args:
        got: an answer of the attempt with gradients: `attempt.with_options(cotangent=g)`.
        want: the answer of the reference to the same call.
        *names: at least one name: "args.0" for the first argument, "proj.weight" for a parameter,
            "then.0.args.0" for the first argument of the second call.
        suspect_if_cut: the id of a misconception that is proved if no gradient arrives at all.

    Raises:
        ValueError: if no name is given, or if the reference has no gradient of this name. This is
            an error of the check, so the message is for its author.
    """
    _demand_gradients(want, names)
    for leaf, cotangent in zip(answers_of(got.call, got.reply), got.call.cotangents, strict=False):
        if cotangent is not None:
            assert_shape(leaf, cotangent.shape)  # with another shape, there are no gradients
    expected_gradients = {name: want.gradient(name) for name in names}
    scale = max(
        (float(g.abs().max()) for g in expected_gradients.values() if g is not None), default=0.0
    )
    for name, expected in expected_gradients.items():
        actual = got.gradient(name)
        tensor_name = label(name)
        if actual is None:
            raise CheckFailed(
                Evidence(
                    "no gradient reaches {}: something cuts the graph on the way", tensor_name
                ),
                suspect_if_cut,
            )
        assert_shape(
            actual,
            expected.shape if expected is not None else actual.shape,
            Evidence("the gradient of {}", tensor_name),
        )
        target = torch.zeros_like(actual) if expected is None else expected
        error = difference(actual, target, scale)
        if error > TOLERANCE:
            evidence = Evidence(
                "the gradient of {} is not the expected one{}", tensor_name, _by(error)
            )
            raise CheckFailed(evidence)


def _demand_gradients(want: Answer, names: Sequence[str]) -> None:
    """Raise ValueError unless the reference has gradients of these names.

    The message is for the author of the check.
    """
    want.must_return()
    if not names:
        raise ValueError(
            'assert_gradients_match compares no gradient: name some, such as "args.0" or '
            '"proj.weight"'
        )
    if not any(cotangent is not None for cotangent in want.call.cotangents):
        raise ValueError(
            "the reference was asked for no gradient: ask both of them by with_options(cotangent=…)"
        )
    gradients = want.reply.gradients
    if gradients and (unknown := [name for name in names if name not in gradients]):
        raise ValueError(
            f'the reference has no gradient called "{unknown[0]}"; it has: {", ".join(gradients)}'
        )


def assert_refused(
    got: Answer, subject: Text, *, also: tuple[str, ...] = (), suspect: str = ""
) -> None:
    """Assert that the attempt raised ValueError or AssertionError.

    Example: `assert_refused(attempt.split_heads(draw(2, 6, 7), 3), "C = 7 with n_head = 3")`

    Args:
        got: an answer of the attempt to a call that it should refuse.
        subject: the reason to refuse, as the beginning of a sentence: "T = 0" gives "T = 0 is
            accepted in silence".
        also: names of further exceptions that are accepted, such as `("RuntimeError",)`. A
            NotImplementedError never is.
        suspect: the id of a misconception that is proved if nothing is raised.
    """
    raised = got.raised
    if raised is None:
        evidence = Evidence(
            "{} is accepted in silence: raise a ValueError that names the numbers", subject
        )
        raise CheckFailed(evidence, suspect)
    if "NotImplementedError" in raised.bases or not set(raised.bases) & {*REFUSALS, *also}:
        raise AttemptRaised(raised, REFUSAL_EXPECTED)


def assert_unmutated(got: Answer, suspect: str = "") -> None:
    """Assert that the call returned, and changed no argument in place.

    Example: `assert_unmutated(attempt.attend(q, k, v))`

    Args:
        got: an answer of the attempt.
        suspect: the id of the misconception that a changed argument proves.
    """
    got.must_return()
    if got.reply.mutated:
        names = Listed([label(name) for name in got.reply.mutated], " and ")
        evidence = Evidence("{} changed: the caller still needs it, so compute a new one", names)
        raise CheckFailed(evidence, suspect)


def difference(got: Tensor, want: Tensor, scale: float | None = None) -> float:
    """Return the largest difference as a fraction of `scale`, or itself if the scale is 0.

    Equal infinities agree, NaN agrees with nothing. The result is inf if the tensors differ in an
    infinity or a NaN, and 0 if they are empty.

    Args:
        got: the actual values.
        want: the expected values, of the same shape.
        scale: the default is the largest finite expected value, in absolute terms.
    """
    if got.numel() == 0:
        return 0.0
    got, want = got.double(), want.double()
    same = got == want
    if bool(same.all()):
        return 0.0
    finite = want[want.isfinite()].abs()
    if scale is None:
        scale = float(finite.max()) if finite.numel() else 0.0
    error = torch.where(same, 0.0, (got - want).abs())
    worst = float(error.max()) if bool(error.isfinite().all()) else float("inf")
    return worst / scale if scale > 0 else worst


def relative_change(original: Tensor, edited: Tensor) -> Tensor:
    """Return how much the output of each token changed, as a fraction of the largest output.

    Example: `change = relative_change(y.output, y_of_edited.output)`, then
    `expect(change[:, :t].max() < 1e-5, "it sees the future")`

    Args:
        original: (B, T, C), the output for the original input.
        edited: (B, T, C), the output for the edited input.

    Returns:
        (B, T).
    """
    original, edited = original.double().nan_to_num(), edited.double().nan_to_num()
    return (original - edited).abs().amax(-1) / original.abs().max().clamp(min=1e-30)


def _label_of(value: Answer | Tensor) -> str:
    """Return the name of this answer, or of this part of an answer, in messages."""
    return value.label if isinstance(value, Answer) else "the output"


def _tensor(value: object) -> Tensor:
    """Return a tensor, the output of an answer, or the numbers of another value."""
    if isinstance(value, Tensor):
        return value
    return (
        value.output if isinstance(value, Answer) else wide(cast("Tensor", output_of(value).tensor))
    )


def _worst_position_and_count(got: Tensor, want: Tensor) -> tuple[tuple[int, ...], int]:
    """Return the index of the largest difference, and the number of values that differ."""
    error = torch.where(got == want, 0.0, (got.double() - want.double()).abs()).nan_to_num(
        float("inf")
    )
    scale = float(want.double().abs().nan_to_num(0.0, 0.0, 0.0).max())
    flat = int(error.argmax())
    return tuple(int(i) for i in torch.unravel_index(torch.tensor(flat), error.shape)), int(
        (error > TOLERANCE * scale).sum()
    )


def _by(error: float) -> Text:
    """Return the end of a sentence about a slight error, or "" if the error is not slight."""
    if error >= SLIGHT:
        return ""
    return Evidence(", all by less than {} of the largest", Percent(SLIGHT, decimals=1))


_ORDINALS = "first second third fourth fifth sixth".split()
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}  # of 21st, 22nd, 23rd


def _ordinal(number: int) -> str:
    if number <= len(_ORDINALS):
        return _ORDINALS[number - 1]
    is_teen = number % 100 // 10 == 1  # 11th, 12th and 13th
    ending = "th" if is_teen else _ENDINGS.get(number % 10, "th")
    return f"{number}{ending}"


def label(name: str) -> SafeText:
    """Return the name of an argument or parameter for students: "the first argument"."""
    prefix, _, suffix = name.partition(".")
    if prefix == "then":
        step, _, argument = suffix.partition(".")
        return SafeText(f"{label(argument)} of call {int(step) + 2}")
    if prefix == "args":
        digits, _, key = suffix.partition(".")
        return SafeText(f"the {_ordinal(int(digits) + 1)} argument" + (f"'s {key}" if key else ""))
    if prefix == "kwargs":
        return SafeText(f"the argument {suffix}")
    return SafeText(name)


# An attempt under autocast must agree with the reference in float64 to these fractions of the
# largest expected value. On a CPU, right attempts at modules differ by at most 0.0013 in float16
# and 0.0115 in bfloat16, depending on where they round.
TOLERANCES = {"float16": 0.005, "bfloat16": 0.05}
HALF_PRECISION = tuple(TOLERANCES)


def assert_near(got: Answer, want: Answer, name: Text = "the output") -> None:
    """Assert that an answer under autocast is finite, and differs only by rounding.

    The size of this rounding is in `TOLERANCES`.

    Example: `assert_near(attempt.with_options(dtype="float32", autocast="float16").attend(q, k, v),
    reference.attend(q, k, v))`

    Args:
        got: an answer of the attempt under autocast.
        want: the reference's answer in float64.
        name: the name of the answer in messages.
    """
    dtype = got.call.autocast
    assert dtype is not None
    label = Evidence("under autocast in {}, {}", SafeText(dtype), name)
    assert_shape(got, want.output.shape, label)
    assert_finite(got, label)
    error = difference(got.output, want.output)
    if error > TOLERANCES[dtype]:
        evidence = Evidence(
            "{} differs by {} of the largest value; rounding explains {}",
            label,
            Percent(error, decimals=1),
            Percent(TOLERANCES[dtype], decimals=1),
        )
        raise CheckFailed(evidence)


Index = tuple[int, ...]
MOST_LISTED = 4  # numbers of one axis in a sentence; "…" stands for the others
# The distance of an answer's number from the input's number that it is. An attempt may have
# computed in float32.
SAME_NUMBER = 1e-6


def assert_moved_from(
    x: Tensor, got: Answer, expected: Tensor, axes: Sequence[str], into: Sequence[str]
) -> None:
    """Assert that every number of the answer comes from the right place of x.

    A failure names the first wrong part of the answer by its origin: "head 0, position 1 should
    hold channels 0…5 of position 1 of sequence 0; yours holds channels 6…11 of position 0 of
    sequence 0". The values decide. Origins are looked up only if values are wrong, because among
    many random numbers some are neighbours in float32.

    Example: `assert_moved_from(x, attempt.split_heads(x, n_head), split_oracle(x, n_head),
    axes=("sequence", "position", "channel"), into=("", "head", "position", "number"))`

    Args:
        x: the input. All its numbers differ.
        got: an answer of the attempt.
        expected: the numbers of x in their right order.
        axes: the name of each axis of x.
        into: the name of each axis of the answer. An axis with the name "" is not mentioned.
    """
    assert_shape(got, expected.shape)
    if difference(got.output, expected) <= TOLERANCE:
        return
    rows = zip(got.output.reshape(-1, expected.shape[-1]), expected.flatten(0, -2), strict=True)
    for row, (actual_row, expected_row) in enumerate(rows):
        leading = torch.unravel_index(torch.tensor(row), expected.shape[:-1])
        for run, sources in _runs(expected_row, x):
            if _origins(actual_row[run], x) != sources:
                label = _part_in_words(into, [int(i) for i in leading], run, expected.shape[-1])
                yours = _in_words(axes, _origins(actual_row[run], x))
                evidence = Evidence(
                    "{} should hold {}; yours holds {}", label, _in_words(axes, sources), yours
                )
                raise CheckFailed(evidence)
    assert_matches(got, expected)


def _runs(row: Tensor, x: Tensor) -> Iterator[tuple[slice, list[Index]]]:
    """Yield the parts of a row that come from one row of x, each with the origins."""
    start = 0
    for _, group in groupby(_origins(row, x), key=lambda source: source[:-1]):
        sources = list(group)
        yield slice(start, start + len(sources)), sources
        start += len(sources)


def _origins(numbers: Tensor, x: Tensor) -> list[Index]:
    """Return the index in x of each number, or [] if any number is not in x."""
    distances = (numbers[:, None] - x.flatten()).abs().nan_to_num(torch.inf)
    distance, nearest = distances.min(dim=1)
    if distance.max() > SAME_NUMBER:
        return []
    return [tuple(map(int, torch.unravel_index(i, x.shape))) for i in nearest]


def _part_in_words(names: Sequence[str], leading: Sequence[int], run: slice, width: int) -> Listed:
    """Return a part of an answer in words, such as "position 3, channels 6…11"."""
    words = [Evidence("{} {}", name, i) for name, i in zip(names, leading, strict=False) if name]
    if run.stop - run.start < width:
        words.append(_indices_in_words(names[-1], range(run.start, run.stop)))
    return Listed(words)


def _in_words(axes: Sequence[str], indices: Sequence[Index]) -> str | Listed:
    """Return indices of x in words, such as "channels 4…7 of position 0"."""
    if not indices:
        return "numbers that stand nowhere in the input"
    columns = zip(axes, zip(*indices, strict=True), strict=True)
    words = [_indices_in_words(axis, list(dict.fromkeys(numbers))) for axis, numbers in columns]
    return Listed(words[::-1], " of ")


def _indices_in_words(axis: str, numbers: Sequence[int]) -> Evidence:
    """Return the indices of one axis in words: "channel 4", "channels 4…7", "channels 1, 5"."""
    if len(numbers) == 1:
        return Evidence("{} {}", axis, numbers[0])
    if list(numbers) == list(range(numbers[0], numbers[-1] + 1)):
        return Evidence("{}s {}…{}", axis, numbers[0], numbers[-1])
    suffix = ", …" if len(numbers) > MOST_LISTED else ""
    return Evidence("{}s {}{}", axis, Listed(numbers[:MOST_LISTED]), suffix)


def changed_positions(
    original: Answer | Tensor,
    edited: Answer | Tensor,
    axes: int | Sequence[int],
    tolerance: float = 0,
) -> list[Any]:
    """Return the positions at which two answers differ.

    It states a metamorphic relation: if x is edited at one position, these are the positions that
    depend on it. Fails if the answers have different shapes.

    Example: `edited[:, t:] += 1`, then
    `later = changed_positions(attempt.attend(x), attempt.attend(edited), axes=1, tolerance=1e-5)`
    and `expect(min(later) >= t, …)`.

    Args:
        original: the answer to an input.
        edited: the answer to the same input after an edit.
        axes: the number of the axis along which positions are counted, or a tuple of several. With
            `axes=1` a position is a number, with `axes=(0, 1)` a tuple (sequence, token). All
            numbers along the other axes belong to the position.
        tolerance: as a fraction of the largest original number; a smaller difference is none.
    """
    assert_shape(edited, original.shape)
    a, b = plain(original), plain(edited)
    differs = (a - b).abs() > tolerance * a.abs().max() if tolerance else a != b
    position_axes = {axis % a.dim() for axis in ([axes] if isinstance(axes, int) else axes)}
    for axis in reversed(range(a.dim())):
        if axis not in position_axes:
            differs = differs.any(dim=axis)
    indices = differs.nonzero().tolist()
    return [i for (i,) in indices] if isinstance(axes, int) else [tuple(i) for i in indices]
