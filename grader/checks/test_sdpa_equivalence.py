"""Hidden checks of SDPA equivalence: one attention on two paths, and a comparison of the two."""

from functools import partial
from types import SimpleNamespace

import pytest
import torch

from manyheads.checks import (
    CheckFailed,
    Evidence,
    Number,
    PlantedDifference,
    Sizes,
    assert_finite,
    assert_matches,
    assert_shape,
    assert_unmutated,
    check,
    expect,
    module_contract,
    replace_sizes,
)
from manyheads.checks.asserts import TOLERANCE, difference
from manyheads.checks.module_expectations import HINT

from . import _causal_attention as shared
from . import _modules
from ._conditions import of_module
from ._modules import width_of_heads

SIZES = Sizes(B=[7], T=[9, 11], nh=[5], hd=[6], block=[13, 17], C=width_of_heads)
PATHS = {"flash=True": {"flash": True}, "flash=False": {"flash": False}}
# amount and position: either sign, and two sequences
PLANTED = ((8.0, 0.3), (-8.0, 0.3), (8.0, 0.77))
# as a part of the largest number: planting changes one number in thousands by its size or more
PLANT_SHOWS = 1e-3
PARTED = 0.1  # planting alone makes the paths differ by more, rounding by far less


def layer(implementation, s, weights, **options):
    """Return the module of these sizes with these weights. `flash` is set afterwards, too."""
    module = implementation.CausalSelfAttention(s.C, s.nh, s.block, **options).with_parameters(
        weights
    )
    return module.with_attributes(flash=options["flash"]) if "flash" in options else module


MODULE = shared.FusedProjection(SIZES, layer, PATHS)


@check(points=0.25, layer="shape")
def test_shape(attempt, draw, sizes):
    """keeps (B, T, C) on both paths, for any batch, length and number of heads"""
    changes = {}, {"B": 1, "T": sizes.block}, {"T": 1, "nh": 1}
    shared.expect_shapes(MODULE, attempt, draw, sizes, *changes)


@check(
    points=0.25,
    layer="causality",
    hint="is_causal=True on the fast path, and the mask by hand: try T = 3 on both.",
)
def test_causal(attempt, draw, sizes, weights, x):
    """does not see the future, on either path"""
    _modules.expect_causal(MODULE, attempt, draw, sizes, weights, (x,))


@check(points=0.25, layer="causality")
def test_independent(attempt, draw, sizes, weights, x):
    """keeps batch entries apart, and heads apart, on both paths"""
    shared.expect_independent(MODULE, attempt, draw, sizes, weights, x)


def expect_values(attempt, draw, s, path):
    """Fail unless the output of this path is right."""
    weights = MODULE.weights(draw, s)
    cases = []
    for change, name in (
        ({}, "several heads"),
        ({"T": 1}, "one token"),
        ({"T": s.hd}, "as many tokens as channels of a head"),
        ({"nh": 1}, "one head"),
        ({"nh": 3, "T": s.C // 3}, "as many tokens as channels of wider heads"),
    ):
        case = replace_sizes(s, **change)
        cases.append((name, case, weights, MODULE.inputs(draw, case, 1.5)))
    cases.append(("with low scores", s, *MODULE.low_scores(draw, s)))
    for name, case, weights, (x,) in cases:
        got = layer(attempt, case, weights, **PATHS[path])(x)
        want = shared.attention_oracle(weights, x, case.nh)
        shared.expect_unrounded(got.output, want, path)
        assert_matches(got, want, Evidence("{}, {}: the output", path, name))
    s = shared.LARGE(draw)
    weights, (x,) = MODULE.weights_and_inputs(draw, s, 1.5)
    got = layer(attempt, s, weights, **PATHS[path])(x)
    name = Evidence("{}, {} heads and {} tokens: the output", path, s.nh, s.T)
    assert_matches(got, shared.attention_oracle(weights, x, s.nh), name)


@check(
    points=0.5,
    layer="values",
    hint="It scales by itself. In its boolean mask True means: may look.",
)
def test_values_fast(attempt, draw, sizes):
    """attends right with flash=True"""
    expect_values(attempt, draw, sizes, "flash=True")


@check(points=0.25, layer="values")
def test_values_by_hand(attempt, draw, sizes):
    """attends right with flash=False"""
    expect_values(attempt, draw, sizes, "flash=False")


@check(
    points=0.25,
    layer="values",
    hint="Feed both paths the same q, k, v. Where do they part: scale, mask or merge?",
)
def test_paths_agree(attempt, draw, sizes):
    """gives the same on both paths, to 1e-5"""
    full_context = replace_sizes(sizes, T=sizes.block)
    for weights, (x,) in (
        MODULE.weights_and_inputs(draw, full_context),
        MODULE.ascending_scores(draw, sizes),
    ):
        fast, by_hand = (
            layer(attempt, sizes, weights, **options)(x).output for options in PATHS.values()
        )
        assert_matches(fast, by_hand, "held against flash=False, flash=True")


CONTRACT = module_contract(
    MODULE,
    gradients=("lets gradients through to x and to both weights, on both paths", ""),
    parameters=("has 4C² parameters, qkv.weight and proj.weight, and no others", ""),
    refuses_indivisible="",
    refuses_too_long=(
        "refuses more tokens than block_size, on both paths",
        "SDPA has no mask that a long input fails at. Where is T compared with block_size?",
    ),
    moves=("works where .to(device) has put it, on both paths", ""),
    dtype_and_argument=("follows the dtype of x, and leaves x as it was, on both paths", ""),
    eval_is_calm=(
        "drops nothing in eval mode, and nothing where dropout is not given, on both paths",
        "SDPA's dropout_p does not know about eval(). What sets it to 0?",
    ),
    again=("answers every call as a fresh instance would, on both paths", HINT),
)


@check(
    points=0.25,
    layer="hygiene",
    hint="In training, which tensors lose entries, on which path? There are two.",
)
def test_drops(attempt, draw):
    """drops attention weights and channels of the output in training, also after eval mode, on
    both paths
    """
    for path, options in PATHS.items():
        ask = partial(shared.dropout_ratio, MODULE, attempt, draw, **options)
        ratio = ask()
        shared.expect_weights_dropped(ask, ratio, path)
        never = Evidence("{}: in training no channel of the output is ever 0", path)
        expect(shared.share_of_zeros(ratio) > shared.DROP / 4, never, "dropout_output_missing")
        # first, because it recognises a dropout too many
        shared.expect_scaled_up(ask(T=1), 2, path)
        shared.expect_share_dropped(ratio, path)
    _modules.judge_modes(MODULE, attempt, draw)


@check(points=0.25, layer="hygiene")
def test_flag(attempt):
    """takes flash=True as its last argument, and obeys the attribute"""
    build = partial(attempt.with_options(watch=True).CausalSelfAttention, 6, 2, 8)
    for args, expected, setting in (
        ((), True, "without a word about flash"),
        ((0.0, False), False, "with flash=False as the last argument"),
        ((0.0, True), True, "with flash=True as the last argument"),
    ):
        answer = build(*args).reporting_attributes("flash").build_only()
        answer.must_return()
        actual = answer.module.attributes["flash"]
        yours = actual if isinstance(actual, bool) else "something else"
        evidence = Evidence("{}, module.flash should be {}; yours is {}", setting, expected, yours)
        expect(actual == expected, evidence, "interface")

    def uses_fused_kernel(built, flash):
        module = build(0.0, built).reporting_attributes("flash").with_attributes(flash=flash)
        answer = module(torch.ones(2, 3, 6))
        answer.must_return()
        return answer.reply.operations.fused

    if uses_fused_kernel(True, True) and not uses_fused_kernel(False, False):
        obeys = uses_fused_kernel(False, True) and not uses_fused_kernel(True, False)
        evidence = "setting module.flash after construction does not change the path"
        expect(obeys, evidence, "interface")


@check(
    points=0.25,
    layer="hygiene",
    hint="One path calls the fused function, the other is yours. Neither does the other's work.",
)
def test_paths_differ(attempt, draw):
    """goes through SDPA without a (T, T) tensor with flash=True, and writes it out with
    flash=False
    """
    watched = attempt.with_options(watch=True, random=True)
    # T and block have a factor that no other size has; or T is so small that any number may be a
    # square.
    for B, T in ((5, 61), (3, 41), (2, 46), (7, 3)):
        s = SimpleNamespace(B=B, T=T, nh=5, C=30, block=67)
        weights, x = MODULE.weights(draw, s), draw(B, T, s.C)
        asleep = layer(watched, s, weights, flash=True)
        # dropout is 0 in both modes
        for module, when in ((asleep, ""), (asleep.in_training_mode(), ", in training mode,")):
            expect_fused(module, x, s.block, when)
    s = SimpleNamespace(B=5, T=9, nh=5, C=30, block=13)
    weights, (x,) = MODULE.weights_and_inputs(draw, s)
    evidence = "flash=False has PyTorch's fused attention do the work: on this path it is yours"
    module = layer(attempt.with_options(random=True), s, weights, flash=False)
    shared.expect_written_out(module, x, draw(*x.shape), evidence, "flash=False")


def expect_fused(module, x, block, when):
    """Fail unless the fused function does the work, without a (T, T) tensor.

    Args:
        module: the module, with flash=True.
        x: its input.
        block: its block_size.
        when: the evidence's words for the mode of the module.
    """
    T, subject = x.shape[1], Evidence("flash=True{}", when)
    answer, planted = module(x), module.with_options(around=PlantedDifference(*PLANTED[0]))(x)
    assert_shape(answer, x.shape)
    operations = answer.reply.operations
    evidence = Evidence("{} does not go through F.scaled_dot_product_attention", subject)
    expect(operations.fused, evidence, "delegated")
    for side, name in ((T, "(T, T)"), (block, "(block_size, block_size)")):
        has_square = T > 40 and any(n % side**2 == 0 for n in operations.made)
        evidence = Evidence(
            "{} makes a tensor of shape {} on the way: the squares are back", subject, name
        )
        expect(not has_square, evidence, "materialised")
    # otherwise the fused function is called where nothing can be planted
    is_reached = "tanh" in planted.reply.operations.kernels
    is_used = not is_reached or difference(planted.output, answer.output) > PLANT_SHOWS
    evidence = Evidence(
        "with {} tokens, {} calls F.scaled_dot_product_attention and makes nothing of its answer",
        T,
        subject,
    )
    expect(is_used, evidence, "delegated")


@check(
    points=0.25,
    layer="hygiene",
    hint="Does the flag flip between the two calls? Is dropout off? Largest, absolute?",
)
def test_measures(attempt, draw, sizes):
    """max_path_difference gives the largest absolute difference, with dropout off"""
    weights = MODULE.weights(draw, sizes)
    for planted in PLANTED:
        # the flag is for a fast path that does without SDPA, which another check judges
        for flag in ("", "flash"):
            difference_planted = PlantedDifference(*planted, flag)
            planting_attempt = attempt.with_options(random=True, around=difference_planted)
            build = partial(layer, planting_attempt, sizes, weights)
            x = draw(sizes.B, sizes.T, sizes.C)  # forward has not seen it before
            answer = planting_attempt.max_path_difference(build(dropout=0.5).in_training_mode(), x)
            answer.must_return()  # before forward is called, which would be held to have failed
            evidence = Evidence(
                "max_path_difference should give a float; yours gives {}", answer.kind_in_words
            )
            expect(answer.kind in ("float", "float64"), evidence, "interface")
            fast, by_hand = (
                MODULE.checked_output(planting_attempt, sizes, weights, x, **options)
                for options in PATHS.values()
            )
            assert_finite(fast)
            assert_finite(by_hand)
            if (fast - by_hand).abs().max() > PARTED:
                break
        expect_largest(planting_attempt, build, x, answer, fast - by_hand)


def expect_largest(attempt, build, x, answer, differences):
    """Fail unless the answer is the largest of these differences.

    An attempt whose paths cannot be compared is not judged.

    Args:
        attempt: has something planted in its fast path.
        build: makes its module with further options.
        x: the input.
        answer: the answer of max_path_difference in training mode.
        differences: the output of flash=True minus the one of flash=False.
    """
    worst = float(differences.abs().max())

    def is_near(answer, number):
        return abs(float(answer.output) - number) <= 1e-4 * worst

    if is_near(answer, worst) or not is_steady(build, x):
        return
    without_dropout, actual = (
        attempt.max_path_difference(build(dropout=0.0), x),
        float(answer.output),
    )
    evidence = "in training mode it gives another number: dropout is at work while it compares"
    is_awake = without_dropout.raised is None and is_near(without_dropout, worst)
    expect(not is_awake, evidence, "path_difference")
    evidence = "it gives 0, and the paths differ: is one path compared with itself?"
    expect(actual != 0, evidence, "path_difference")
    evidence = (
        "where the other path is the larger one, another number comes out: take the absolute value"
    )
    for signed in (float(differences.max()), float(-differences.min())):
        expect(not is_near(answer, signed), evidence, "path_difference")
    evidence = Evidence(
        "it gives {} times the largest absolute difference", Number(actual / worst, 2)
    )
    expect(False, evidence, "path_difference")


def is_steady(build, x):
    """Return whether each path gives the same again, and leaves x alone.

    The second call has another seed, and dropout. If the two differ, the paths cannot be compared.
    """
    for options in PATHS.values():
        was = build(**options)(x)
        again = build(dropout=0.5, **options).with_options(seed=1)(x)
        if again.reply.mutated or difference(again.output, was.output) > TOLERANCE:
            return False
    return True


@check(
    points=0.25,
    layer="hygiene",
    hint="Note the flag and the mode before, and give them back in a finally.",
)
def test_leaves_no_trace(attempt, draw, sizes):
    """max_path_difference leaves the module as it was, and records no gradients"""
    s = sizes
    watched = attempt.with_options(random=True, watch=True, cotangent=torch.zeros(()))
    for flash, training in ((True, True), (False, False)):
        module = layer(watched, s, MODULE.weights(draw, s), dropout=0.2, flash=flash)
        module = module.reporting_attributes("flash")
        x = draw(s.B, s.T, s.C)
        answer = watched.max_path_difference(module.in_training_mode() if training else module, x)
        answer.must_return()
        facts, operations = answer.module, answer.reply.operations
        evidence = Evidence("module.flash was {} and is another afterwards", flash)
        expect(facts.attributes["flash"] == flash, evidence, "path_difference")
        evidence = Evidence("module.training was {} and is {} afterwards", training, facts.training)
        expect(facts.training == training, evidence, "path_difference")
        expect(not facts.changed, "the weights changed", "path_difference")
        evidence = "gradients are recorded while it compares, and they are of no use"
        expect(not operations.recorded, evidence, "path_difference")
        assert_unmutated(answer, suspect="input_mutated")
    module = layer(attempt, s, MODULE.weights(draw, s)).reporting_attributes("flash")
    single = attempt.with_options(random=True, dtype="float32")
    answer = single.max_path_difference(module, draw(s.B, s.T, s.C))
    # an attempt that fails in float32 is judged by another check
    is_unchanged = answer.raised is not None or not answer.module.changed
    evidence = "the weights were float32 and are something else afterwards"
    expect(is_unchanged, evidence, "path_difference")


@check(
    points=0,
    layer="hygiene",
    hint="A large negative number that fits float32 may not fit float16. What fits all?",
    device="cuda",
)
def test_half_precision(attempt, reference, draw):
    """stays finite and near under autocast, in float16 and in bfloat16, on both paths"""
    MODULE.half_precision(attempt, reference, draw)


@check(
    points=0,
    layer="hygiene",
    hint="What of shape (T, T) is made? With is_causal=True not even a mask is needed.",
    device="cuda",
)
def test_memory(attempt, draw):
    """holds far less than a (T, T) matrix with flash=True, for T = 4096"""
    s = SimpleNamespace(B=1, T=4096, nh=12, C=192, block=4096)
    matrix = s.B * s.nh * s.T**2 * 4  # bytes in float32; a mask that all heads share is a twelfth
    single = attempt.with_options(dtype="float32", memory=True, random=True)
    weights, (x,) = MODULE.weights_and_inputs(draw, s)
    answer = layer(single, s, weights, flash=True)(x)
    answer.must_return()
    if answer.reply.peak is None:
        pytest.skip("this device does not say how much memory a call holds")
    peak_share = answer.reply.peak / matrix
    if peak_share < 1 / 4:
        return
    watched = attempt.with_options(watch=True, random=True)
    weights, x = MODULE.weights(draw, s), draw(s.B, 9, s.C)
    operations = layer(watched, s, weights, flash=True)(x).reply.operations
    is_fused = operations is not None and operations.fused
    evidence = Evidence(
        "flash=True holds {} times B · nh · T² numbers at its peak", Number(peak_share, 3)
    )
    raise CheckFailed(evidence, "materialised" if is_fused else "delegated")


def on_either_path(attempt, draw):
    """Yield the conditions of both paths.

    The interaction may show on one path alone. Equal keys must share one unit out on both.
    """
    for options in PATHS.values():
        yield from of_module(MODULE, **options)(attempt, draw)


PRECONDITIONS = {"CausalSelfAttention": on_either_path}
