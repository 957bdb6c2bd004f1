"""Hidden checks of the reshape dance.

Head h holds channels h·hd … (h+1)·hd − 1 of every position.
"""

import re
from itertools import product

import torch

from manyheads.checks import (
    CheckFailed,
    assert_matches,
    assert_refused,
    assert_same,
    assert_shape,
    expect,
)
from manyheads.checks.asserts import TOLERANCE, difference

from . import _layers as marked
from ._functions import dtype, evidence_of_fixed_sizes, leaves_its_arguments, stays_on_the_device
from ._modules import Layers, Sizes, asked_of

LESSON = (2, 8, 4, 16)  # B, T, nh, hd of the lesson's example
BROKE_LATER = (
    r"is invalid for input of size|unflatten|stack expects|split_size|[Ss]izes of tensors must"
    r" match"
)
SPLIT, MERGE = "split_heads", "merge_heads"
ADDRESSES = {
    SPLIT: ("sequence", "position", "channel"),
    MERGE: ("sequence", "head", "position", "number"),
}


SIZES, LARGE = (
    Sizes(B=[7], T=[9, 11], nh=[5], hd=[6]),
    Sizes(B=(2, 3), T=(40, 64), nh=(9, 12), hd=(4, 6)),
)
layer = Layers(SIZES)


def input_shape(name, B, T, nh, hd):
    """Return the shape of the tensor that a function is given."""
    return (B, T, nh * hd) if name == SPLIT else (B, nh, T, hd)


def output_shape(name, B, T, nh, hd):
    """Return the shape of the tensor that a function returns."""
    return input_shape(MERGE if name == SPLIT else SPLIT, B, T, nh, hd)


def ask(candidate, name, x, nh):
    return candidate.call(name, x, nh) if name == SPLIT else candidate.call(name, x)


def drawn(draw, name):
    """Return arguments of either function by name."""
    s = vars(SIZES(draw))
    x = draw(*input_shape(name, **s))
    return {"x": x, "n_head": s["nh"]} if name == SPLIT else {"y": x}


def calls_of(draw):
    return {name: drawn(draw, name) for name in ADDRESSES}


def in_words(name, indices):
    """Return indices of an input in words, such as "channels 4…7 of position 0"."""
    words = []
    for axis, values in zip(ADDRESSES[name], zip(*indices, strict=True), strict=True):
        numbers = list(dict.fromkeys(values))
        listed = ", ".join(map(str, numbers[:4])) + ", …" * (len(numbers) > 4)
        are_consecutive = numbers == list(range(numbers[0], numbers[-1] + 1))
        several = f"{axis}s {numbers[0]}…{numbers[-1]}" if are_consecutive else f"{axis}s {listed}"
        words.append(several if len(numbers) > 1 else f"{axis} {numbers[0]}")
    return " of ".join(reversed(words))


def assert_moved(name, answer, x, expected, blocks):
    """Fail unless every number of the output came from the right index of x.

    The values decide. The index that a number came from is looked up only if its value is wrong,
    because two random numbers may be neighbours in float32.

    Args:
        blocks: for each block a label, its index in the output, and the right indices of x.
    """
    assert_shape(answer, expected.shape)
    got, flat = answer.output, x.flatten()
    if difference(got, expected) <= TOLERANCE:
        return
    for label, index, expected_sources in blocks:
        distance, nearest = (
            (got[index][:, None] - flat[None, :]).abs().nan_to_num(torch.inf).min(dim=1)
        )
        sources = [tuple(map(int, torch.unravel_index(i, x.shape))) for i in nearest]
        has_source = distance.max() <= 1e-6
        if sources != expected_sources or not has_source:
            yours = (
                in_words(name, sources) if has_source else "numbers that stand nowhere in the input"
            )
            expected_text = in_words(name, expected_sources)
            raise CheckFailed(f"{label} should hold {expected_text}; yours holds {yours}")
    assert_matches(answer, expected)


@marked.causality(0.5, "Which numbers lie next to each other in memory, and which axis may be cut?")
def keeps_positions(subject, attempt, draw):
    """keeps every position to itself when it splits"""
    s = SIZES(draw)
    x = draw(*input_shape(subject, **vars(s)))
    # Not in the middle, because the middle stays where it is if an axis is reversed.
    b, t = draw.integer(0, s.B // 2 - 1), draw.integer(1, s.T // 2 - 1)
    edited = x.clone()
    edited[b, ..., t, :] += 1 + draw(1).abs()
    baseline, after = (ask(attempt, subject, tokens, s.nh) for tokens in (x, edited))
    assert_shape(baseline, output_shape(subject, **vars(s)))
    assert_shape(after, output_shape(subject, **vars(s)))
    differs = (baseline.output != after.output).any(dim=-1)  # for each head, too, if they are split
    changed = (differs.any(dim=1) if subject == SPLIT else differs).nonzero().tolist()
    leaks = [f"position {j} of sequence {i}" for i, j in changed if (i, j) != (b, t)]
    evidence = f"a change at position {t} of sequence {b} should show there and nowhere else"
    expect(
        not leaks,
        f"{evidence}; yours shows it at"
        f" {' and '.join(leaks[:2])}{' and more' if leaks[2:] else ''}",
    )
    expect(changed, f"{evidence}; yours does not show it")


@marked.shape(0.25, "B, T, C = x.shape; then count the dimensions that you want.")
def shape(subject, attempt, draw):
    """split_heads(x, n_head) gives (B, n_head, T, head_dim)"""
    s = vars(SIZES(draw))
    answer = attempt.call(
        subject,
        draw(*input_shape(subject, **s)),
        **({"n_head": s["nh"]} if subject == SPLIT else {}),
    )
    expect(
        answer.kind == "tensor",
        f"a tensor was expected; yours returned {answer.returned}",
        "interface",
    )
    assert_shape(answer, output_shape(subject, **s))


test_split_shape = asked_of(SPLIT, shape)
test_merge_shape = asked_of(
    MERGE,
    shape,
    "merge_heads(y) gives (B, T, C)",
    "The heads go back beside the channels before the two are joined.",
)
test_split_keeps_positions = asked_of(SPLIT, keeps_positions)
test_merge_keeps_positions = asked_of(
    MERGE,
    keeps_positions,
    "keeps every position to itself when it merges",
    "Joining two axes joins neighbours. Which axes are neighbours in (B, nh, T, hd)?",
)


@layer.values(1.25, "view never moves data. Which axis must be unpacked first?")
def test_split_values(attempt, draw):
    """splits channels into heads"""
    for s in (SIZES(draw), LARGE(draw)):
        x = draw(s.B, s.T, s.nh * s.hd)
        expected = torch.stack([x[:, :, h * s.hd : (h + 1) * s.hd] for h in range(s.nh)], dim=1)
        assert_moved(SPLIT, attempt.call(SPLIT, x, s.nh), x, expected, blocks_of_split(s))


def blocks_of_split(s):
    """Yield the blocks of split_heads: a label, an index of the output, and the indices of x."""
    for b, h, t in product(range(s.B), range(s.nh), range(s.T)):
        sources = [(b, t, h * s.hd + d) for d in range(s.hd)]
        yield f"head {h}, position {t}", (b, h, t), sources


@layer.values(1.25, "The same dance backwards: heads back beside the channels, then join.")
def test_merge_values(attempt, draw):
    """lays the heads side by side again, in order"""
    for s in (SIZES(draw), LARGE(draw)):
        y = draw(s.B, s.nh, s.T, s.hd)
        expected = torch.cat([y[:, h] for h in range(s.nh)], dim=-1)
        assert_moved(MERGE, attempt.call(MERGE, y), y, expected, blocks_of_merge(s))


def blocks_of_merge(s):
    """Yield the blocks of merge_heads: a label, an index of the output, and the indices of y."""
    for b, t, h in product(range(s.B), range(s.T), range(s.nh)):
        start, stop = h * s.hd, (h + 1) * s.hd
        label = f"position {t}, channels {start}…{stop - 1}"
        yield label, (b, t, slice(start, stop)), [(b, h, t, d) for d in range(s.hd)]


@layer.values(0.25, "Undo the steps of split_heads, the last one first.")
def test_round_trip(attempt, draw, s):
    """undoes split_heads with merge_heads"""
    x = draw(s.B, s.T, s.nh * s.hd)
    heads = attempt.call(SPLIT, x, s.nh)
    assert_shape(heads, (s.B, s.nh, s.T, s.hd), "what split_heads gives")
    assert_same(
        attempt.call(MERGE, heads.output), x, "merge_heads(split_heads(x, n_head)) is not x"
    )


@layer.hygiene(0.25, "Take every size from the tensor that you are given.")
def test_any_size(attempt, reference, draw):
    """works for any sizes, one position, one head and one channel a head among them"""
    varied = draw.sizes(B=[5, 7], T=[11, 13], nh=[5, 7], hd=(9, 13))
    for name in ADDRESSES:

        def fault(sizes, name=name):
            answer = ask(attempt, name, draw(*input_shape(name, *sizes)), sizes[2])
            return (
                None
                if answer.raised is None and answer.output.shape == output_shape(name, *sizes)
                else answer
            )

        other_sizes = tuple(vars(varied).values())
        of_lesson, failure = fault(LESSON), fault(other_sizes)
        if failure:
            if not of_lesson and not (failure.raised and "ValueError" in failure.raised.bases):
                evidence, _ = evidence_of_fixed_sizes(fault, LESSON, other_sizes)
                raise CheckFailed(f"{name} {evidence}", "hard_coded_shape")
            assert_shape(failure, output_shape(name, *other_sizes))
        assert_shape(
            ask(attempt, name, draw(*input_shape(name, 2, 3, 4, 1)), 4),
            output_shape(name, 2, 3, 4, 1),
        )
        x = draw(*input_shape(name, 1, 1, 1, 5))
        assert_matches(ask(attempt, name, x, 1), ask(reference, name, x, 1))


@layer.gradients(
    0.25, "detach, .data, no_grad and a new torch.tensor all forget where numbers came from."
)
def test_gradients(attempt, draw):
    """lets gradients through both ways"""
    for name in ADDRESSES:
        x, *nh = drawn(draw, name).values()
        out = attempt.call(name, x, *nh).output
        expect(out.numel() == x.numel(), f"{name} should return as many numbers as it is given")
        g = draw(*out.shape)
        answer = attempt.asking(cotangent=g).call(name, x, *nh)
        gradient = answer.gradient("args.0")
        if gradient is None:
            follows = "float" in answer.dtype and bool(
                (attempt.call(name, 2 * x, *nh).output != out).any()
            )
            raise CheckFailed(
                f"no gradient comes back through {name}", "gradient_cut" if follows else ""
            )
        # Moving numbers is linear, so what reaches the input weighs it as g weighs the output.
        off = float(
            ((out * g).sum() - (x * gradient).sum()).abs() / (out * g).abs().sum().clamp_min(1e-30)
        )
        expect(
            off <= 1e-5, f"the gradient that comes back through {name} is not that of its output"
        )


@layer.hygiene(0.5, "Does n_head divide C? // rounds down without a sound, so ask first.")
def test_refuses_indivisible(attempt, draw):
    """refuses channels that do not divide into heads"""
    nh = draw.sizes(nh=[5, 7]).nh
    fine = attempt.call(SPLIT, draw(2, 6, nh * 7), nh)
    # Heads of 7 channels prove that n_head was used, so the calls below test the division.
    hears = fine.raised is None and (fine.kind != "tensor" or 7 in fine.output.shape)
    suspect = "divisibility_unchecked" if hears else ""
    for channels in (nh * 7 + draw.integer(1, nh - 1), nh - 1):
        answer = attempt.call(SPLIT, draw(2, 6, channels), nh)
        numbers, raised = f"C = {channels} with n_head = {nh}", answer.raised
        if (
            fine.raised is None
            and raised is not None
            and {"RuntimeError", "EinopsError"} & set(raised.bases)
        ):
            unseen = "EinopsError" in raised.bases or re.search(BROKE_LATER, raised.message)
            ends = (
                "ends in an error further down: check first, and"
                if unseen
                else "raises RuntimeError:"
            )
            raise CheckFailed(
                f"{numbers} {ends} raise a ValueError that names both numbers",
                suspect if unseen else "",
            )
        assert_refused(answer, numbers, suspect=suspect)


test_leaves_its_arguments = asked_of(
    calls_of, leaves_its_arguments, hint="Methods whose names end in _ change the tensor itself."
)
test_dtype = asked_of(
    calls_of,
    dtype,
    "returns the dtype that it is given",
    "A new tensor is float32 unless you say otherwise; better to make none.",
)
test_device = asked_of(
    calls_of,
    stays_on_the_device,
    "stays on the device of its argument",
    "A new tensor needs device=x.device; better to make none.",
)
