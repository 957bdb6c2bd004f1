"""Hidden checks of SDPA equivalence: one attention on two paths, and a comparison of the two."""

from types import SimpleNamespace

import pytest
import torch

from manyheads.checks import (
    CheckFailed,
    assert_finite,
    assert_matches,
    assert_shape,
    assert_unmutated,
    expect,
)
from manyheads.checks.asserts import TOLERANCE, difference

from . import _causal_attention as shared
from . import _layers as marked
from . import _modules
from ._conditions import of_module
from ._modules import asked_of, changed
from ._planted import planting

PATHS = {"flash=True": {"flash": True}, "flash=False": {"flash": False}}
BOTH = shared.Subject(lambda s: ((1, s.block, s.nh), (s.B, 1, 1)), PATHS)
layer = _modules.Layers(BOTH)
PLANTED = ((8.0, 0.3), (-8.0, 0.3), (8.0, 0.77))  # either sign, and two sequences
# as a part of the largest number: planting changes one number in thousands by its size or more
PLANT_SHOWS = 1e-3
PARTED = 0.1  # planting alone makes the paths differ by more, rounding by far less

test_shape = asked_of(
    BOTH, shared.shape, "keeps (B, T, C) on both paths, for any batch, length and number of heads"
)
test_causal = asked_of(
    BOTH,
    _modules.causal,
    "does not see the future, on either path",
    "is_causal=True on the fast path, and the mask by hand: try T = 3 on both.",
)
test_independent = asked_of(
    BOTH, shared.independent, "keeps batch entries apart, and heads apart, on both paths"
)


@marked.values(0.5, "It scales by itself. In its boolean mask True means: may look.")
def values(subject, attempt, reference, draw):
    """attends right with flash=True"""
    path, options, s = subject, PATHS[subject], BOTH.sizes(draw)
    weights = BOTH.weights(draw, s)
    several = (
        (s.T, "several heads"),
        (1, "one token"),
        (s.hd, "as many tokens as channels of a head"),
    )
    cases = [
        (s, weights, BOTH.inputs(draw, changed(s, T=T), 1.5), f"{case}:") for T, case in several
    ]
    cases.append((changed(s, nh=1), weights, BOTH.inputs(draw, s, 1.5), "one head:"))
    tied = changed(s, nh=3, T=s.C // 3)
    cases.append(
        (tied, weights, BOTH.inputs(draw, tied, 1.5), "as many tokens as channels of wider heads:")
    )
    for n, weights, inputs, label in (*cases, (s, *BOTH.low_scores(draw, s), "with low scores:")):
        got, want = BOTH.both(attempt, reference, n, weights, inputs, **options)
        shared.expect_unrounded(got.output, want.output, path)
        assert_matches(got, want, f"{path}, {label} the output")
    s = shared.LARGE(draw)
    label = f"{path}, {s.nh} heads and {s.T} tokens: the output"
    BOTH.assert_matches(
        attempt, reference, s, *BOTH.weights_and_inputs(draw, s, 1.5), label, **options
    )


test_values_fast = asked_of("flash=True", values)
test_values_by_hand = asked_of(
    "flash=False", values, "attends right with flash=False", "", points=0.25
)


@layer.values(0.25, "Feed both paths the same q, k, v. Where do they part: scale, mask or merge?")
def test_paths_agree(attempt, draw, s):
    """gives the same on both paths, to 1e-5"""
    for weights, inputs in (
        BOTH.weights_and_inputs(draw, changed(s, T=s.block)),
        BOTH.ascending_scores(draw, s),
    ):
        fast, by_hand = (
            BOTH.module(attempt, s, weights, **options)(*inputs).output
            for options in PATHS.values()
        )
        assert_matches(fast, by_hand, "held against flash=False, flash=True")


test_gradients = asked_of(
    BOTH, shared.gradients, "lets gradients through to x and to both weights, on both paths"
)
test_parameters = asked_of(
    BOTH, _modules.parameters, "has 4C² parameters, qkv.weight and proj.weight, and no others"
)
test_refuses_indivisible = asked_of(BOTH, _modules.refuses_indivisible)
test_refuses_too_long = asked_of(
    BOTH,
    _modules.refuses_too_long,
    "refuses more tokens than block_size, on both paths",
    "SDPA has no mask that a long input fails at. Where is T compared with block_size?",
)
test_moves = asked_of(BOTH, _modules.moves, "works where .to(device) has put it, on both paths")
test_dtype_and_argument = asked_of(
    BOTH, _modules.dtype_and_argument, f"{shared.FOLLOWS}, on both paths", ""
)
test_eval_is_calm = asked_of(
    BOTH,
    shared.eval_is_calm,
    "drops nothing in eval mode, and nothing where dropout is not given, on both paths",
    "SDPA's dropout_p does not know about eval(). What sets it to 0?",
)
test_again = asked_of(
    BOTH, _modules.again, "answers every call as a fresh instance would, on both paths"
)


@layer.hygiene(0.25, "In training, which tensors lose entries, on which path? There are two.")
def test_drops(attempt, draw):
    """drops attention weights and channels of the output in training, also after eval mode, on
    both paths
    """
    for path, options in PATHS.items():
        ratio = shared.dropped(BOTH, attempt, draw, same_values=True, **options)
        shared.expect_weights_dropped(BOTH, attempt, draw, ratio, path, **options)
        never = f"{path}: in training no channel of the output is ever 0"
        expect(shared.silenced(ratio) > shared.DROP / 4, never, "dropout_output_missing")
        # first, because it recognises a dropout too many
        shared.expect_scaled_up(BOTH, attempt, draw, 2, path, **options)
        shared.expect_share_dropped(ratio, path)
    _modules.judge_modes(BOTH, attempt, draw)


@layer.hygiene(0.25)
def test_flag(attempt):
    """takes flash=True as its last argument, and obeys the attribute"""

    def module(*args):
        return (
            attempt.asking(watch=True)
            .module("CausalSelfAttention", 6, 2, 8, *args)
            .reporting("flash")
        )

    for args, expected in (((), True), ((0.0, False), False), ((0.0, True), True)):
        answer = module(*args).built()
        answer.must_return()
        setting = (
            f"with flash={args[1]} as the last argument" if args else "without a word about flash"
        )
        actual = answer.module.attributes["flash"]
        yours = actual if isinstance(actual, bool) else "something else"
        expect(
            actual == expected,
            f"{setting}, module.flash should be {expected}; yours is {yours}",
            "interface",
        )

    def fused(built, flash):
        answer = module(0.0, built).with_attributes(flash=flash)(torch.ones(2, 3, 6))
        answer.must_return()
        return answer.reply.operations.fused

    if fused(True, True) and not fused(False, False):
        obeys = fused(False, True) and not fused(True, False)
        expect(
            obeys, "setting module.flash after construction does not change the path", "interface"
        )


@layer.hygiene(
    0.25, "One path calls the fused function, the other is yours. Neither does the other's work."
)
def test_paths_differ(attempt, draw):
    """goes through SDPA without a (T, T) tensor with flash=True, and writes it out with
    flash=False
    """
    # T and block have a factor that no other size has; or T is so small that any number may be a
    # square.
    for s in (
        SimpleNamespace(B=B, T=T, nh=5, C=30, block=67)
        for B, T in ((5, 61), (3, 41), (2, 46), (7, 3))
    ):
        weights, x = BOTH.weights(draw, s), draw(s.B, s.T, s.C)
        asleep = BOTH.module(attempt.asking(watch=True, random=True), s, weights, flash=True)
        # dropout is 0 in both modes
        for module, when in ((asleep, ""), (asleep.training(), ", in training mode,")):
            answer, planted = module(x), module.asking(around=planting(*PLANTED[0]))(x)
            assert_shape(answer, x.shape)
            operations = answer.reply.operations
            expect(
                operations.fused,
                f"flash=True{when} does not go through F.scaled_dot_product_attention",
                "delegated",
            )
            squares = (
                [n for n in operations.made if n % s.T**2 == 0 or n % s.block**2 == 0]
                if s.T > 40
                else []
            )
            shape_name = (
                "(T, T)" if any(n % s.T**2 == 0 for n in squares) else "(block_size, block_size)"
            )
            evidence = (
                f"flash=True{when} makes a tensor of shape {shape_name} on the way: the squares are"
                " back"
            )
            expect(not squares, evidence, "materialised")
            # otherwise the fused function is called where nothing can be planted
            reached = "tanh" in planted.reply.operations.kernels
            evidence = (
                f"flash=True{when} calls F.scaled_dot_product_attention and makes nothing of its"
                " answer"
            )
            is_used = not reached or difference(planted.output, answer.output) > PLANT_SHOWS
            expect(is_used, f"with {s.T} tokens, {evidence}", "delegated")
    s = SimpleNamespace(B=5, T=9, nh=5, C=30, block=13)
    fused = "flash=False has PyTorch's fused attention do the work: on this path it is yours"
    shared.judge_written_out(
        BOTH, attempt, draw, s, fused, "nothing of what flash=False does can be seen", flash=False
    )


@layer.hygiene(0.25, "Does the flag flip between the two calls? Is dropout off? Largest, absolute?")
def test_measures(attempt, draw, s):
    """max_path_difference gives the largest absolute difference, with dropout off"""
    weights = BOTH.weights(draw, s)
    for planted in PLANTED:
        implementation = attempt.asking(random=True, around=planting(*planted))
        answer, x, apart = measured_first(implementation, draw, s, weights)
        # the fast path does without SDPA, which another check judges
        if not float(apart.abs().max()) > PARTED:
            implementation = attempt.asking(random=True, around=planting(*planted, "in_forward"))
            answer, x, apart = measured_first(implementation, draw, s, weights)
        judge_measure(implementation, s, weights, x, answer, apart)


def measured(implementation, s, weights, x, *, training=True):
    module = BOTH.module(implementation, s, weights, dropout=0.5 if training else 0.0)
    return implementation.call("max_path_difference", module.training() if training else module, x)


def measured_first(implementation, draw, s, weights):
    """Return max_path_difference of a new input, this input, and the difference of the paths.

    forward has not seen the input before.
    """
    x = draw(s.B, s.T, s.C)
    answer = measured(implementation, s, weights, x)
    answer.must_return()  # before another function is asked, which would be held to have failed
    is_float = answer.kind in ("float", "float64")
    expect(
        is_float,
        f"max_path_difference should give a float; yours gives {answer.returned}",
        "interface",
    )
    fast, by_hand = (
        BOTH.answered(implementation, s, weights, x, **options) for options in PATHS.values()
    )
    assert_finite(fast)
    assert_finite(by_hand)
    return answer, x, fast - by_hand


def judge_measure(implementation, s, weights, x, answer, differences):
    """Fail unless the answer is the largest of these differences.

    An attempt whose paths cannot be compared is not judged.
    """

    def is_right(answer):
        return abs(float(answer.output) - worst) <= 1e-4 * worst

    worst = float(differences.abs().max())
    if is_right(answer) or not steady(implementation, s, weights, x):
        return
    calm, actual = measured(implementation, s, weights, x, training=False), float(answer.output)
    evidence = "in training mode it gives another number: dropout is at work while it compares"
    expect(calm.raised is not None or not is_right(calm), evidence, "path_difference")
    expect(
        actual != 0,
        "it gives 0, and the paths differ: is one path compared with itself?",
        "path_difference",
    )
    for signed in (float(differences.max()), float(-differences.min())):
        evidence = (
            "where the other path is the larger one, another number comes out: take the absolute"
            " value"
        )
        expect(abs(actual - signed) > 1e-4 * worst, evidence, "path_difference")
    expect(
        False,
        f"it gives {actual / worst:.2g} times the largest absolute difference",
        "path_difference",
    )


def steady(implementation, s, weights, x):
    """Return whether each path gives the same again, and leaves x alone.

    The second call has another seed, and dropout. If the two differ, the paths cannot be compared.
    """
    for options in PATHS.values():
        was = BOTH.module(implementation, s, weights, **options)(x)
        again = BOTH.module(implementation.asking(seed=1), s, weights, dropout=0.5, **options)(x)
        if again.reply.mutated or difference(again.output, was.output) > TOLERANCE:
            return False
    return True


@layer.hygiene(0.25, "Note the flag and the mode before, and give them back in a finally.")
def test_leaves_no_trace(attempt, draw, s):
    """max_path_difference leaves the module as it was, and records no gradients"""
    implementation = attempt.asking(random=True, watch=True, cotangent=torch.zeros(()))
    for flash, training in ((True, True), (False, False)):
        module = BOTH.module(
            implementation, s, BOTH.weights(draw, s), dropout=0.2, flash=flash
        ).reporting("flash")
        answer = implementation.call(
            "max_path_difference", module.training() if training else module, draw(s.B, s.T, s.C)
        )
        answer.must_return()
        facts, operations = answer.module, answer.reply.operations
        flag = f"module.flash was {flash} and is another afterwards"
        expect(facts.attributes["flash"] == flash, flag, "path_difference")
        mode = f"module.training was {training} and is {facts.training} afterwards"
        expect(facts.training == training, mode, "path_difference")
        expect(not facts.changed, "the weights changed", "path_difference")
        expect(
            not operations.recorded,
            "gradients are recorded while it compares, and they are of no use",
            "path_difference",
        )
        assert_unmutated(answer, suspect="input_mutated")
    module = BOTH.module(attempt, s, BOTH.weights(draw, s)).reporting("flash")
    answer = attempt.asking(random=True, dtype="float32").call(
        "max_path_difference", module, draw(s.B, s.T, s.C)
    )
    # an attempt that fails in float32 is judged by another check
    unchanged = answer.raised is not None or not answer.module.changed
    expect(
        unchanged, "the weights were float32 and are something else afterwards", "path_difference"
    )


test_half_precision = asked_of(
    BOTH,
    _modules.half_precision,
    "stays finite and near under autocast, in float16 and in bfloat16, on both paths",
)


@layer.hygiene(
    0, "What of shape (T, T) is made? With is_causal=True not even a mask is needed.", device="cuda"
)
def test_memory(attempt, draw):
    """holds far less than a (T, T) matrix with flash=True, for T = 4096"""
    s = SimpleNamespace(B=1, T=4096, nh=12, C=192, block=4096)
    matrix = s.B * s.nh * s.T**2 * 4  # bytes in float32; a mask that all heads share is a twelfth
    implementation = attempt.asking(dtype="float32", memory=True, random=True)
    answer = BOTH.module(implementation, s, BOTH.weights(draw, s), flash=True)(draw(s.B, s.T, s.C))
    answer.must_return()
    if answer.reply.peak is None:
        pytest.skip("this device does not say how much memory a call holds")
    peak_share = answer.reply.peak / matrix
    if peak_share < 1 / 4:
        return
    module = BOTH.module(
        attempt.asking(watch=True, random=True), s, BOTH.weights(draw, s), flash=True
    )
    operations = module(draw(s.B, 9, s.C)).reply.operations
    evidence = f"flash=True holds {peak_share:.2f} times B · nh · T² numbers at its peak"
    raise CheckFailed(
        evidence, "materialised" if operations is not None and operations.fused else "delegated"
    )


def on_either_path(attempt, draw):
    """Yield the conditions of both paths.

    The interaction may show on one path alone. Equal keys must share one unit out on both.
    """
    for options in PATHS.values():
        yield from of_module(BOTH, **options)(attempt, draw)


PRECONDITIONS = {"CausalSelfAttention": on_either_path}
