"""Shared checks of a CausalSelfAttention with qkv and proj, which has one path or two.

`FusedProjection` describes the module, and has its general requirements. The functions are for
checks of several files. `attention_oracle` is the specification that their values are held to.
"""

import math
import re
from functools import partial
from types import SimpleNamespace

import torch

from manyheads.checks import (
    Evidence,
    Number,
    Percent,
    Sizes,
    agrees,
    assert_finite,
    assert_same,
    assert_shape,
    changed_positions,
    check,
    expect,
    replace_sizes,
)
from manyheads.checks.module_expectations import (
    RARE,
    copies_of,
    expect_gradients_awake,
    is_dropped,
    weights_without_effect,
)

from . import _modules
from ._modules import round_float32, width_of_heads, with_path_name

LARGE = Sizes(
    B=(2, 3),
    T=(40, 64),
    nh=(9, 12),
    hd=(3, 5),
    C=width_of_heads,
    block=lambda s, draw: s.T + draw.integer(1, 3),
    of_qkv=lambda s, _: 3 * s.C,
)
WATCHED = "while its operations are watched it gives another answer than otherwise"
DROP = 0.25  # the dropout rate
COPIES = 192


class FusedProjection(_modules.Subject):
    """The module of an exercise, with the general requirements of such a module.

    Attributes:
        sizes: T is shorter than the longest text, `block`. C is the width of the input.
        module: makes the module from an implementation, sizes, weights and options.
        paths: as in every subject.
    """

    name = "CausalSelfAttention"
    arguments = (("n_embd", "C"), ("n_head", "nh"), ("block_size", "block"))
    projections = (("qkv.weight", 3, "nh"),)

    def __init__(self, sizes, module, paths=_modules.ONE_PATH):
        self.sizes, self.module, self.paths = sizes, module, paths

    def shapes(self, s, **options):
        return {"qkv.weight": (3 * s.C, s.C), "proj.weight": (s.C, s.C)}

    @check(points=0.25, layer="gradients")
    def gradients(self, attempt, reference, draw):
        """lets gradients through to x and to both weights"""
        s = self.sizes(draw)
        (weights, inputs), g = self.low_scores(draw, s), draw(s.B, s.T, s.C)
        for path, options in self.paths.items():
            _modules.judge_gradients(
                self, attempt, reference, s, weights, inputs, g, path, random=True, **options
            )
            awake = self.module(
                attempt.with_options(cotangent=g), s, weights, dropout=RARE, **options
            )
            expect_gradients_awake(awake, *inputs)

    @check(points=0.25, layer="hygiene", hint="What turns your dropout off when training is over?")
    def eval_is_calm(self, attempt, reference, draw):
        """drops nothing in eval mode, and nothing where dropout is not given"""
        s = self.sizes(draw)
        weights, x = self.weights(draw, s), draw(s.B, s.T, s.C)
        for path, options in self.paths.items():
            build = partial(self.module, attempt.with_options(random=True), s, weights, **options)
            expect_no_dropout_in_eval(build, weights, x, s.nh, path)


def attention_oracle(weights, x, n_head):
    """Return causal attention, query by query: each sees its past alone, so nothing is hidden."""
    q, k, v = (
        (x @ rows.mT).unflatten(-1, (n_head, -1)) for rows in weights["qkv.weight"].chunk(3)
    )  # (B, T, nh, hd)
    heads = torch.empty_like(v)
    for t in range(x.shape[1]):
        past = slice(t + 1)
        scores = torch.einsum("bhd,bshd->bhs", q[:, t], k[:, past]) / q.shape[-1] ** 0.5
        heads[:, t] = torch.einsum("bhs,bshd->bhd", scores.softmax(-1), v[:, past])
    return heads.flatten(2) @ weights["proj.weight"].mT


def expect_shapes(subject, attempt, draw, s, *changes):
    """Fail unless the output has the shape of x, on each path and with each change of the sizes."""
    for path, options in subject.paths.items():
        for change in changes:
            case = replace_sizes(s, **change)
            module = subject.module(attempt, case, subject.weights(draw, case), **options)
            (x,) = subject.inputs(draw, case)
            assert_shape(module(x), x.shape, path or "the output")


def expect_unrounded(got, want, path=""):
    """Fail if the output is the right one, rounded to some decimals."""
    for decimals in range(1, 6) if got.shape == want.shape else ():
        evidence = with_path_name(
            path, Evidence("your output is the right one, rounded to {} decimals", decimals)
        )
        # with NaN the comparison is False: NaN is no rounded number
        is_rounded = (got - want.round(decimals=decimals)).abs().max() <= 1e-9
        expect(not is_rounded, evidence, "output_rounded")


def expect_independent(subject, attempt, draw, s, weights, x):
    """Fail unless sequences of a batch stay apart, and heads.

    First the last sequence is edited, then the weights that make q, k and v of the last head. If
    the heads are in another order, its channels are elsewhere.
    """
    weights, edited = subject.passing_on(weights), x.clone()
    edited[-1] = draw(s.T, s.C)
    channels = range(s.C)[-s.hd :]
    rows = weights["qkv.weight"].clone().view(3, s.C, s.C)
    rows[:, channels] = draw.weights(3, s.hd, s.C)
    edited_weights = {**weights, "qkv.weight": rows.view(-1, s.C)}
    should = Evidence(
        "another q, k, v in head {} should move channels {}…{} of {}",
        s.nh - 1,
        channels[0],
        channels[-1],
        s.C,
    )
    for path, options in subject.paths.items():
        module = subject.module(attempt, s, weights, **options)
        base = subject.checked_output(attempt, s, weights, x, **options)
        assert_finite(base, with_path_name(path, "the output"))
        evidence = with_path_name(
            path, "editing the last batch entry changes the output of another"
        )
        assert_same(base[:-1], module(edited).output[:-1], evidence)
        moved = changed_positions(base, module.with_parameters(edited_weights)(x), 2, 1e-5)
        does = (
            Evidence("{} channels, {}…{}", len(moved), moved[0], moved[-1])
            if moved
            else "none of yours"
        )
        evidence = Evidence("with the identity for proj, {}; it moves {}", should, does)
        expect(moved == [*channels], with_path_name(path, evidence))


def expect_no_dropout_in_eval(build, weights, x, heads, path):
    """Fail unless dropout sleeps in eval mode, and in training mode if no rate is given.

    Args:
        build: makes the module for a dropout rate.
        weights: its weights.
        x: its input.
        heads: the number of heads.
        path: the evidence's name for the path.
    """
    asleep = at_two_seeds(build(dropout=0.5), x)
    if not torch.equal(*asleep):
        always_on = torch.equal(*at_two_seeds(build(), x)) or is_dropped(
            *at_two_seeds(build(), copies_of(x[:1, :1])), heads=heads
        )
        expect(
            not always_on, with_path_name(path, "two runs in eval mode differ"), "dropout_always_on"
        )
        for name in weights_without_effect(lambda w: build().with_parameters(w)(x), weights):
            evidence = Evidence("two runs in eval mode differ, whatever {} is", name)
            expect(False, with_path_name(path, evidence), "params_not_registered")
        expect(False, with_path_name(path, "two runs in eval mode differ"))
    awake = at_two_seeds(build().in_training_mode(), x)
    if not torch.equal(*awake):
        is_steady = torch.equal(*at_two_seeds(build(dropout=0.0).in_training_mode(), x))
        setting = "without a word about dropout" if is_steady else "with dropout = 0"
        evidence = Evidence("made {} it drops in training all the same", setting)
        expect(False, with_path_name(path, evidence), "dropout_rate_fixed")
    evidence = "eval mode with dropout differs from training without: eval should do nothing at all"
    assert_same(awake[0], asleep[0], with_path_name(path, evidence))


def at_two_seeds(module, x):
    """Return the outputs of a module that may drop, at two seeds."""
    return [module.with_options(seed=seed)(x).output.nan_to_num() for seed in (1, 2)]


def dropout_ratio(subject, attempt, draw, T=12, any_values=False, **options):
    """Return the output in training mode divided by the output in eval mode: (COPIES, T, channels).

    In training mode the input is many copies of one sequence. Its position 0 sees one token. Every
    value is 1, so that weights which sum to 1 leave no trace.

    Args:
        T: the number of tokens.
        any_values: take other values, and ask about all copies in eval mode, too. An attempt that
            mixes up the sequences of a batch does so in both modes, so only the effect of dropout
            is left.
        options: of the module.
    """
    s = SimpleNamespace(C=6, nh=2, block=12)
    weights, sequence = subject.weights(draw, s), draw(1, T, s.C)
    sequence[..., 0] = 1.0

    def lowest_own_score():
        q, k, _ = (sequence[0] @ weights["qkv.weight"].mT).unflatten(-1, (3, s.nh, -1)).unbind(-3)
        return float((q * k).sum(-1).min())

    # Draw until the token's score is above 0 in every head, so that attempts with scores in place
    # of weights are always judged alike.
    while T == 1 and lowest_own_score() <= 0:
        sequence[..., 1:] = draw(1, T, s.C - 1)
    x = sequence.expand(COPIES, T, s.C).clone()
    if not any_values:
        weights["qkv.weight"][2 * s.C :] = torch.eye(s.C, dtype=torch.float64)[0]
    weights["proj.weight"] = round_float32(weights["proj.weight"].abs() + 0.1)
    build = partial(subject.module, attempt.with_options(random=True), s, weights)
    eval_input = x if any_values else x[:1]
    asleep = build(**options)(eval_input).output
    awake = build(dropout=DROP, **options).in_training_mode()(x).output
    assert_shape(asleep, eval_input.shape)
    assert_shape(awake, x.shape)
    assert_finite(asleep, "the output in eval mode")
    expect((asleep != 0).all(), "the output in eval mode is 0 in places")
    nan = (
        "the output in training is NaN, in eval mode it is not: 0 · -inf, where a masked score was"
        " dropped"
    )
    expect(awake.isfinite().all(), nan, "dropout_before_softmax")
    return awake / asleep


def share_of_zeros(ratio):
    """Return the share of zeros at positions 6 to 8, which shows the output's dropout alone.

    There a query sees at least four keys, even if the mask is the wrong way round, and hardly ever
    are all of their weights dropped.
    """
    return float((ratio[:, 6:9] == 0).double().mean())


def varies(ratio):
    """Return whether the numbers that are left at positions 6 to 8 differ from each other."""
    survivors = ratio[:, 6:9][ratio[:, 6:9] != 0]
    return survivors.numel() > 0 and bool(
        survivors.max() - survivors.min() > 1e-3 * survivors.abs().mean()
    )


def expect_weights_dropped(ask, ratio, path=""):
    """Fail unless training mode drops weights, rather than scores or the output alone.

    Args:
        ask: `dropped` for this path.
        ratio: its result.
        path: the evidence's name for the path.
    """
    if varies(ratio):
        return
    in_scores = varies(ask(any_values=True))
    sums = "the weights still sum to 1 in training: it is the scores that are dropped"
    expect(not in_scores, with_path_name(path, sums), "dropout_before_softmax")
    evidence = "the output is dropped and the weights are not"
    expect(not share_of_zeros(ratio), with_path_name(path, evidence), "dropout_on_output_only")
    evidence = "training and eval mode give the same: nothing is dropped"
    expect(False, with_path_name(path, evidence), "dropout_missing")


def expect_share_dropped(ratio, path=""):
    """Fail unless the share of zeros in the output is the dropout rate."""
    zeros, error = share_of_zeros(ratio), (DROP * (1 - DROP) / ratio[:, 6:9].numel()) ** 0.5
    evidence = Evidence(
        "with dropout = {}, {} of the output is 0 in training", DROP, Percent(zeros)
    )
    expect(abs(zeros - DROP) <= 8 * error, with_path_name(path, evidence))


def expect_scaled_up(alone, dropouts, path=""):
    """Fail unless a single token's output is scaled up by this number of dropouts.

    Args:
        alone: the result of `dropped` for one token.
        dropouts: how many dropouts the output goes through.
        path: the evidence's name for the path.
    """
    largest, survivor = float(alone.max()), 1 / (1 - DROP) ** dropouts
    # the number of dropouts that would scale it up by this factor
    acted = math.log(largest, 1 / (1 - DROP)) if largest > 0 else 0.5
    another = Evidence(
        "what a single token gives in training is not {} times what it gives in eval mode",
        Number(survivor),
    )
    expect(abs(acted - round(acted)) < 0.01, with_path_name(path, another))
    scaled = Evidence(
        "with dropout = {}, what survives in a single token should be scaled by {}; "
        "yours is scaled by {}",
        DROP,
        Number(survivor),
        Number(largest),
    )
    error = 1e-4 * survivor
    suspect = "dropout_extra" if abs(largest - survivor / (1 - DROP)) < error else ""
    expect(abs(largest - survivor) < error, with_path_name(path, scaled), suspect)
    evidence = (
        "in training a single token loses parts of a head: its one weight is dropped as a whole, or"
        " not at all"
    )
    # At most three numbers: one head is left, or the other one, or both. Numbers that differ by
    # rounding count as one.
    for numbers in alone[:, 0].T:
        expect(
            (numbers[numbers != 0].sort().values.diff() > 1e-4).sum() < 3,
            with_path_name(path, evidence),
        )


def expect_written_out(module, x, cotangent, fused, name="it"):
    """Fail if a fused function does the work.

    A fused function that cannot be seen is recognised by its missing second derivative. The answer
    must be the same while operations are watched as otherwise. If not, an attempt could do other
    work while it is watched.

    Args:
        module: the module, which may drop.
        x: its input.
        cotangent: the cotangent of its output.
        fused: the evidence if a fused function does the work.
        name: the evidence's name for the path.
    """
    answer = module.with_options(watch=True, cotangent=cotangent, second=True)(x)
    operations = answer.reply.operations
    in_kernel = answer.raised is not None and re.search(
        "derivative for .*(attention|flash)", answer.message
    )
    expect(not in_kernel and not (operations and operations.fused), fused, "delegated")
    if answer.raised is not None and answer.raised.stage != "gradient":
        answer.must_return()
    expect(operations.made, Evidence("nothing of what {} does can be seen", name), "delegated")
    plain = module(x)
    if answer.raised is None and plain.raised is None:
        expect(agrees(answer.output, plain.output), WATCHED)
