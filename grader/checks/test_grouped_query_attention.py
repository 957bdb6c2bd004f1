"""Hidden checks of grouped-query attention, and of the count of its cache."""

import torch

from manyheads.checks import Layer, assert_matches, assert_refused, assert_same, assert_shape, check, expect

from . import _again, _modules
from ._modules import asked_of, changed, climbing, directions, half_precision, parameters, steady
from ._shares import alike, by_head, heads_alike, shares_out


def with_sizes(s):
    """C and the width of kv, too."""
    s.C, s.of_kv = s.nh * s.hd, 2 * s.nkv * s.hd
    return s


def sizes_of(draw, **fixed):
    """Sizes that differ pairwise, kv's rows and the group among them, and none usual in lessons."""
    s = draw.sizes(B=[7], T=[9, 11], nh=[15], nkv=[3], hd=[4], block=[13, 17])
    return with_sizes(changed(s, **fixed))


def large_sizes_of(draw):
    """More tokens and heads than anybody tries by hand, and another group."""
    s = draw.sizes(B=[2], T=(40, 60), nh=[12], nkv=[3], hd=[5], block=(61, 64))
    return with_sizes(s)


class Grouped(_modules.Subject):
    """The module of this exercise."""

    name = "GroupedQueryAttention"

    def arguments(self, s):
        return {"n_embd": s.C, "n_head": s.nh, "n_kv_head": s.nkv, "block_size": s.block}

    def shapes(self, s):
        return {"q.weight": (s.C, s.C), "kv.weight": (s.of_kv, s.C), "proj.weight": (s.C, s.C)}

    def mask(self, s):
        return s.block, s.block

    def sizes(self, draw):
        return sizes_of(draw)

    def inputs(self, draw, s):
        return (draw(s.B, s.T, s.C),)

    def drawn(self, draw, s, T=None, scale=1.0):
        """Weights and an input of T tokens."""
        return self.weights(draw, s), draw(s.B, T or s.T, s.C, scale=scale)

    def deep(self, draw, s):
        """Weights and an input with which all scores of all heads are near −DEEP: channel 0 is 1 in every token."""
        (weights, x), read = self.drawn(draw, s), directions(draw, s.nkv, s.hd)
        keys = weights["kv.weight"][: s.nkv * s.hd]
        weights["q.weight"] *= 0.1
        keys *= 0.1
        weights["q.weight"][:, 0] = read.repeat_interleave(s.nh // s.nkv, dim=0).flatten()
        keys[:, 0] = -read.flatten()
        x[..., 0] = 1.0
        return weights, x

    def steep(self, draw, s):
        """Weights and an input whose scores climb from -44.5 to 44.5 with the key's position, in every head."""
        weights, x = self.drawn(draw, s)
        weights["q.weight"].zero_()[:: s.hd, 0] = 44.5 * s.hd**0.5
        weights["kv.weight"][: s.nkv * s.hd].zero_()[:: s.hd, 1] = 1.0
        x[..., 0], x[..., 1] = 1.0, climbing(s.T)
        return weights, x


GQA = Grouped()


def both(attempt, reference, s, weights, x):
    return (GQA.module(each, s, weights)(x) for each in (attempt, reference))


@check(points=0.25, layer=Layer.SHAPE, hint="Take B and T from x.shape; the head's width is C / n_head for all three.")
def test_shape(attempt, draw):
    """keeps (B, T, C) for any batch, any length up to block_size and any number of groups"""
    s = sizes_of(draw)
    for change in ({}, {"B": 1}, {"T": 1}, {"T": s.block}, {"nkv": 5}, {"nkv": s.nh}, {"nkv": 1}, {"nh": 1, "nkv": 1}):
        each = with_sizes(changed(s, **change))
        weights, x = GQA.drawn(draw, each)
        assert_shape(GQA.module(attempt, each, weights)(x), x.shape)


test_finite = asked_of(GQA, _modules.finite)
test_causal = asked_of(GQA, _modules.causal)


@check(points=0.25, layer=Layer.CAUSALITY, hint="Does any step mix the first axis, or fold it with the heads?")
def test_independent(attempt, draw):
    """keeps batch entries apart"""
    s = sizes_of(draw)
    weights, x = GQA.drawn(draw, s)
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
    weights, x = GQA.drawn(draw, s)
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
    weights, x = GQA.drawn(draw, s, T=1)
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
        weights, x = GQA.drawn(draw, s, scale=1.5)
        got, want = both(attempt, reference, s, weights, x)
        assert_matches(got, want, f"with n_kv_head = {nkv} of {s.nh}, the output")


@check(
    points=0.75, layer=Layer.VALUES, hint="Take n_head = 4 and n_kv_head = 2, let proj be the identity, and do T = 2."
)
def test_values(attempt, reference, draw):
    """attends right in groups"""
    s = sizes_of(draw)
    assert_matches(*both(attempt, reference, s, *GQA.drawn(draw, s, scale=1.5)))
    got, want = both(attempt, reference, s, *GQA.deep(draw, s))
    assert_matches(got, want, "with low scores, the output")
    for T in (s.hd, s.nh):  # as many tokens as channels of a head, or as heads: there these axes can be mixed up
        tied = changed(s, T=T, block=17)
        got, want = both(attempt, reference, tied, *GQA.drawn(draw, tied, scale=1.5))
        assert_matches(got, want, f"with {T} tokens, the output")
    s = large_sizes_of(draw)
    got, want = both(attempt, reference, s, *GQA.drawn(draw, s, scale=1.5))
    assert_matches(got, want, f"with {s.nkv} for {s.nh} heads and {s.T} tokens, the output")


@check(points=0.25, layer=Layer.GRADIENTS, hint="Is there a detach, a .data or a no_grad between x and the output?")
def test_gradients(attempt, reference, draw):
    """lets gradients through to x and to all three weights"""
    s = sizes_of(draw)
    weights, x = GQA.deep(draw, s)
    _modules.judge_gradients(GQA, attempt, reference, s, weights, (x,), draw(s.B, s.T, s.C))


test_parameters = asked_of(
    GQA,
    parameters,
    "learns q, kv and proj, of the right sizes, and nothing else",
    hint="Count: 2 · C² for q and proj, and 2 · n_kv_head · head_dim · C for kv.",
)


@check(
    points=0.25, layer=Layer.HYGIENE, hint="Take n_embd % n_head in __init__, and raise a ValueError that names both."
)
def test_refuses_uneven_heads(attempt, draw):
    """refuses, when it is made, an n_embd that n_head does not divide"""
    s = sizes_of(draw)
    weights, x = GQA.drawn(draw, s)
    GQA.module(attempt, s, weights)(x).must_return()  # who refuses everything?
    made = attempt.module("GroupedQueryAttention", s.C + 2, s.nh, s.nkv, s.block).built()
    assert_refused(made, f"n_embd = {s.C + 2} with n_head = {s.nh}", suspect="divisibility_unchecked")


@check(points=0.25, layer=Layer.HYGIENE, hint="Which remainder says that some query head has no head to read?")
def test_refuses_uneven_groups(attempt, draw):
    """refuses, when it is made, an n_head that n_kv_head does not divide"""
    s = sizes_of(draw)
    weights, x = GQA.drawn(draw, s)
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
    weights, x = GQA.drawn(draw, s, T=s.block + 1)
    GQA.module(attempt, s, weights)(x[:, 1:]).must_return()
    what = f"T = {s.block + 1} with block_size = {s.block}"
    assert_refused(GQA.module(attempt, s, weights)(x), what, also=("RuntimeError",), suspect="context_unchecked")


@check(points=0.25, layer=Layer.HYGIENE, hint="A tensor that must move with the module and is not learned: a buffer.")
def test_moves(attempt, draw):
    """moves to another device as a whole"""
    _modules.judge_moves(GQA, attempt, *GQA.case(draw))


@check(points=0.25, layer=Layer.HYGIENE, hint="Name no dtype in forward, and compute new tensors instead of x.mul_.")
def test_dtype_and_argument(attempt, draw):
    """follows the dtype of its input, and leaves the input as it was"""
    _modules.judge_dtype_and_argument(GQA, attempt, *GQA.case(draw))


@check(points=0.25, layer=Layer.HYGIENE, hint=_again.HINT)
def test_again(attempt, draw):
    """answers every call as a fresh instance would"""
    s = sizes_of(draw)
    inputs = [(draw(B, T, s.C),) for B, T in ((2, s.T), (2, s.T), (3, s.block))]
    _again.judge_again(GQA.module(attempt, s, GQA.weights(draw, s)), *inputs)


test_steady = asked_of(GQA, steady)


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


test_half_precision = asked_of(GQA, half_precision)


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
