"""Hidden checks of the reshape dance: head h holds channels h·hd … (h+1)·hd − 1 of every position."""

import torch

from grader.judge import (
    Layer,
    assert_gradients_match,
    assert_matches,
    assert_refused,
    assert_shape,
    assert_unmutated,
    check,
    expect,
)


def sizes_of(draw):
    """B, T, nh, hd that differ pairwise, so that no two axes can be mixed up unseen."""
    return draw.sizes(B=(2, 4), T=(5, 9), nh=(2, 4), hd=(3, 7))


def split_by_hand(x, nh):
    """The oracle: one number at a time."""
    B, T, C = x.shape
    hd = C // nh
    out = torch.empty(B, nh, T, hd, dtype=x.dtype)
    for b in range(B):
        for h in range(nh):
            for t in range(T):
                for c in range(hd):
                    out[b, h, t, c] = x[b, t, h * hd + c]
    return out


@check(points=0.5, layer=Layer.SHAPE)
def test_split_shape(attempt, draw):
    """split_heads gives (B, n_head, T, head_dim)"""
    s = sizes_of(draw)
    answer = attempt.call("split_heads", draw(s.B, s.T, s.nh * s.hd), s.nh)
    assert_shape(answer, (s.B, s.nh, s.T, s.hd))


@check(points=1.5, layer=Layer.VALUES, hint="view never moves data. Which axis must be unpacked first?")
def test_split_values(attempt, draw):
    """splits channels into heads"""
    s = sizes_of(draw)
    x = draw(s.B, s.T, s.nh * s.hd)
    answer = attempt.call("split_heads", x, s.nh)
    assert_matches(answer, split_by_hand(x, s.nh))


@check(points=0.5, layer=Layer.SHAPE)
def test_merge_shape(attempt, draw):
    """merge_heads gives (B, T, C)"""
    s = sizes_of(draw)
    assert_shape(attempt.call("merge_heads", draw(s.B, s.nh, s.T, s.hd)), (s.B, s.T, s.nh * s.hd))


@check(points=1.5, layer=Layer.VALUES)
def test_merge_values(attempt, reference, draw):
    """merges heads back beside each other"""
    s = sizes_of(draw)
    y = draw(s.B, s.nh, s.T, s.hd)
    assert_matches(attempt.call("merge_heads", y), reference.call("merge_heads", y))


@check(points=0.5, layer=Layer.GRADIENTS)
def test_gradients(attempt, reference, draw):
    """lets gradients through both ways"""
    s = sizes_of(draw)
    x, g = draw(s.B, s.T, s.nh * s.hd), draw(s.B, s.nh, s.T, s.hd)
    got, want = (c.asking(cotangent=g).call("split_heads", x, s.nh) for c in (attempt, reference))
    assert_gradients_match(got, want, "args.0", suspect_if_cut="gradient_cut")


@check(points=1, layer=Layer.HYGIENE)
def test_refuses_indivisible(attempt, draw):
    """refuses channels that do not divide into heads"""
    answer = attempt.call("split_heads", draw(2, 5, 7), 3)
    assert_refused(answer, "C = 7 with n_head = 3", suspect="divisibility_unchecked")


@check(points=0.5, layer=Layer.HYGIENE)
def test_leaves_its_arguments(attempt, draw):
    """leaves its arguments as they were"""
    x = draw(2, 5, 12)
    assert_unmutated(attempt.call("split_heads", x, 3), suspect="input_mutated")
    answer = attempt.asking(dtype="float32").call("split_heads", x, 3)
    expect(answer.dtype == "float32", f"float32 in should give float32 out; yours gives {answer.dtype}", "hard_coded_dtype")
