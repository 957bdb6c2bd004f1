"""Hidden checks of the fused QKV: one projection, heads, causal attention, one projection back."""

from functools import partial

import torch

from manyheads.checks import (
    ComparedWithModule,
    Entries,
    Evidence,
    Listed,
    OperationLimit,
    Percent,
    Sizes,
    agrees,
    assert_finite,
    assert_matches,
    assert_refused,
    assert_shape,
    check,
    expect,
    module_contract,
    replace_sizes,
)
from manyheads.checks.asserts import TOLERANCE, difference

from . import _causal_attention as shared
from . import _modules
from ._conditions import of_module
from ._modules import width_of_heads

SIZES = Sizes(B=[7], T=[9, 11], nh=[5], hd=[6], block=[13, 17], C=width_of_heads)
GPT2 = {"small": (768, 12), "medium": (1024, 16), "large": (1280, 20), "xl": (1600, 25)}
GPT2_BLOCK = 1024
COMPARISON = "what it makes"  # the attribute that reports whether two modules are the same
STILL_AT_WORK = OperationLimit(20_000)


def layer(implementation, s, weights, **options):
    """Return the module of these sizes with these weights."""
    return implementation.CausalSelfAttention(s.C, s.nh, s.block, **options).with_parameters(
        weights
    )


MODULE = shared.FusedProjection(SIZES, layer)


def expect_values(attempt, s, weights, x, name=""):
    """Fail unless the output is right."""
    expected = shared.attention_oracle(weights, x, s.nh)
    assert_matches(layer(attempt, s, weights)(x), expected, name)


@check(points=0.25, layer="shape")
def test_shape(attempt, draw, sizes):
    """keeps (B, T, C) for any batch, any length up to block_size and any number of heads"""
    changes = {}, {"B": 1}, {"T": 1}, {"T": sizes.block}, {"nh": 1}
    shared.expect_shapes(MODULE, attempt, draw, sizes, *changes)


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
    _modules.expect_causal(MODULE, attempt, draw, sizes, weights, (x,))


@check(points=0.25, layer="causality")
def test_independent(attempt, draw, sizes, weights, x):
    """keeps batch entries apart, and heads apart"""
    shared.expect_independent(MODULE, attempt, draw, sizes, weights, x)


@check(
    points=0.5,
    layer="values",
    hint="A single token can only look at itself: what is left is v, projected.",
)
def test_single_token(attempt, draw, sizes):
    """gives a single token its own value, projected"""
    weights, (x,) = MODULE.weights_and_inputs(draw, replace_sizes(sizes, T=1))
    answer, proj = layer(attempt, sizes, weights)(x), weights["proj.weight"]
    q, k, v = (x @ w.mT for w in weights["qkv.weight"].chunk(3))
    assert_shape(answer, x.shape)
    if difference(answer.output, v @ proj.mT) > TOLERANCE:
        guesses = {
            "q, projected": q @ proj.mT,
            "k, projected": k @ proj.mT,
            "x, projected": x @ proj.mT,
            "v as it is, not projected": v,
            "v, projected with proj's weight untransposed": v @ proj,
        }
        for label, guess in guesses.items():
            same = torch.allclose(answer.output, guess, atol=1e-4)
            expect(
                not same, Evidence("a token alone should get v, projected; yours gets {}", label)
            )
    assert_matches(answer, v @ proj.mT)


@check(
    points=0.5,
    layer="values",
    hint="With one head, compare scores, weights and output by hand for T = 2.",
)
def test_single_head(attempt, draw, sizes):
    """attends right with a single head"""
    s = replace_sizes(sizes, nh=1)
    for weights, (x,) in (MODULE.weights_and_inputs(draw, s, 1.5), MODULE.low_scores(draw, s)):
        expect_values(attempt, s, weights, x)


@check(points=0.75, layer="values")
def test_values(attempt, draw, sizes):
    """attends right with several heads"""
    s = sizes
    weights, (x,) = MODULE.weights_and_inputs(draw, s, 1.5)
    got, want = layer(attempt, s, weights)(x).output, shared.attention_oracle(weights, x, s.nh)
    assert_shape(got, want.shape)
    # undoing proj enlarges rounding errors, so it is done only if there is a real error
    if difference(got, want) > TOLERANCE:
        shared.expect_unrounded(got, want)
        expect_heads_in_order(weights["proj.weight"], s.nh, got, want)
        assert_matches(got, want)
    weights, (x,) = MODULE.low_scores(draw, s)
    got, want = layer(attempt, s, weights)(x), shared.attention_oracle(weights, x, s.nh)
    shared.expect_unrounded(got.output, want)
    assert_matches(got, want, "with low scores, the output")
    # With these sizes a product of q and k without the transpose fits, too.
    for tied in (replace_sizes(s, T=s.hd), replace_sizes(s, T=s.C // 3, nh=3)):
        (x,) = MODULE.inputs(draw, tied, 1.5)
        name = Evidence("with {} tokens, as many as channels of a head, the output", tied.T)
        expect_values(attempt, tied, weights, x, name)
    s = shared.LARGE(draw)
    weights, (x,) = MODULE.weights_and_inputs(draw, s, 1.5)
    name = Evidence("with {} heads and {} tokens, the output", s.nh, s.T)
    expect_values(attempt, s, weights, x, name)


def expect_heads_in_order(proj, n_head, got, want):
    """Fail if, before proj, a head stands where another should, or only some heads are right."""
    actual, expected = (
        torch.linalg.solve(proj, y.mT).mT.unflatten(-1, (n_head, -1)).movedim(-2, 0)
        for y in (got, want)
    )  # (nh, B, T, hd)
    # for each head of the attempt, which heads of the right answer it is
    close = torch.isclose(actual[:, None], expected, atol=1e-4).flatten(2).all(-1)
    for h, row in enumerate(close.tolist()):
        source = row.index(True) if any(row) else h
        evidence = Evidence(
            "before proj, the channels of head {} hold what head {} has worked out", h, source
        )
        expect(source == h, evidence)
    right_heads = int(close.diagonal().sum())
    evidence = Evidence("{} of {} heads are right, the others are not", right_heads, n_head)
    expect(right_heads in (0, n_head), evidence)


CONTRACT = module_contract(
    MODULE,
    gradients="",
    parameters=("has 4C² parameters, qkv.weight and proj.weight, and no others", ""),
    refuses_indivisible="",
    refuses_too_long=("", ""),
    moves="",
    dtype_and_argument=("follows the dtype of x, and leaves x as it was", ""),
    eval_is_calm="",
    again="",
)


@check(
    points=0.25,
    layer="hygiene",
    hint="In training, which tensor loses entries: scores, weights or output?",
)
def test_drops_weights(attempt, draw):
    """drops attention weights in training, also after eval mode"""
    ask = partial(shared.dropout_ratio, MODULE, attempt, draw)
    ratio = ask()
    shared.expect_weights_dropped(ask, ratio)
    shared.expect_scaled_up(ask(T=1), 2 if shared.share_of_zeros(ratio) else 1)
    _modules.judge_modes(MODULE, attempt, draw)


@check(points=0.25, layer="hygiene", hint="There are two dropouts: the second comes last of all.")
def test_drops_output(attempt, draw):
    """drops channels of the output in training"""
    ask = partial(shared.dropout_ratio, MODULE, attempt, draw)
    ratio, alone = ask(), ask(T=1)
    # If only weights are dropped, all channels of a single token become 0 together. A channel that
    # becomes 0 alone shows the output's dropout.
    drops_channels = ((alone == 0) & (alone != 0).any(-1, keepdim=True)).any()
    if shared.share_of_zeros(ratio) <= shared.DROP / 4 or not drops_channels:
        drops_something = shared.varies(ratio) or shared.varies(ask(any_values=True))
        evidence = "training and eval mode give the same: nothing is dropped"
        expect(drops_something, evidence, "dropout_missing")
        expect(False, "in training no channel of the output is ever 0", "dropout_output_missing")
    shared.expect_share_dropped(ratio)
    means = ratio.mean(dim=(1, 2))
    bias = abs(float(means.mean()) - 1)
    evidence = Evidence(
        "averaged over many runs, training is {} away from eval mode: what survives is "
        "to be scaled up",
        Percent(bias),
    )
    expect(bias <= 8 * float(means.std()) / shared.COPIES**0.5 + 1e-9, evidence)


@check(points=0.25, layer="hygiene")
def test_written_out(attempt, draw, sizes, weights, x):
    """writes the attention out"""
    evidence = (
        "PyTorch's fused attention does the work: here the scores, the mask, the softmax and the"
        " sum are yours"
    )
    module = layer(attempt.with_options(random=True), sizes, weights)
    shared.expect_written_out(module, x, draw(*x.shape), evidence)


@check(
    points=0.25,
    layer="hygiene",
    hint="In every GPT-2 a head is 64 channels wide. 24 and 36 are numbers of layers.",
)
def test_gpt2_sizes(attempt):
    """makes the four attentions of GPT-2"""
    single = attempt.with_options(dtype="float32")
    for size, (C, nh) in GPT2.items():
        arguments = C, nh, GPT2_BLOCK
        attention = single.module("gpt2_attention", size).without_init()
        twin = single.CausalSelfAttention(*arguments).without_init()
        expected = f"CausalSelfAttention{arguments}"
        compared = ComparedWithModule("CausalSelfAttention", arguments, COMPARISON, expected)
        built = (
            attention.with_options(around=compared)
            .on_device("meta")
            .reporting_attributes(COMPARISON)
            .build_only()
        )
        # if it is the same module, other checks judge its answers
        alike = built.raised is None and built.module.attributes[COMPARISON] == expected
        if not alike or size == "small":  # large weights cost time
            expect_heads(attention, twin, size, C, nh)
        if not alike:
            expect_block(attention, twin, size, C)
            expect_no_dropout(attention, twin, size, C)


def expect_heads(attention, twin, size, C, nh):
    """Fail unless the output shows C channels, in heads of the right width.

    Args:
        attention: the module that the attempt makes for this size.
        twin: the module that it should make.
        size: the name of the GPT-2.
        C: the number of channels.
        nh: the number of heads.
    """
    weights, x = head_probe(C)
    answer, on_meta = attention.with_parameters(weights)(x), torch.empty(1, 2, C, device="meta")
    bases = answer.raised.bases if answer.raised is not None else ()
    if "NotImplementedError" in bases:
        answer.must_return()  # not written yet, which shows nothing about sizes
    if bases and twin.on_device("meta")(on_meta).raised is None:
        evidence = Evidence(
            'gpt2_attention("{}") is refused: its sizes are not those of GPT-2', size
        )
        expect(not {"ValueError", "AssertionError"} & {*bases}, evidence, "gpt2_sizes")
        fits = "RuntimeError" not in bases or attention.on_device("meta")(on_meta).raised is None
        evidence = Evidence("{} should take tokens of {} channels; yours does not", size, C)
        expect(fits, evidence, "gpt2_sizes")
    width = answer.module.parameters.get("qkv.weight")
    evidence = Evidence(
        "{} should have n_embd = {}; yours has {}", size, C, width and width.shape[-1]
    )
    expect(width is None or width.shape[-1] == C, evidence, "gpt2_sizes")
    head_width = channels_of_one_head(answer.output, x)
    is_right = head_width == C // nh or head_width == channels_of_one_head(
        twin.with_parameters(weights)(x).output, x
    )
    evidence = Evidence(
        "a head of {} should be {} channels wide; yours is {} wide", size, C // nh, head_width
    )
    expect(is_right, evidence, "gpt2_sizes")


def head_probe(C):
    """Return weights and two tokens whose output shows the width of a head.

    q and k read channel 0 and nothing else. v and proj are the identity.
    """
    unit, diagonal = torch.ones(C), torch.arange(C)[:, None].expand(C, 2)
    read = torch.cat([torch.tensor([[0, 0], [C, 0]]), diagonal + torch.tensor([2 * C, 0])])
    x = torch.stack([-unit, unit])[None]
    x[..., 0] *= 4.0
    qkv = Entries((3 * C, C), read, torch.ones(C + 2))
    proj = Entries((C, C), diagonal.contiguous(), unit)
    return {"qkv.weight": qkv, "proj.weight": proj}, x


def channels_of_one_head(output, x):
    """Return how many channels of token 1 share a head with channel 0.

    They are the channels that are not the plain mean of both tokens.
    """
    assert_shape(output, x.shape)
    return int((output[0, 1].abs() > 0.1).sum())


def expect_block(attention, twin, size, C):
    """Fail unless 1024 tokens are taken and 1025 refused, or the class itself is to blame.

    The calls run on a device that computes nothing.
    """

    def takes(module, T):
        meta_module = module.with_options(watch=True, around=STILL_AT_WORK).on_device("meta")
        answer = meta_module(torch.empty(1, T, C, device="meta"))
        # a call that is ended because it takes too long has accepted the tokens
        return answer.raised is None or answer.raised.type == "GeneratorExit"

    for T, expected, does in ((GPT2_BLOCK, True, "refuses"), (GPT2_BLOCK + 1, False, "takes")):
        evidence = Evidence(
            "{} should take {} tokens and no more; yours {} {}", size, GPT2_BLOCK, does, T
        )
        is_right = takes(attention, T) is expected or takes(twin, T) is not expected
        expect(is_right, evidence, "gpt2_sizes")


def expect_no_dropout(attention, twin, size, C):
    """Fail if training mode changes the answer, unless the class itself is to blame."""
    weights, x = head_probe(C)

    def is_steady(module):
        loaded = module.with_parameters(weights)
        return agrees(loaded.in_training_mode()(x).output, loaded(x).output)

    steady, twin_steady = is_steady(attention.with_options(random=True)), is_steady(twin)
    evidence = Evidence("{} should be made without dropout; yours drops in training mode", size)
    expect(steady or not twin_steady, evidence, "gpt2_sizes")


@check(points=0.25, layer="hygiene")
def test_gpt2_refuses(attempt):
    """refuses any other GPT-2, and lists the four"""
    single = attempt.with_options(dtype="float32")
    for size in ("big", "m", "tiny"):
        answer = single.module("gpt2_attention", size).without_init().build_only()
        assert_refused(answer, Evidence('gpt2_attention("{}")', size), suspect="argument_unchecked")
        missing = [name for name in GPT2 if name not in answer.message]
        evidence = Evidence(
            "the message does not list {}: say which names there are", Listed(missing, " and ")
        )
        expect(not missing, evidence)
    small = single.module("gpt2_attention", "small").without_init()
    width = small.build_only().module.parameters.get("qkv.weight")  # which another check judges
    weights, x = head_probe(GPT2["small"][0] if width is None else width.shape[-1])
    small.with_parameters(weights)(x).must_return()  # an attempt that refuses everything fails here


@check(
    points=0,
    layer="hygiene",
    hint="A large negative number that fits float32 may not fit float16. What fits all?",
    device="cuda",
)
def test_half_precision(attempt, reference, draw):
    """stays finite and near under autocast, in float16 and in bfloat16"""
    MODULE.half_precision(attempt, reference, draw)


PRECONDITIONS = {"CausalSelfAttention": of_module(MODULE)}
