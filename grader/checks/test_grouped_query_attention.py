"""Hidden checks of grouped-query attention, and of the count of its cache."""

from types import SimpleNamespace

import torch

from manyheads.checks import (
    Layer,
    assert_finite,
    assert_matches,
    assert_refused,
    assert_same,
    assert_shape,
    check,
    expect,
)

from . import _again
from . import _undropped as shared
from ._shares import alike, by_head, heads_alike, shares_out


def with_sizes(s):
    """C and the width of kv, too."""
    s.C, s.of_kv = s.nh * s.hd, 2 * s.nkv * s.hd
    return s


def sizes_of(draw, **fixed):
    """Sizes that differ pairwise, kv's rows and the group among them, and none usual in lessons."""
    s = draw.sizes(B=[7], T=[9, 11], nh=[15], nkv=[3], hd=[4], block=[13, 17])
    return with_sizes(SimpleNamespace(**{**vars(s), **fixed}))


def large_sizes_of(draw):
    """More tokens and heads than anybody tries by hand, and another group."""
    s = draw.sizes(B=[2], T=(40, 60), nh=[12], nkv=[3], hd=[5], block=(61, 64))
    return with_sizes(s)


GQA = shared.Subject(
    "GroupedQueryAttention",
    arguments=lambda s: (s.C, s.nh, s.nkv, s.block),
    shapes=lambda s: {"q.weight": (s.C, s.C), "kv.weight": (s.of_kv, s.C), "proj.weight": (s.C, s.C)},
    mask=lambda s: (s.block, s.block),
)


def drawn(draw, s, T=None, scale=1.0):
    """Weights and an input of T tokens."""
    return GQA.weights(draw, s), draw(s.B, T or s.T, s.C, scale=scale)


def deep(draw, s):
    """Weights and an input with which all scores of all heads are near -44: channel 0 is 1 in every token."""
    weights, x = drawn(draw, s)
    rows, group = s.nkv * s.hd, s.nh // s.nkv
    directions = draw(s.nkv, s.hd)
    directions *= (44 * s.hd**0.5) ** 0.5 / directions.norm(dim=-1, keepdim=True)
    weights["q.weight"] *= 0.1
    weights["kv.weight"][:rows] *= 0.1
    weights["q.weight"][:, 0] = directions.repeat_interleave(group, dim=0).flatten()
    weights["kv.weight"][:rows, 0] = -directions.flatten()
    x[..., 0] = 1.0
    return weights, x


def steep(draw, s):
    """Weights and an input whose scores climb from -44.5 to 44.5 with the key's position, in every head."""
    weights, x = drawn(draw, s)
    rows = s.nkv * s.hd
    weights["q.weight"].zero_()[:: s.hd, 0] = 44.5 * s.hd**0.5
    weights["kv.weight"][:rows].zero_()[:: s.hd, 1] = 1.0
    place = torch.arange(s.T, dtype=torch.float64)
    x[..., 0], x[..., 1] = 1.0, (2 * place - (s.T - 1)) / (s.T - 1)
    return weights, x


def both(attempt, reference, s, weights, x):
    return (GQA.module(each, s, weights)(x) for each in (attempt, reference))


@check(points=0.25, layer=Layer.SHAPE, hint="Take B and T from x.shape; the head's width is C / n_head for all three.")
def test_shape(attempt, draw):
    """keeps (B, T, C) for any batch, any length up to block_size and any number of groups"""
    s = sizes_of(draw)
    for change in ({}, {"B": 1}, {"T": 1}, {"T": s.block}, {"nkv": 5}, {"nkv": s.nh}, {"nkv": 1}, {"nh": 1, "nkv": 1}):
        each = with_sizes(SimpleNamespace(**{**vars(s), **change}))
        weights, x = drawn(draw, each)
        assert_shape(GQA.module(attempt, each, weights)(x), x.shape)


@check(points=0.25, layer=Layer.FINITE, hint="Which row of the mask hides everything? What is softmax of nothing?")
def test_finite(attempt, draw):
    """gives numbers, however large the scores"""
    s = sizes_of(draw)
    weights, x = steep(draw, s)
    assert_finite(GQA.module(attempt, s, weights)(x))


@check(
    points=0.25, layer=Layer.CAUSALITY, hint="Print the weights for T = 4. Every row should end in zeros but the last."
)
def test_causal(attempt, draw):
    """does not see the future"""
    s = sizes_of(draw)
    ordinary, large = drawn(draw, s), steep(draw, s)
    for start, kind, (weights, x) in (
        (1, "", ordinary),
        (s.T - 2, "", ordinary),
        (s.T // 2, " of large scores", large),
    ):
        edited = x.clone()
        edited[:, start:, 2:] = draw(s.B, s.T - start, s.C - 2)
        before, after = (GQA.module(attempt, s, weights)(each).output for each in (x, edited))
        assert_shape(before, x.shape)
        assert_finite(before)
        moved = (before - after).abs().amax(dim=(0, 2)) > 1e-5 * before.abs().max()
        first = int(moved.nonzero()[0]) if moved.any() else s.T
        change = f"editing positions {start}…{s.T - 1}{kind} changes the output of position {first}"
        expect(first >= start, change)
        assert_finite(after)


@check(points=0.25, layer=Layer.CAUSALITY, hint="Does any step mix the first axis, or fold it with the heads?")
def test_independent(attempt, draw):
    """keeps batch entries apart"""
    s = sizes_of(draw)
    weights, x = drawn(draw, s)
    edited = x.clone()
    edited[-1] = draw(s.T, s.C)
    before, after = (GQA.module(attempt, s, weights)(each).output for each in (x, edited))
    assert_shape(before, x.shape)
    assert_same(before[:-1], after[:-1], "editing the last batch entry changes the output of another")


@check(
    points=0.5,
    layer=Layer.CAUSALITY,
    hint="Write 0, 0, 1, 1 beside the query heads. Which function repeats every entry, and which the whole row?",
)
def test_groups(attempt, draw):
    """lets query heads h · group … read head h of keys and values, and no other"""
    s = sizes_of(draw)
    weights, x = drawn(draw, s)
    weights["proj.weight"] = torch.eye(s.C, dtype=torch.float64)
    before = GQA.module(attempt, s, weights)(x).output
    assert_shape(before, x.shape)
    group, half = s.nh // s.nkv, s.nkv * s.hd
    for h in range(s.nkv):
        edited = weights["kv.weight"].clone()
        for start in (h * s.hd, half + h * s.hd):
            edited[start : start + s.hd] = draw.weights(s.hd, s.C)
        after = GQA.module(attempt, s, {**weights, "kv.weight": edited})(x).output
        moves = ((before - after).abs().amax(dim=(0, 1)) > 1e-5 * before.abs().max()).unflatten(0, (s.nh, s.hd))
        heads = moves.any(-1).nonzero().flatten().tolist()
        due = list(range(h * group, (h + 1) * group))
        told = f"another head {h} of keys and values moves the query heads {heads}; with {s.nkv} for {s.nh} heads it "
        expect(heads == due, told + f"should move {due[0]}…{due[-1]} (proj passes everything on)")


@check(points=0.5, layer=Layer.VALUES, hint="A single token can only look at itself: what is left is its v, projected.")
def test_single_token(attempt, reference, draw):
    """gives a single token its own values, projected"""
    s = sizes_of(draw)
    weights, x = drawn(draw, s, T=1)
    assert_matches(*both(attempt, reference, s, weights, x))


@check(
    points=0.5,
    layer=Layer.VALUES,
    hint="Without groups this is the fused QKV; with one head of keys and values all queries read the same.",
)
def test_both_ends(attempt, reference, draw):
    """is multi-head attention with n_kv_head = n_head, and multi-query attention with 1"""
    for nkv, hd in ((15, 4), (1, 6)):  # two widths of a head: some wrong scales are right for 4 channels
        s = sizes_of(draw, nkv=nkv, hd=hd)
        weights, x = drawn(draw, s, scale=1.5)
        got, want = both(attempt, reference, s, weights, x)
        assert_matches(got, want, f"with n_kv_head = {nkv} of {s.nh}, the output")


@check(
    points=0.75, layer=Layer.VALUES, hint="Take n_head = 4 and n_kv_head = 2, let proj be the identity, and do T = 2."
)
def test_values(attempt, reference, draw):
    """attends right in groups"""
    s = sizes_of(draw)
    assert_matches(*both(attempt, reference, s, *drawn(draw, s, scale=1.5)))
    got, want = both(attempt, reference, s, *deep(draw, s))
    assert_matches(got, want, "with low scores, the output")
    for T in (s.hd, s.nh):  # as many tokens as channels of a head, or as heads: there these axes can be mixed up
        tied = SimpleNamespace(**{**vars(s), "T": T, "block": 17})
        got, want = both(attempt, reference, tied, *drawn(draw, tied, scale=1.5))
        assert_matches(got, want, f"with {T} tokens, the output")
    s = large_sizes_of(draw)
    got, want = both(attempt, reference, s, *drawn(draw, s, scale=1.5))
    assert_matches(got, want, f"with {s.nkv} for {s.nh} heads and {s.T} tokens, the output")


@check(points=0.25, layer=Layer.GRADIENTS, hint="Is there a detach, a .data or a no_grad between x and the output?")
def test_gradients(attempt, reference, draw):
    """lets gradients through to x and to all three weights"""
    s = sizes_of(draw)
    weights, x = deep(draw, s)
    shared.judge_gradients(GQA, attempt, reference, s, weights, (x,), draw(s.B, s.T, s.C))


@check(points=0.25, layer=Layer.HYGIENE, hint="Count: 2 · C² for q and proj, and 2 · n_kv_head · head_dim · C for kv.")
def test_parameters(attempt, draw):
    """learns q, kv and proj, of the right sizes, and nothing else"""
    s = sizes_of(draw)
    weights, x = drawn(draw, s)
    shared.judge_parameters(GQA, attempt, s, weights, (x,))


@check(
    points=0.25, layer=Layer.HYGIENE, hint="Take n_embd % n_head in __init__, and raise a ValueError that names both."
)
def test_refuses_uneven_heads(attempt, draw):
    """refuses, when it is made, an n_embd that n_head does not divide"""
    s = sizes_of(draw)
    weights, x = drawn(draw, s)
    GQA.module(attempt, s, weights)(x).must_return()  # who refuses everything?
    made = attempt.module("GroupedQueryAttention", s.C + 2, s.nh, s.nkv, s.block).built()
    assert_refused(made, f"n_embd = {s.C + 2} with n_head = {s.nh}", suspect="divisibility_unchecked")


@check(points=0.25, layer=Layer.HYGIENE, hint="Which remainder says that some query head has no head to read?")
def test_refuses_uneven_groups(attempt, draw):
    """refuses, when it is made, an n_head that n_kv_head does not divide"""
    s = sizes_of(draw)
    weights, x = drawn(draw, s)
    GQA.module(attempt, s, weights)(x).must_return()
    for nkv in (4, 2 * s.nh):
        made = attempt.module("GroupedQueryAttention", s.C, s.nh, nkv, s.block).built()
        assert_refused(made, f"n_head = {s.nh} with n_kv_head = {nkv}", suspect="divisibility_unchecked")


@check(
    points=0.25, layer=Layer.HYGIENE, hint="Compare T with block_size first, and raise a ValueError that names both."
)
def test_refuses_too_long(attempt, draw):
    """refuses more tokens than block_size"""
    s = sizes_of(draw)
    weights, x = drawn(draw, s, T=s.block + 1)
    GQA.module(attempt, s, weights)(x[:, 1:]).must_return()
    what = f"T = {s.block + 1} with block_size = {s.block}"
    assert_refused(GQA.module(attempt, s, weights)(x), what, also=("RuntimeError",), suspect="context_unchecked")


@check(points=0.25, layer=Layer.HYGIENE, hint="A tensor that must move with the module and is not learned: a buffer.")
def test_moves(attempt, draw):
    """moves to another device as a whole"""
    s = sizes_of(draw)
    weights, x = drawn(draw, s)
    shared.judge_moves(GQA, attempt, s, weights, (x,))


@check(points=0.25, layer=Layer.HYGIENE, hint="Name no dtype in forward, and compute new tensors instead of x.mul_.")
def test_dtype_and_argument(attempt, draw):
    """follows the dtype of its input, and leaves the input as it was"""
    s = sizes_of(draw)
    weights, x = drawn(draw, s)
    shared.judge_dtype_and_argument(GQA, attempt, s, weights, (x,))


@check(points=0.25, layer=Layer.HYGIENE, hint=_again.HINT)
def test_again(attempt, draw):
    """answers every call as a fresh instance would"""
    s = sizes_of(draw)
    inputs = [(draw(B, T, s.C),) for B, T in ((2, s.T), (2, s.T), (3, s.block))]
    _again.judge_again(GQA.module(attempt, s, GQA.weights(draw, s)), *inputs)


@check(points=0.25, layer=Layer.HYGIENE, hint="Is there a dropout, or a layer that is made anew in forward?")
def test_steady(attempt, draw):
    """gives the same at every call, in training too"""
    s = sizes_of(draw)
    weights, x = drawn(draw, s)
    shared.judge_steady(GQA, attempt, s, weights, (x,))


@check(points=0.5, layer=Layer.VALUES, hint="Which tensors does the next token want to see again? Count their numbers.")
def test_cache_bytes(attempt, draw):
    """counts the bytes of keys and values, in all layers"""
    s = draw.sizes(n_layer=[7, 9], nh=[15], nkv=[5], hd=[6], T=[11, 13])
    sizes = (s.n_layer, s.nh, s.nkv, s.hd, s.T)
    for args, options, each, asked in (
        (sizes, {}, 2, "two bytes for a number"),
        ((*sizes, 4), {}, 4, "four bytes for a number"),
        (sizes, {"bytes_per_number": 1}, 1, "one byte for a number"),
        ((5, 14, 2, 9, 17), {}, 2, "two bytes for a number"),
        ((4, 10, 1, 22, 19), {"bytes_per_number": 3}, 3, "three bytes for a number"),
        ((3, 21, 21, 64, 16, 8), {}, 8, "eight bytes for a number"),
    ):
        n_layer, _, nkv, hd, T = args[:5]
        due = each * 2 * n_layer * nkv * hd * T
        answer = attempt.call("kv_cache_bytes", *args, **options)
        given = answer.output
        expect(given.numel() == 1, "one number is expected")
        times = float(given) / due
        told = f"with {asked} it gives {times:.4g} times the bytes of keys and values in {n_layer} layers"
        expect(times == 1, told, "cache_bytes")  # any other count is one, whatever it counts
        expect(
            answer.kind in ("int", "int64"),
            f"kv_cache_bytes should give an int; yours gives {answer.returned}",
            "interface",
        )


@check(
    points=0,
    layer=Layer.HYGIENE,
    device="cuda",
    hint="A large negative number that fits float32 may not fit float16. What fits every dtype?",
)
def test_half_precision(attempt, reference, draw):
    """stays finite and near under autocast, in float16 and in bfloat16"""
    s = sizes_of(draw)
    weights, x = drawn(draw, s)
    shared.judge_half_precision(GQA, attempt, reference, s, weights, (x,))


def attends_to_itself(attempt, draw):
    """Where all tokens are the same."""
    s = sizes_of(draw)
    made, x = GQA.weights(draw, s), alike(draw, s.C)
    passing = {
        "q.weight": heads_alike(made["q.weight"], s.nh),
        "kv.weight": torch.cat([heads_alike(each, s.nkv) for each in made["kv.weight"].chunk(2)]),
        "proj.weight": torch.eye(s.C, dtype=torch.float64),
    }
    module = GQA.module(attempt, s, passing)
    shares_out(lambda factor, n: by_head(module(factor * x[:n]).output / factor, s.nh))


COUNTS_IF = {"GroupedQueryAttention": attends_to_itself}
