"""Hidden checks of the reshape dance.

Head h holds channels h·hd … (h+1)·hd − 1 of every position.
"""

import re
from functools import partial

import pytest
import torch

from manyheads.checks import (
    CheckFailed,
    Evidence,
    Listed,
    assert_matches,
    assert_moved_from,
    assert_refused,
    assert_same,
    assert_shape,
    assert_tensor,
    changed_positions,
    check,
    expect,
    function_contract,
)

from ._functions import evidence_of_fixed_sizes

SIZES = {"B": [7], "T": [9, 11], "nh": [5], "hd": [6]}
LARGE = {"B": (2, 3), "T": (40, 64), "nh": (9, 12), "hd": (4, 6)}
LESSON = (2, 8, 4, 16)  # B, T, nh, hd of the lesson's example
BROKE_LATER = (
    r"is invalid for input of size|unflatten|stack expects|split_size|[Ss]izes of tensors must"
    r" match"
)


def split_oracle(x, n_head):
    """Return each head as a slice of the channels: no view, no transpose."""
    hd = x.shape[-1] // n_head
    return torch.stack([x[..., h * hd : (h + 1) * hd] for h in range(n_head)], dim=1)


def merge_oracle(y):
    """Return the heads side by side."""
    return torch.cat(y.unbind(1), dim=-1)


@pytest.fixture
def x(draw, sizes):
    """Return an input of split_heads."""
    return draw(sizes.B, sizes.T, sizes.nh * sizes.hd)


@pytest.fixture
def y(draw, sizes):
    """Return an input of merge_heads."""
    return draw(sizes.B, sizes.nh, sizes.T, sizes.hd)


def arguments(draw):
    """Return arguments of both functions by name."""
    s, z = draw.sizes(**SIZES), draw.sizes(**SIZES)
    return {
        "split_heads": {"x": draw(s.B, s.T, s.nh * s.hd), "n_head": s.nh},
        "merge_heads": {"y": draw(z.B, z.nh, z.T, z.hd)},
    }


@check(
    points=0.25, layer="shape", hint="B, T, C = x.shape; then count the dimensions that you want."
)
def test_split_shape(attempt, x, sizes):
    """split_heads(x, n_head) gives (B, n_head, T, head_dim)"""
    answer = attempt.split_heads(x, n_head=sizes.nh)
    assert_tensor(answer)
    assert_shape(answer, (sizes.B, sizes.nh, sizes.T, sizes.hd))


@check(
    points=0.25,
    layer="shape",
    hint="The heads go back beside the channels before the two are joined.",
)
def test_merge_shape(attempt, y, sizes):
    """merge_heads(y) gives (B, T, C)"""
    answer = attempt.merge_heads(y)
    assert_tensor(answer)
    assert_shape(answer, (sizes.B, sizes.T, sizes.nh * sizes.hd))


@check(
    points=0.5,
    layer="causality",
    hint="Which numbers lie next to each other in memory, and which axis may be cut?",
)
def test_split_keeps_positions(attempt, draw, x, sizes):
    """keeps every position to itself when it splits"""
    shape = (sizes.B, sizes.nh, sizes.T, sizes.hd)
    expect_positions_kept(lambda x: attempt.split_heads(x, sizes.nh), draw, x, shape, axes=(0, 2))


@check(
    points=0.5,
    layer="causality",
    hint="Joining two axes joins neighbours. Which axes are neighbours in (B, nh, T, hd)?",
)
def test_merge_keeps_positions(attempt, draw, y, sizes):
    """keeps every position to itself when it merges"""
    shape = (sizes.B, sizes.T, sizes.nh * sizes.hd)
    expect_positions_kept(attempt.merge_heads, draw, y, shape, axes=(0, 1))


def expect_positions_kept(function, draw, x, shape, axes):
    """Fail unless an edit at one position of x shows there in the answer, and nowhere else.

    Args:
        shape: the shape of the answer.
        axes: its axes of sequences and positions.
    """
    # Not in the middle, because the middle stays where it is if an axis is reversed.
    b, t = draw.integer(0, x.shape[0] // 2 - 1), draw.integer(1, x.shape[-2] // 2 - 1)
    edited = x.clone()
    edited[b, ..., t, :] += 1 + draw(1).abs()
    answer = function(x)
    answer_to_edited = function(edited)
    assert_shape(answer, shape)
    changed = changed_positions(answer, answer_to_edited, axes)
    leaks = [Evidence("position {} of sequence {}", j, i) for i, j in changed if (i, j) != (b, t)]
    evidence = Evidence(
        "a change at position {} of sequence {} should show there and nowhere else", t, b
    )
    suffix = " and more" if len(leaks) > 2 else ""
    expect(
        not leaks,
        Evidence("{}; yours shows it at {}{}", evidence, Listed(leaks[:2], " and "), suffix),
    )
    expect(changed, Evidence("{}; yours does not show it", evidence))


@check(
    points=1.25, layer="values", hint="view never moves data. Which axis must be unpacked first?"
)
def test_split_values(attempt, draw):
    """splits channels into heads"""
    for choices in (SIZES, LARGE):
        s = draw.sizes(**choices)
        x = draw(s.B, s.T, s.nh * s.hd)
        # A wrong number is reported by its origin: "head 0, position 1 should hold channels 0…5 of
        # position 1 of sequence 0; yours holds channels 6…11 of position 0 of sequence 0".
        assert_moved_from(
            x,
            attempt.split_heads(x, s.nh),
            split_oracle(x, s.nh),
            axes=("sequence", "position", "channel"),
            into=("", "head", "position", "number"),
        )


@check(
    points=1.25,
    layer="values",
    hint="The same dance backwards: heads back beside the channels, then join.",
)
def test_merge_values(attempt, draw):
    """lays the heads side by side again, in order"""
    for choices in (SIZES, LARGE):
        s = draw.sizes(**choices)
        y = draw(s.B, s.nh, s.T, s.hd)
        assert_moved_from(
            y,
            attempt.merge_heads(y),
            merge_oracle(y),
            axes=("sequence", "head", "position", "number"),
            into=("", "position", "channel"),
        )


@check(points=0.25, layer="values", hint="Undo the steps of split_heads, the last one first.")
def test_round_trip(attempt, x, sizes):
    """undoes split_heads with merge_heads"""
    heads = attempt.split_heads(x, sizes.nh)
    assert_shape(heads, (sizes.B, sizes.nh, sizes.T, sizes.hd), "what split_heads gives")
    assert_same(attempt.merge_heads(heads), x, "merge_heads(split_heads(x, n_head)) is not x")


@check(points=0.25, layer="hygiene", hint="Take every size from the tensor that you are given.")
def test_any_size(attempt, draw):
    """works for any sizes, one position, one head and one channel a head among them"""
    sizes = tuple(vars(draw.sizes(B=[5, 7], T=[11, 13], nh=[5, 7], hd=(9, 13))).values())
    for name in ("split_heads", "merge_heads"):
        ask = partial(answer_and_shape, attempt, draw, name)
        works_in_lesson = not is_unfit(*ask(LESSON))
        answer, shape = ask(sizes)
        if is_unfit(answer, shape):
            refuses = answer.raised is not None and "ValueError" in answer.raised.bases
            if works_in_lesson and not refuses:
                evidence, _ = evidence_of_fixed_sizes(
                    lambda s, ask=ask: is_unfit(*ask(s)), LESSON, sizes
                )
                raise CheckFailed(Evidence("{} {}", name, evidence), "hard_coded_shape")
            assert_shape(answer, shape)
        assert_shape(*ask((2, 3, 4, 1)))
        answer, shape = ask((1, 1, 1, 5))
        assert_matches(answer, answer.call.args[0].view(shape))  # nothing can move


def answer_and_shape(attempt, draw, name, sizes):
    """Return a function's answer to random numbers of these sizes, and the shape that is due."""
    B, T, nh, hd = sizes
    merged, split = (B, T, nh * hd), (B, nh, T, hd)
    if name == "split_heads":
        return attempt.split_heads(draw(*merged), nh), split
    return attempt.merge_heads(draw(*split)), merged


def is_unfit(answer, shape):
    """Return whether the function raised, or gave another shape."""
    return answer.raised is not None or answer.shape != shape


@check(
    points=0.25,
    layer="gradients",
    hint="detach, .data, no_grad and a new torch.tensor all forget where numbers came from.",
)
def test_gradients(attempt, draw):
    """lets gradients through both ways"""
    s = draw.sizes(**SIZES)
    expect_gradient(attempt, draw, "split_heads", draw(s.B, s.T, s.nh * s.hd), s.nh)
    s = draw.sizes(**SIZES)
    expect_gradient(attempt, draw, "merge_heads", draw(s.B, s.nh, s.T, s.hd))


def expect_gradient(attempt, draw, name, x, *n_head):
    """Fail unless the gradient of x weighs x as the cotangent weighs the output.

    Moving numbers is linear, so the two sums are equal.
    """
    out = attempt.call(name, x, *n_head).output
    expect(
        out.numel() == x.numel(), Evidence("{} should return as many numbers as it is given", name)
    )
    g = draw(*out.shape)
    answer = attempt.with_options(cotangent=g).call(name, x, *n_head)
    gradient = answer.gradient("args.0")
    if gradient is None:
        doubled = attempt.call(name, 2 * x, *n_head) if "float" in answer.dtype else out
        suspect = "gradient_cut" if (doubled != out).any() else ""
        raise CheckFailed(Evidence("no gradient comes back through {}", name), suspect)
    difference = ((out * g).sum() - (x * gradient).sum()).abs()
    is_right = difference <= 1e-5 * (out * g).abs().sum().clamp_min(1e-30)
    expect(
        is_right,
        Evidence("the gradient that comes back through {} is not that of its output", name),
    )


@check(
    points=0.5,
    layer="hygiene",
    hint="Does n_head divide C? // rounds down without a sound, so ask first.",
)
def test_refuses_indivisible(attempt, draw):
    """refuses channels that do not divide into heads"""
    nh = draw.sizes(nh=[5, 7]).nh
    fine = attempt.split_heads(draw(2, 6, nh * 7), nh)
    # Heads of 7 channels prove that n_head was used, so the calls below test the division.
    hears = fine.raised is None and (fine.kind != "tensor" or 7 in fine.shape)
    suspect = "divisibility_unchecked" if hears else ""
    for channels in (nh * 7 + draw.integer(1, nh - 1), nh - 1):
        answer = attempt.split_heads(draw(2, 6, channels), nh)
        numbers = Evidence("C = {} with n_head = {}", channels, nh)
        bases = set() if fine.raised or not answer.raised else {*answer.raised.bases}
        if "EinopsError" in bases or ("RuntimeError" in bases and breaks_later(answer)):
            evidence = "ends in an error further down: check first, and"
            raise CheckFailed(
                Evidence("{} {} raise a ValueError that names both numbers", numbers, evidence),
                suspect,
            )
        if "RuntimeError" in bases:
            evidence = "raises RuntimeError: raise a ValueError that names both numbers"
            raise CheckFailed(Evidence("{} {}", numbers, evidence))
        assert_refused(answer, numbers, suspect=suspect)


def breaks_later(answer):
    """Return whether PyTorch raised the exception, not the attempt."""
    return re.search(BROKE_LATER, answer.message)


CONTRACT = function_contract(
    arguments,
    points=0.25,
    leaves_its_arguments="Methods whose names end in _ change the tensor itself.",
    dtype=(
        "returns the dtype that it is given",
        "A new tensor is float32 unless you say otherwise; better to make none.",
    ),
    stays_on_the_device=(
        "stays on the device of its argument",
        "A new tensor needs device=x.device; better to make none.",
    ),
)
