"""Hidden checks of the fused QKV: one projection, heads, causal attention, one projection back."""

import torch

from manyheads.box.worker.messages import Entries
from manyheads.checks import agrees, assert_matches, assert_refused, assert_shape, expect
from manyheads.checks.asserts import TOLERANCE, difference

from . import _causal_attention as shared
from . import _modules
from ._conditions import of_module
from ._made_as import STILL_AT_WORK, WHAT, made_as
from ._modules import asked_of, changed

FUSED = shared.Subject(
    lambda s: ((1, s.T, s.nh), (s.B, 1, s.nh), (s.B, s.block, s.nh), (s.B, s.T, 1))
)
layer = _modules.Layers(FUSED)
GPT2 = {"small": (768, 12), "medium": (1024, 16), "large": (1280, 20), "xl": (1600, 25)}
GPT2_BLOCK = 1024

test_shape = asked_of(FUSED, shared.shape)
test_finite = asked_of(FUSED, _modules.finite)
test_causal = asked_of(FUSED, _modules.causal)
test_independent = asked_of(FUSED, shared.independent)


@layer.values(0.5, "A single token can only look at itself: what is left is v, projected.")
def test_single_token(attempt, reference, draw, s):
    """gives a single token its own value, projected"""
    weights, (x,) = FUSED.weights_and_inputs(draw, changed(s, T=1))
    answer, want = FUSED.both(attempt, reference, s, weights, (x,))
    assert_shape(answer, x.shape)
    if difference(answer.output, want.output) > TOLERANCE:
        q, k, v = (x @ w.mT for w in weights["qkv.weight"].chunk(3))
        proj = weights["proj.weight"]
        guesses = {
            f"{name}, projected": tensor @ proj.mT
            for name, tensor in (("q", q), ("k", k), ("x", x))
        }
        guesses |= {
            "v as it is, not projected": v,
            "v, projected with proj's weight untransposed": v @ proj,
        }
        for label, guess in guesses.items():
            same = torch.allclose(answer.output, guess, atol=1e-4)
            expect(not same, f"a token alone should get v, projected; yours gets {label}")
    assert_matches(answer, want)


@layer.values(0.5, "With one head, compare scores, weights and output by hand for T = 2.")
def test_single_head(agree, draw, s):
    """attends right with a single head"""
    one_head = changed(s, nh=1)
    for case in (FUSED.weights_and_inputs(draw, s, 1.5), FUSED.low_scores(draw, one_head)):
        agree(one_head, *case)


@layer.values(0.75)
def test_values(attempt, reference, agree, draw, s):
    """attends right with several heads"""
    weights, inputs = FUSED.weights_and_inputs(draw, s, 1.5)
    got, want = (answer.output for answer in FUSED.both(attempt, reference, s, weights, inputs))
    assert_shape(got, want.shape)
    # undoing proj enlarges rounding errors, so it is done only if there is a real error
    if difference(got, want) > TOLERANCE:
        shared.expect_unrounded(got, want)
        heads = (
            torch.linalg.solve(weights["proj.weight"], y.mT).mT.unflatten(-1, (s.nh, s.hd))
            for y in (got, want)
        )
        # (nh, B, T, hd), before proj
        actual, expected = (y.transpose(1, 2).transpose(0, 1) for y in heads)
        close = [heads_close_to(head, expected) for head in actual]
        for h, row in enumerate(close):
            source = row.index(True) if any(row) else h
            expect(
                source == h,
                f"before proj, the channels of head {h} hold what head {source} has worked out",
            )
        right_heads = sum(row[h] for h, row in enumerate(close))
        expect(
            right_heads in (0, s.nh), f"{right_heads} of {s.nh} heads are right, the others are not"
        )
        assert_matches(got, want)
    weights, inputs = FUSED.low_scores(draw, s)
    got, want = FUSED.both(attempt, reference, s, weights, inputs)
    shared.expect_unrounded(got.output, want.output)
    assert_matches(got, want, "with low scores, the output")
    # With these sizes a product of q and k without the transpose fits, too.
    for tied in (changed(s, T=s.hd), changed(s, T=s.C // 3, nh=3)):
        inputs = FUSED.inputs(draw, tied, 1.5)
        agree(
            tied,
            weights,
            inputs,
            f"with {tied.T} tokens, as many as channels of a head, the output",
        )
    s = shared.LARGE(draw)
    agree(
        s,
        *FUSED.weights_and_inputs(draw, s, 1.5),
        f"with {s.nh} heads and {s.T} tokens, the output",
    )


def heads_close_to(head, candidates):
    """Return for each of the candidates whether it holds the numbers of this head."""
    return [bool(torch.allclose(head, candidate, atol=1e-4)) for candidate in candidates]


test_gradients = asked_of(FUSED, shared.gradients)
test_parameters = asked_of(
    FUSED, _modules.parameters, "has 4C² parameters, qkv.weight and proj.weight, and no others"
)
test_refuses_indivisible = asked_of(FUSED, _modules.refuses_indivisible)
test_refuses_too_long = asked_of(FUSED, _modules.refuses_too_long, hint="")
test_moves = asked_of(FUSED, _modules.moves)
test_dtype_and_argument = asked_of(FUSED, _modules.dtype_and_argument, shared.FOLLOWS, hint="")
test_eval_is_calm = asked_of(FUSED, shared.eval_is_calm)
test_again = asked_of(FUSED, _modules.again)


@layer.hygiene(0.25, "In training, which tensor loses entries: scores, weights or output?")
def test_drops_weights(attempt, draw):
    """drops attention weights in training, also after eval mode"""
    ratio = shared.dropped(FUSED, attempt, draw, same_values=True)
    shared.expect_weights_dropped(FUSED, attempt, draw, ratio)
    shared.expect_scaled_up(FUSED, attempt, draw, 2 if shared.silenced(ratio) else 1)
    _modules.judge_modes(FUSED, attempt, draw)


@layer.hygiene(0.25, "There are two dropouts: the second comes last of all.")
def test_drops_output(attempt, draw):
    """drops channels of the output in training"""
    ratio, alone = (
        shared.dropped(FUSED, attempt, draw, same_values=True, **options)
        for options in ({}, {"T": 1})
    )
    # If only weights are dropped, all channels of a single token become 0 together. A channel that
    # becomes 0 alone shows the output's dropout.
    if shared.silenced(ratio) <= shared.DROP / 4 or not bool(
        ((alone == 0) & (alone != 0).any(-1, keepdim=True)).any()
    ):
        drops_something = shared.varies(ratio) or shared.varies(
            shared.dropped(FUSED, attempt, draw, same_values=False, all_copies=True)
        )
        expect(
            drops_something,
            "training and eval mode give the same: nothing is dropped",
            "dropout_missing",
        )
        expect(False, "in training no channel of the output is ever 0", "dropout_output_missing")
    shared.expect_share_dropped(ratio)
    means = ratio.mean(dim=(1, 2))
    bias = abs(float(means.mean()) - 1)
    away = (
        f"averaged over many runs, training is {bias:.0%} away from eval mode: what survives is to"
        " be scaled up"
    )
    expect(bias <= 8 * float(means.std()) / shared.COPIES**0.5 + 1e-9, away)


@layer.hygiene(0.25)
def test_written_out(attempt, draw, s):
    """writes the attention out"""
    fused = (
        "PyTorch's fused attention does the work: here the scores, the mask, the softmax and the"
        " sum are yours"
    )
    shared.judge_written_out(FUSED, attempt, draw, s, fused, "nothing of what it does can be seen")


@layer.hygiene(0.25, "In every GPT-2 a head is 64 channels wide. 24 and 36 are numbers of layers.")
def test_gpt2_sizes(attempt):
    """makes the four attentions of GPT-2"""
    single = attempt.asking(dtype="float32")
    for size, (C, nh) in GPT2.items():
        block = "CausalSelfAttention", C, nh, GPT2_BLOCK
        attention, twin = (
            single.module(*around).without_init() for around in (("gpt2_attention", size), block)
        )
        args, expected = made_as(*block)
        built = attention.asking(around=expected).on("meta").reporting(WHAT).built()
        # if it is the same module, other checks judge its answers
        alike = built.raised is None and built.module.attributes[WHAT] == args
        if not alike or size == "small":  # large weights cost time
            expect_heads(attention, twin, size, C, nh)
        if not alike:
            expect_block(attention, twin, size, C)
            expect_no_dropout(attention, twin, size, C)


def expect_heads(attention, twin, size, C, nh):
    """Fail unless the output shows C channels, in heads of the right width."""
    weights, x = head_probe(C)
    answer = attention.loaded(weights)(x)
    if answer.raised is not None and "NotImplementedError" in answer.raised.bases:
        answer.must_return()  # not written yet, which shows nothing about sizes
    if (
        answer.raised is not None
        and twin.on("meta")(torch.empty(1, 2, C, device="meta")).raised is None
    ):
        refused = {"ValueError", "AssertionError"} & set(answer.raised.bases)
        expect(
            not refused,
            f'gpt2_attention("{size}") is refused: its sizes are not those of GPT-2',
            "gpt2_sizes",
        )
        wide = "RuntimeError" not in answer.raised.bases
        fits = wide or attention.on("meta")(torch.empty(1, 2, C, device="meta")).raised is None
        expect(fits, f"{size} should take tokens of {C} channels; yours does not", "gpt2_sizes")
    width = answer.module.parameters.get("qkv.weight")
    evidence = f"{size} should have n_embd = {C}; yours has {width and width.shape[-1]}"
    expect(width is None or width.shape[-1] == C, evidence, "gpt2_sizes")
    head_width = channels_of_one_head(answer.output, x)
    is_right = head_width == C // nh or head_width == channels_of_one_head(
        twin.loaded(weights)(x).output, x
    )
    expect(
        is_right,
        f"a head of {size} should be {C // nh} channels wide; yours is {head_width} wide",
        "gpt2_sizes",
    )


def head_probe(C):
    """Return weights and two tokens whose output shows the width of a head.

    q and k read channel 0 and nothing else. v and proj are the identity.
    """
    unit, diagonal = torch.ones(C), torch.arange(C)[:, None].expand(C, 2)
    read = torch.cat([torch.tensor([[0, 0], [C, 0]]), diagonal + torch.tensor([2 * C, 0])])
    x = torch.stack([-unit, unit])[None]
    x[..., 0] *= 4.0
    qkv, proj = (
        Entries((3 * C, C), read, torch.ones(C + 2)),
        Entries((C, C), diagonal.contiguous(), unit),
    )
    return {"qkv.weight": qkv, "proj.weight": proj}, x


def channels_of_one_head(output, x):
    """Return how many channels of token 1 share a head with channel 0.

    They are the channels that are not the plain mean of both tokens.
    """
    assert_shape(output, x.shape)
    return int((output[0, 1].abs() > 0.1).sum())


def expect_no_dropout(attention, twin, size, C):
    """Fail if training mode changes the answer, unless the class itself is to blame."""
    weights, x = head_probe(C)

    def is_steady(loaded):
        return agrees(loaded.training()(x).output, loaded(x).output)

    steady = is_steady(attention.asking(random=True).loaded(weights))
    twin_steady = is_steady(twin.loaded(weights))
    expect(
        steady or not twin_steady,
        f"{size} should be made without dropout; yours drops in training mode",
        "gpt2_sizes",
    )


def expect_block(attention, twin, size, C):
    """Fail unless 1024 tokens are taken and 1025 refused, or the class itself is to blame.

    The calls run on a device that computes nothing.
    """

    def takes(module, T):
        meta_module = module.asking(watch=True, around=STILL_AT_WORK).on("meta")
        answer = meta_module(torch.empty(1, T, C, device="meta"))
        # a call that is ended because it takes too long has accepted the tokens
        return answer.raised is None or answer.raised.type == "GeneratorExit"

    for T, expected in ((GPT2_BLOCK, True), (GPT2_BLOCK + 1, False)):
        evidence = (
            f"{size} should take {GPT2_BLOCK} tokens and no more; yours"
            f" {'refuses' if expected else 'takes'} {T}"
        )
        expect(
            takes(attention, T) is expected or takes(twin, T) is not expected,
            evidence,
            "gpt2_sizes",
        )


@layer.hygiene(0.25)
def test_gpt2_refuses(attempt):
    """refuses any other GPT-2, and lists the four"""
    single = attempt.asking(dtype="float32")
    for size in ("big", "m", "tiny"):
        answer = single.module("gpt2_attention", size).without_init().built()
        assert_refused(answer, f'gpt2_attention("{size}")', suspect="argument_unchecked")
        missing = [name for name in GPT2 if name not in answer.message]
        expect(
            not missing,
            f"the message does not list {' and '.join(missing)}: say which names there are",
        )
    small = single.module("gpt2_attention", "small").without_init()
    width = small.built().module.parameters.get("qkv.weight")  # which another check judges
    weights, x = head_probe(GPT2["small"][0] if width is None else width.shape[-1])
    small.loaded(weights)(x).must_return()  # an attempt that refuses everything fails here


test_half_precision = asked_of(FUSED, _modules.half_precision)

PRECONDITIONS = {"CausalSelfAttention": of_module(FUSED)}
