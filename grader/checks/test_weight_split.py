"""Hidden checks of causal multi-head attention by weight split."""

from manyheads.checks import (
    Evidence,
    Sizes,
    assert_finite,
    assert_matches,
    check,
    expect,
    module_contract,
    relative_change,
)

from . import _separate_qkv as shared
from ._conditions import of_module
from ._modules import width_of_heads

HEADS = (2, 2), (2, 4), (4, 16), (2, 64), (4, 2), (8, 2), (12, 2)  # n_head and head_dim
FAMILIAR = [
    *((B, T, 10, 30, 3) for B in (1, 2, 4, 8) for T in (2, 4, 5, 6, 7) if B != T),
    *((3, 5, 10, nh * hd, nh) for nh, hd in HEADS),
]
SIZES = Sizes(B=[7], T=[11, 17], nh=[5], hd=[6], C=[13, 14], block=[19, 23], d_out=width_of_heads)
LARGE = Sizes(
    B=(2, 3), T=(40, 60), nh=(9, 12), hd=(4, 5), C=(14, 17), block=(61, 64), d_out=width_of_heads
)
MODULE = shared.SeparateProjections("MultiHeadAttention", SIZES, several=True)


def layer(implementation, s, weights, qkv_bias=True):
    """Return the module of these sizes with these weights."""
    make = implementation.MultiHeadAttention
    return make(s.C, s.d_out, s.block, s.nh, qkv_bias=qkv_bias).with_parameters(weights)


@check(
    points=0.25,
    layer="shape",
    hint="Take B and T from x.shape, head_dim from d_out and num_heads.",
)
def test_shape(attempt, draw, sizes):
    """gives (B, T, d_out), for any batch, down to a single token and a single head"""
    weights = MODULE.weights(draw, sizes, bias=False)
    for B, T, nh in ((sizes.B, sizes.block, sizes.nh), (1, 1, 1)):
        x = draw(B, T, sizes.C)
        answer = attempt.MultiHeadAttention(sizes.C, sizes.d_out, T, nh).with_parameters(weights)(x)
        build = attempt.with_options(random=True).MultiHeadAttention
        shape, case = (B, T, sizes.d_out), Evidence("B = {}, T = {}, num_heads = {}", B, T, nh)
        shared.expect_shape(answer, shape, case, FAMILIAR, build, draw)


@check(
    points=0.25,
    layer="shape",
    hint="The mask is made for the longest sequence. Which corner of it do T tokens need?",
)
def test_shorter(attempt, draw, sizes, weights):
    """takes fewer tokens than the context holds"""
    x = draw(sizes.B, sizes.block, sizes.C)
    shared.expect_shorter_texts(layer(attempt, sizes, weights), x, sizes.T, sizes.d_out)


@check(
    points=0.25, layer="finite", hint="Can a row of the mask be hidden whole? And what is 0 · ∞?"
)
def test_finite(attempt, sizes, weights, x):
    """gives no NaN"""
    assert_finite(layer(attempt, sizes, weights)(x))


@check(
    points=0.25,
    layer="causality",
    hint="Print the mask for T = 4. Which entries are hidden, and are they hidden before the"
    " softmax?",
)
def test_future(attempt, draw, sizes):
    """keeps the past as it was when the future is edited"""
    weights, (x,) = MODULE.low_scores(draw, sizes)
    for start in (1, sizes.T - 2):
        edited = x.clone()
        edited[:, start:, 1:] = 2 * draw(sizes.B, sizes.T - start, sizes.C - 1)
        module = layer(attempt, sizes, weights)
        shared.expect_past_kept(module, x, edited, start, sizes.d_out)


@check(
    points=0.25,
    layer="causality",
    hint="The diagonal is visible too. And does any step mix the first axis?",
)
def test_sees_past(attempt, draw, sizes, weights, x):
    """lets each token see itself and all of its past, and no other sequence"""
    edited = x.clone()
    edited[0, 1] = draw(sizes.C)
    shared.expect_past_seen(layer(attempt, sizes, weights), x, edited, sizes.d_out)


@check(
    points=0.25,
    layer="causality",
    hint="A hidden score must lose against every visible one, however low. What is e to its power?",
)
def test_hidden_for_good(attempt, draw, sizes):
    """hides the future even where all scores are low"""
    weights, (x,) = MODULE.low_scores(draw, sizes)
    edited = x.clone()
    edited[:, 2:, 1:] = draw(sizes.B, sizes.T - 2, sizes.C - 1)
    shared.expect_hidden_for_good(layer(attempt, sizes, weights), x, edited)


@check(
    points=0.25,
    layer="causality",
    hint="Which rows of W_query belong to head 0? Follow them into the output.",
)
def test_heads_apart(attempt, draw, sizes, weights):
    """gives head h the channels h·hd … (h+1)·hd − 1, and lets no head see another"""
    s, weights = sizes, MODULE.passing_on(weights)
    x = draw(s.B, s.T, s.C)
    # The last head. If the heads are in another order it is elsewhere, and heads that are added up
    # fill only the first channels.
    h = s.nh - 1
    baseline = shared.answer_of_width(layer(attempt, s, weights), x, s.d_out)
    rows, edited = slice(h * s.hd, s.d_out), dict(weights)
    for name in ("W_query.weight", "W_key.weight"):
        edited[name] = weights[name].clone()
        edited[name][rows] = draw.weights(s.hd, s.C)
    after = layer(attempt, s, edited)(x).output
    moves = relative_change(baseline.transpose(1, 2), after.transpose(1, 2)).amax(0)  # (d_out,)
    channels = range(rows.start, rows.stop)
    leaks = [c for c in range(s.d_out) if c not in channels and moves[c] > 1e-5]
    unmoved = [c for c in channels if moves[c] < 1e-9]
    of_head = Evidence(
        "the rows of head {} in W_query and W_key were edited (out_proj passes everything on)", h
    )
    expect(
        not leaks,
        Evidence(
            "{}, and channels {} moved: head {} owns {}…{}",
            of_head,
            leaks[:8],
            h,
            rows.start,
            rows.stop - 1,
        ),
    )
    expect(not unmoved, Evidence("{}, and its own channels {} stayed", of_head, unmoved[:8]))


@check(
    points=0.75,
    layer="values",
    hint="Let out_proj be the identity, take one head, and do the second token by hand.",
)
def test_values(attempt, reference, draw):
    """attends in every head, joins the heads and projects"""
    for s, weights, (x,) in shared.cases_of_values(MODULE, LARGE, draw):
        got, want = (layer(c, s, weights)(x) for c in (attempt, reference))
        shared.expect_values(got, want.output, "should be out_proj of its own value row and is not")


@check(
    points=0.25,
    layer="values",
    hint="Which sizes does your code read from the wrong place when d_in = d_out?",
)
def test_square(attempt, reference, draw):
    """is right with as many channels out as in, a full context and no bias"""
    s = SIZES(draw)
    s.C, s.T = s.d_out, s.block
    weights, (x,) = MODULE.low_scores(draw, s, bias=False)
    got, want = (layer(c, s, weights, qkv_bias=False)(x) for c in (attempt, reference))
    assert_matches(got, want)


CONTRACT = module_contract(
    MODULE,
    gradients="",
    parameters=(
        "learns W_query, W_key, W_value and out_proj and nothing else",
        "Count: 3 · d_in · d_out + d_out · (d_out + 1), and 3 · d_out more for qkv_bias.",
    ),
    refuses_beyond_context="",
    refuses_uneven_heads="",
    dropout_sleeps="",
    dropout_on_weights="",
    again="",
    moves="",
    dtype_and_argument="",
    half_precision="",
)

PRECONDITIONS = {"MultiHeadAttention": of_module(MODULE, bias=False)}
