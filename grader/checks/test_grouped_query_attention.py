"""Hidden checks of grouped-query attention, and of the count of its cache."""

from math import prod

from manyheads.checks import (
    Evidence,
    Number,
    Sizes,
    assert_finite,
    assert_same,
    assert_shape,
    changed_positions,
    check,
    expect,
    module_contract,
    replace_sizes,
)
from manyheads.checks.module_expectations import HINT

from . import _modules as shared
from ._conditions import of_module
from ._separate_qkv import answer_of_width

WIDTHS = {"C": shared.width_of_heads, "of_kv": lambda s, _: 2 * s.nkv * s.hd}
# 5 query heads share a head of keys and values
SIZES = Sizes(B=[7], T=[9, 11], nh=[15], nkv=[3], hd=[4], block=[13, 17], **WIDTHS)
# here 4 query heads share one
LARGE = Sizes(B=[2], T=(40, 60), nh=[12], nkv=[3], hd=[5], block=(61, 64), **WIDTHS)


class Grouped(shared.Subject):
    """The module of this exercise, with its general requirements."""

    name = "GroupedQueryAttention"
    arguments = (("n_embd", "C"), ("n_head", "nh"), ("n_kv_head", "nkv"), ("block_size", "block"))
    projections = (("q.weight", 1, "nh"), ("kv.weight", 2, "nkv"))
    sizes = SIZES

    def shapes(self, s, **options):
        return {"q.weight": (s.C, s.C), "kv.weight": (s.of_kv, s.C), "proj.weight": (s.C, s.C)}

    @check(
        points=0.25,
        layer="hygiene",
        hint="Take n_embd % n_head in __init__, and raise a ValueError that names both.",
    )
    def refuses_uneven_heads(self, attempt, reference, draw):
        """refuses, when it is made, an n_embd that n_head does not divide"""
        s = SIZES(draw)
        shared.judge_refused(self, attempt, draw, s, {"n_embd": s.C + 2, "n_head": s.nh})

    @check(
        points=0.25,
        layer="hygiene",
        hint="Which remainder says that some query head has no head to read?",
    )
    def refuses_uneven_groups(self, attempt, reference, draw):
        """refuses, when it is made, an n_head that n_kv_head does not divide"""
        s = SIZES(draw)
        too_few, too_many = ({"n_head": s.nh, "n_kv_head": nkv} for nkv in (4, 2 * s.nh))
        shared.judge_refused(self, attempt, draw, s, too_few, too_many)

    @check(points=0.25, layer="hygiene", hint=HINT)
    def again(self, attempt, reference, draw):
        """answers every call as a fresh instance would"""
        # of two sequences: with seven, the calls are too large to be recorded
        shared.expect_same_again(self, attempt, draw, SIZES(draw, B=2))


MODULE = Grouped()


def layer(implementation, s, weights):
    """Return the module of these sizes with these weights."""
    return implementation.GroupedQueryAttention(s.C, s.nh, s.nkv, s.block).with_parameters(weights)


@check(
    points=0.25,
    layer="shape",
    hint="Take B and T from x.shape; the head's width is C / n_head for all three.",
)
def test_shape(attempt, draw, sizes):
    """keeps (B, T, C) for any batch, any length up to block_size and any number of groups"""
    lengths = {"B": 1}, {"T": 1}, {"T": sizes.block}
    groups = {"nkv": 5}, {"nkv": sizes.nh}, {"nkv": 1}, {"nh": 1, "nkv": 1}
    for change in ({}, *lengths, *groups):
        s = SIZES.replace(sizes, **change)
        weights, (x,) = MODULE.weights_and_inputs(draw, s)
        assert_shape(layer(attempt, s, weights)(x), x.shape)


@check(
    points=0.25,
    layer="finite",
    hint="Which row of the mask hides everything? What is softmax of nothing?",
)
def test_finite(attempt, draw, sizes):
    """gives numbers, however large the scores"""
    weights, (x,) = MODULE.ascending_scores(draw, sizes)
    assert_finite(layer(attempt, sizes, weights)(x))


@check(
    points=0.25,
    layer="causality",
    hint="Print the weights for T = 4. Every row should end in zeros but the last.",
)
def test_causal(attempt, draw, sizes, weights, x):
    """does not see the future"""
    shared.expect_causal(MODULE, attempt, draw, sizes, weights, (x,))


@check(
    points=0.25,
    layer="causality",
    hint="Does any step mix the first axis, or fold it with the heads?",
)
def test_independent(attempt, draw, sizes, weights, x):
    """keeps batch entries apart"""
    edited = x.clone()
    edited[-1] = draw(sizes.T, sizes.C)
    module = layer(attempt, sizes, weights)
    baseline, after = (answer_of_width(module, tokens, sizes.C) for tokens in (x, edited))
    assert_finite(baseline)
    evidence = "editing the last batch entry changes the output of another"
    assert_same(baseline[:-1], after[:-1], evidence)


@check(
    points=0.5,
    layer="causality",
    hint="Write 0, 0, 1, 1 beside the query heads. Which function repeats entries, and which the"
    " row?",
)
def test_groups(attempt, draw, sizes, weights, x):
    """lets query heads h · group … read head h of keys and values, and no other"""
    s, weights = sizes, MODULE.passing_on(weights)
    baseline = answer_of_width(layer(attempt, s, weights), x, s.C)
    assert_finite(baseline)
    group = s.nh // s.nkv
    for h in range(s.nkv):
        edited = weights["kv.weight"].clone()
        for start in (h * s.hd, (s.nkv + h) * s.hd):
            edited[start : start + s.hd] = draw.weights(s.hd, s.C)
        after = layer(attempt, s, {**weights, "kv.weight": edited})(x)
        channels = changed_positions(baseline, after, axes=2, tolerance=1e-5)
        heads = sorted({c // s.hd for c in channels})
        expected = [*range(h * group, (h + 1) * group)]
        evidence = Evidence(
            "another head {} of keys and values moves the query heads {}; with {} for {} "
            "heads it should move {}…{} (proj passes everything on)",
            h,
            heads,
            s.nkv,
            s.nh,
            expected[0],
            expected[-1],
        )
        expect(heads == expected, evidence)


@check(
    points=0.5,
    layer="values",
    hint="A single token can only look at itself: what is left is its v, projected.",
)
def test_single_token(attempt, reference, draw):
    """gives a single token its own values, projected"""
    s = SIZES(draw, T=1)
    MODULE.assert_matches(attempt, reference, s, *MODULE.weights_and_inputs(draw, s))


@check(
    points=0.5,
    layer="values",
    hint="Without groups this is the fused QKV; with one head of keys and values all queries read"
    " the same.",
)
def test_both_ends(attempt, reference, draw):
    """is multi-head attention with n_kv_head = n_head, and multi-query attention with 1"""
    # Two widths of a head, because some wrong scales are right for 4 channels. With the wider head
    # only few sequences can be recorded.
    for nkv, hd, B in ((15, 4, 7), (1, 6, 2)):
        s = SIZES(draw, nkv=nkv, hd=hd, B=B)
        weights, inputs = MODULE.weights_and_inputs(draw, s, 1.5)
        label = Evidence("with n_kv_head = {} of {}, the output", nkv, s.nh)
        MODULE.assert_matches(attempt, reference, s, weights, inputs, label)


@check(
    points=0.75,
    layer="values",
    hint="Take n_head = 4 and n_kv_head = 2, let proj be the identity, and do T = 2.",
)
def test_values(attempt, reference, draw):
    """attends right in groups"""
    s, large = SIZES(draw), LARGE(draw)
    # As many tokens as channels of a head, or as heads: there these axes can be mixed up.
    tied = [replace_sizes(s, T=T, block=17) for T in (s.hd, s.nh)] + [
        SIZES(draw, T=6, hd=6, block=17)
    ]
    ordinary, low = MODULE.weights_and_inputs(draw, s, 1.5), MODULE.low_scores(draw, s)
    cases = [(s, *ordinary, ""), (s, *low, "with low scores, the output")]
    large_label = Evidence(
        "with {} for {} heads and {} tokens, the output", large.nkv, large.nh, large.T
    )
    more_cases = [(n, Evidence("with {} tokens, the output", n.T)) for n in tied]
    for n, label in (*more_cases, (large, large_label)):
        cases.append((n, *MODULE.weights_and_inputs(draw, n, 1.5), label))
    for case in cases:
        MODULE.assert_matches(attempt, reference, *case)


@check(
    points=0.25,
    layer="gradients",
    hint="Is there a detach, a .data or a no_grad between x and the output?",
)
def test_gradients(attempt, reference, draw, sizes):
    """lets gradients through to x and to all three weights"""
    weights, inputs = MODULE.low_scores(draw, sizes)
    g = draw(sizes.B, sizes.T, sizes.C)
    shared.judge_gradients(MODULE, attempt, reference, sizes, weights, inputs, g)


CONTRACT = module_contract(
    MODULE,
    parameters=(
        "learns q, kv and proj, of the right sizes, and nothing else",
        "Count: 2 · C² for q and proj, and 2 · n_kv_head · head_dim · C for kv.",
    ),
    refuses_uneven_heads="",
    refuses_uneven_groups="",
    refuses_too_long="",
    moves="A tensor that must move with the module and is not learned: a buffer.",
    dtype_and_argument="",
    again="",
    steady="",
    half_precision="",
)


@check(
    points=0.5,
    layer="values",
    hint="Which tensors does the next token want to see again? Count their numbers.",
)
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
        answer = attempt.kv_cache_bytes(*args, **options)
        expect(answer.output.numel() == 1, "one number is expected")
        times = float(answer.output) / (n_bytes * 2 * n_layer * prod(factors))
        evidence = Evidence(
            "with {} for a number it gives {} times the bytes of keys and values in {} layers",
            label,
            Number(times),
            n_layer,
        )
        expect(times == 1, evidence, "cache_bytes")  # every other number is this mistake
        evidence = Evidence(
            "kv_cache_bytes should give an int; yours gives {}", answer.kind_in_words
        )
        expect(answer.kind in ("int", "int64"), evidence, "interface")


PRECONDITIONS = {"GroupedQueryAttention": of_module(MODULE)}
