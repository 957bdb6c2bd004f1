"""Hidden checks of grouped-query attention, and of the count of its cache."""

from math import prod

from manyheads.checks import Evidence, Number, assert_finite, assert_same, assert_shape, expect
from manyheads.checks.module_expectations import HINT

from . import _modules
from ._conditions import of_module
from ._modules import Layers, Sizes, asked_of, changed, joined

WIDTHS = {"C": joined, "of_kv": lambda s, _: 2 * s.nkv * s.hd}
# 5 query heads share a head of keys and values
SIZES = Sizes(B=[7], T=[9, 11], nh=[15], nkv=[3], hd=[4], block=[13, 17], **WIDTHS)
# here 4 query heads share one
LARGE = Sizes(B=[2], T=(40, 60), nh=[12], nkv=[3], hd=[5], block=(61, 64), **WIDTHS)


class Grouped(_modules.Subject):
    """The module of this exercise."""

    name = "GroupedQueryAttention"
    arguments = (("n_embd", "C"), ("n_head", "nh"), ("n_kv_head", "nkv"), ("block_size", "block"))
    projections = (("q.weight", 1, "nh"), ("kv.weight", 2, "nkv"))
    sizes = SIZES

    def shapes(self, s, **options):
        return {"q.weight": (s.C, s.C), "kv.weight": (s.of_kv, s.C), "proj.weight": (s.C, s.C)}


GQA = Grouped()
layer = Layers(GQA)


@layer.shape(0.25, "Take B and T from x.shape; the head's width is C / n_head for all three.")
def test_shape(attempt, draw, s):
    """keeps (B, T, C) for any batch, any length up to block_size and any number of groups"""
    for change in (
        {},
        {"B": 1},
        {"T": 1},
        {"T": s.block},
        {"nkv": 5},
        {"nkv": s.nh},
        {"nkv": 1},
        {"nh": 1, "nkv": 1},
    ):
        weights, (x,) = GQA.weights_and_inputs(draw, sizes := SIZES.changed(s, **change))
        assert_shape(GQA.module(attempt, sizes, weights)(x), x.shape)


test_finite = asked_of(GQA, _modules.finite)
test_causal = asked_of(GQA, _modules.causal)


@layer.causality(0.25, "Does any step mix the first axis, or fold it with the heads?")
def test_independent(attempt, draw, s, weights, x):
    """keeps batch entries apart"""
    edited = x.clone()
    edited[-1] = draw(s.T, s.C)
    baseline, after = (GQA.answered(attempt, s, weights, tokens) for tokens in (x, edited))
    assert_finite(baseline)
    assert_same(
        baseline[:-1], after[:-1], "editing the last batch entry changes the output of another"
    )


@layer.causality(
    0.5,
    "Write 0, 0, 1, 1 beside the query heads. Which function repeats entries, and which the row?",
)
def test_groups(attempt, draw, s, weights, x):
    """lets query heads h · group … read head h of keys and values, and no other"""
    weights = GQA.passing_on(weights)
    baseline = GQA.answered(attempt, s, weights, x)
    assert_finite(baseline)
    group = s.nh // s.nkv
    for h in range(s.nkv):
        edited = weights["kv.weight"].clone()
        for start in (h * s.hd, (s.nkv + h) * s.hd):
            edited[start : start + s.hd] = draw.weights(s.hd, s.C)
        after = GQA.module(attempt, s, {**weights, "kv.weight": edited})(x).output
        moves = ((baseline - after).abs().amax(dim=(0, 1)) > 1e-5 * baseline.abs().max()).unflatten(
            0, (s.nh, s.hd)
        )
        heads, expected = (
            moves.any(-1).nonzero().flatten().tolist(),
            list(range(h * group, (h + 1) * group)),
        )
        evidence = (
            f"another head {h} of keys and values moves the query heads {heads}; with {s.nkv} for"
            f" {s.nh} heads it "
        )
        expect(
            heads == expected,
            evidence + f"should move {expected[0]}…{expected[-1]} (proj passes everything on)",
        )


@layer.values(0.5, "A single token can only look at itself: what is left is its v, projected.")
def test_single_token(agree, draw):
    """gives a single token its own values, projected"""
    s = SIZES(draw, T=1)
    agree(s, *GQA.weights_and_inputs(draw, s))


@layer.values(
    0.5,
    "Without groups this is the fused QKV; with one head of keys and values all queries read the"
    " same.",
)
def test_both_ends(agree, draw):
    """is multi-head attention with n_kv_head = n_head, and multi-query attention with 1"""
    # Two widths of a head, because some wrong scales are right for 4 channels. With the wider head
    # only few sequences can be recorded.
    for nkv, hd, B in ((15, 4, 7), (1, 6, 2)):
        s = SIZES(draw, nkv=nkv, hd=hd, B=B)
        agree(
            s,
            *GQA.weights_and_inputs(draw, s, 1.5),
            f"with n_kv_head = {nkv} of {s.nh}, the output",
        )


@layer.values(0.75, "Take n_head = 4 and n_kv_head = 2, let proj be the identity, and do T = 2.")
def test_values(agree, draw):
    """attends right in groups"""
    s, large = SIZES(draw), LARGE(draw)
    ordinary, low = GQA.weights_and_inputs(draw, s, 1.5), GQA.low_scores(draw, s)
    # As many tokens as channels of a head, or as heads: there these axes can be mixed up.
    tied = [changed(s, T=T, block=17) for T in (s.hd, s.nh)] + [SIZES(draw, T=6, hd=6, block=17)]
    tied_cases = [
        (n, GQA.weights_and_inputs(draw, n, 1.5), f"with {n.T} tokens, the output") for n in tied
    ]
    large_case = (
        large,
        GQA.weights_and_inputs(draw, large, 1.5),
        f"with {large.nkv} for {large.nh} heads and {large.T} tokens, the output",
    )
    for n, case, label in (
        (s, ordinary, ""),
        (s, low, "with low scores, the output"),
        *tied_cases,
        large_case,
    ):
        agree(n, *case, label)


@layer.gradients(0.25, "Is there a detach, a .data or a no_grad between x and the output?")
def test_gradients(attempt, reference, draw, s):
    """lets gradients through to x and to all three weights"""
    _modules.judge_gradients(
        GQA, attempt, reference, s, *GQA.low_scores(draw, s), draw(s.B, s.T, s.C)
    )


test_parameters = asked_of(
    GQA,
    _modules.parameters,
    "learns q, kv and proj, of the right sizes, and nothing else",
    "Count: 2 · C² for q and proj, and 2 · n_kv_head · head_dim · C for kv.",
)


@layer.hygiene(0.25, "Take n_embd % n_head in __init__, and raise a ValueError that names both.")
def test_refuses_uneven_heads(attempt, draw, s):
    """refuses, when it is made, an n_embd that n_head does not divide"""
    _modules.judge_refused(GQA, attempt, draw, s, {"n_embd": s.C + 2, "n_head": s.nh})


@layer.hygiene(0.25, "Which remainder says that some query head has no head to read?")
def test_refuses_uneven_groups(attempt, draw, s):
    """refuses, when it is made, an n_head that n_kv_head does not divide"""
    _modules.judge_refused(
        GQA, attempt, draw, s, *({"n_head": s.nh, "n_kv_head": nkv} for nkv in (4, 2 * s.nh))
    )


test_refuses_too_long = asked_of(GQA, _modules.refuses_too_long)
test_moves = asked_of(
    GQA,
    _modules.moves,
    hint="A tensor that must move with the module and is not learned: a buffer.",
)
test_dtype_and_argument = asked_of(GQA, _modules.dtype_and_argument)


@layer.hygiene(0.25, HINT)
def test_again(attempt, draw):
    """answers every call as a fresh instance would"""
    # of two sequences: with seven, the calls are too large to be recorded
    _modules.expect_same_again(GQA, attempt, draw, SIZES(draw, B=2))


test_steady = asked_of(GQA, _modules.steady)


@layer.values(0.5, "Which tensors does the next token want to see again? Count their numbers.")
def test_cache_bytes(attempt, draw):
    """counts the bytes of keys and values, in all layers"""
    s = draw.sizes(n_layer=[7, 9], nh=[15], nkv=[5], hd=[6], T=[11, 13])
    sizes = (s.n_layer, s.nh, s.nkv, s.hd, s.T)
    for args, options, n_bytes, label in (
        (sizes, {}, 2, "two bytes"),
        ((*sizes, 4), {}, 4, "four bytes"),
        (sizes, {"bytes_per_number": 1}, 1, "one byte"),
        ((5, 14, 2, 9, 17), {}, 2, "two bytes"),
        ((4, 10, 1, 22, 19), {"bytes_per_number": 3}, 3, "three bytes"),
        ((3, 21, 21, 64, 16, 8), {}, 8, "eight bytes"),
    ):
        n_layer, _, *factors = args[:5]
        answer = attempt.call("kv_cache_bytes", *args, **options)
        expect(answer.output.numel() == 1, "one number is expected")
        times = float(answer.output) / (n_bytes * 2 * n_layer * prod(factors))
        evidence = Evidence(
            "with {} for a number it gives {} times the bytes of keys and values in {} layers",
            label,
            Number(times),
            n_layer,
        )
        expect(times == 1, evidence, "cache_bytes")  # every other number is this mistake
        evidence = f"kv_cache_bytes should give an int; yours gives {answer.returned}"
        expect(answer.kind in ("int", "int64"), evidence, "interface")


test_half_precision = asked_of(GQA, _modules.half_precision)

PRECONDITIONS = {"GroupedQueryAttention": of_module(GQA)}
