"""Shared checks of exercises 7 and 8: a CausalSelfAttention with one path or with two."""

import math
import re
from types import SimpleNamespace

import torch

from manyheads.checks import agrees, assert_finite, assert_same, assert_shape, expect
from manyheads.checks.module_expectations import (
    RARE,
    copies_of,
    expect_gradients_awake,
    is_dropped,
    weights_without_effect,
)

from . import _layers as layer
from . import _modules
from ._modules import Sizes, changed, joined, on, round_float32

WATCHED = "while its operations are watched it gives another answer than otherwise"
FOLLOWS = "follows the dtype of x, and leaves x as it was"

MORE = {"block": lambda s, draw: s.T + draw.integer(1, 3), "of_qkv": lambda s, _: 3 * s.C}
LARGE = Sizes(B=(2, 3), T=(40, 64), nh=(9, 12), hd=(3, 5), C=joined, **MORE)


class Subject(_modules.Subject):
    """The module of both exercises.

    Attributes:
        others: a function of the sizes that returns more shapes (B, T, nh) to try.
        paths: as in every subject.
    """

    name = "CausalSelfAttention"
    arguments = (("n_embd", "C"), ("n_head", "nh"), ("block_size", "block"))
    projections = (("qkv.weight", 3, "nh"),)
    sizes = Sizes(B=[7], T=[9, 11], nh=[5], hd=[6], block=[13, 17], C=joined)

    def __init__(self, extra_shapes=None, paths=_modules.ONE_PATH):
        self.others, self.paths = extra_shapes, paths

    def shapes(self, s, **options):
        return {"qkv.weight": (3 * s.C, s.C), "proj.weight": (s.C, s.C)}

    def module(self, implementation, s, weights, **options):
        module = super().module(implementation, s, weights, **options)
        return module.with_attributes(flash=options["flash"]) if "flash" in options else module


@layer.shape(0.25)
def shape(subject, attempt, draw, s):
    """keeps (B, T, C) for any batch, any length up to block_size and any number of heads"""
    for path, options in subject.paths.items():
        for B, T, nh in ((s.B, s.T, s.nh), *subject.others(s)):
            sizes = changed(s, nh=nh)
            answer = subject.module(attempt, sizes, subject.weights(draw, sizes), **options)(
                draw(B, T, s.C)
            )
            assert_shape(answer, (B, T, s.C), path or "the output")


def expect_unrounded(got, want, path=""):
    """Fail if the output is the right one, rounded to some decimals."""
    for decimals in range(1, 6) if got.shape == want.shape else ():
        evidence = on(path, f"your output is the right one, rounded to {decimals} decimals")
        # with NaN the comparison is False: NaN is no rounded number
        is_rounded = (got - want.round(decimals=decimals)).abs().max() <= 1e-9
        expect(not is_rounded, evidence, "output_rounded")


@layer.causality(0.25)
def independent(subject, attempt, draw, s, weights, x):
    """keeps batch entries apart, and heads apart"""
    weights = subject.passing_on(weights)
    edited = x.clone()
    edited[-1] = draw(s.T, s.C)
    h = s.nh - 1  # the last head: if the heads are in another order, its channels are elsewhere
    channels = slice(h * s.hd, s.C)
    rows = weights["qkv.weight"].clone().view(3, s.C, s.C)
    rows[:, channels] = draw.weights(3, s.hd, s.C)
    for path, options in subject.paths.items():
        base = subject.answered(attempt, s, weights, x, **options)
        assert_finite(base, on(path, "the output"))
        edited_output = subject.module(attempt, s, weights, **options)(edited).output
        assert_same(
            base[:-1],
            edited_output[:-1],
            on(path, "editing the last batch entry changes the output of another"),
        )
        after = subject.module(
            attempt, s, {**weights, "qkv.weight": rows.view(-1, s.C)}, **options
        )(x).output
        moved = (
            ((base - after).abs().amax(dim=(0, 1)) > 1e-5 * base.abs().max())
            .nonzero()
            .flatten()
            .tolist()
        )
        should = (
            f"another q, k, v in head {h} should move channels {channels.start}…{channels.stop - 1}"
            f" of {s.C}"
        )
        does = f"{len(moved)} channels, {moved[0]}…{moved[-1]}" if moved else "none of yours"
        expect(
            moved == list(range(s.C))[channels],
            on(path, f"with the identity for proj, {should}; it moves {does}"),
        )


@layer.gradients(0.25)
def gradients(subject, attempt, reference, draw, s):
    """lets gradients through to x and to both weights"""
    (weights, inputs), g = subject.low_scores(draw, s), draw(s.B, s.T, s.C)
    for path, options in subject.paths.items():
        _modules.judge_gradients(
            subject, attempt, reference, s, weights, inputs, g, path, random=True, **options
        )
        awake = subject.module(attempt.asking(cotangent=g), s, weights, dropout=RARE, **options)
        expect_gradients_awake(awake, *inputs)


@layer.hygiene(0.25, "What turns your dropout off when training is over?")
def eval_is_calm(subject, attempt, draw, s):
    """drops nothing in eval mode, and nothing where dropout is not given"""
    weights, x, implementation = (
        subject.weights(draw, s),
        draw(s.B, s.T, s.C),
        attempt.asking(random=True),
    )

    def output(seed, training=False, **options):
        module = subject.module(implementation.asking(seed=seed), s, weights, **options)
        return (module.training() if training else module)(x).output.nan_to_num()

    for path, options in subject.paths.items():
        eval_output = output(1, **options, dropout=0.5)
        if not torch.equal(eval_output, output(2, **options, dropout=0.5)):
            eval_module = subject.module(implementation, s, weights, **options)
            alone = (
                eval_module.asking(seed=seed)(copies_of(x[:1, :1])).output.nan_to_num()
                for seed in (1, 2)
            )
            always_on = torch.equal(output(1, **options), output(2, **options)) or is_dropped(
                *alone, heads=s.nh
            )
            deaf = not always_on and weights_without_effect(
                lambda w, o=options: subject.module(implementation, s, w, **o)(x), weights
            )
            evidence, suspect = "two runs in eval mode differ", ""
            if always_on:
                suspect = "dropout_always_on"
            elif deaf:
                evidence = f"{evidence}, whatever {deaf[0]} is"
                suspect = "params_not_registered"
            expect(False, on(path, evidence), suspect)
        awake = output(1, training=True, **options)
        if not torch.equal(awake, output(2, training=True, **options)):
            at_rate_0 = (output(seed, training=True, **options, dropout=0.0) for seed in (1, 2))
            setting = (
                "made with dropout = 0"
                if not torch.equal(*at_rate_0)
                else "made without a word about dropout"
            )
            expect(
                False,
                on(path, f"{setting} it drops in training all the same"),
                "dropout_rate_fixed",
            )
        differs = (
            "eval mode with dropout differs from training without: eval should do nothing at all"
        )
        assert_same(awake, eval_output, on(path, differs))


DROP = 0.25
COPIES = 192


def dropped(subject, attempt, draw, *, same_values, T=12, all_copies=False, **options):
    """Return the output in training mode divided by the output in eval mode.

    In training mode the input is many copies of one sequence. Its position 0 sees one token.

    Args:
        same_values: make every value 1, so that weights which sum to 1 leave no trace.
        T: the number of tokens.
        all_copies: ask about all copies in eval mode, too. An attempt that mixes up the sequences
            of a batch does so in both modes, so only the effect of dropout is left.
    """
    s = SimpleNamespace(C=6, nh=2, block=12)
    weights, sequence = subject.weights(draw, s), draw(1, T, s.C)
    sequence[..., 0] = 1.0
    # Draw until the token's score is above 0 in every head, so that attempts with scores in place
    # of weights are always judged alike.
    while T == 1:
        q, k, _ = (sequence[0] @ weights["qkv.weight"].mT).unflatten(-1, (3, s.nh, -1)).unbind(-3)
        if float((q * k).sum(-1).min()) > 0:
            break
        sequence[..., 1:] = draw(1, T, s.C - 1)
    x = sequence.expand(COPIES, T, s.C).clone()
    if same_values:
        weights["qkv.weight"][2 * s.C :] = torch.eye(s.C, dtype=torch.float64)[0]
    weights["proj.weight"] = round_float32(weights["proj.weight"].abs() + 0.1)
    attempt = attempt.asking(random=True)
    eval_input = x if all_copies else x[:1]
    still = subject.module(attempt, s, weights, **options)(eval_input).output
    drawn = subject.module(attempt, s, weights, dropout=DROP, **options).training()(x).output
    assert_shape(still, eval_input.shape)
    assert_shape(drawn, x.shape)
    assert_finite(still, "the output in eval mode")
    expect(bool((still != 0).all()), "the output in eval mode is 0 in places")
    nan = (
        "the output in training is NaN, in eval mode it is not: 0 · -inf, where a masked score was"
        " dropped"
    )
    expect(bool(drawn.isfinite().all()), nan, "dropout_before_softmax")
    return drawn / still


def silenced(ratio):
    """Return the share of zeros at positions 6 to 8, which shows the output's dropout alone.

    There a query sees at least four keys, even if the mask is the wrong way round, and hardly ever
    are all of their weights dropped.
    """
    return float((ratio[:, 6:9] == 0).double().mean())


def varies(ratio):
    """Return whether the numbers that are left at positions 6 to 8 differ from each other."""
    survivors = ratio[:, 6:9][ratio[:, 6:9] != 0]
    return survivors.numel() > 0 and float(survivors.max() - survivors.min()) > 1e-3 * float(
        survivors.abs().mean()
    )


def expect_weights_dropped(subject, attempt, draw, ratio, path="", **options):
    """Fail unless training mode drops weights, rather than scores or the output alone."""
    if not varies(ratio):
        in_scores = varies(
            dropped(subject, attempt, draw, same_values=False, all_copies=True, **options)
        )
        sums = "the weights still sum to 1 in training: it is the scores that are dropped"
        expect(not in_scores, on(path, sums), "dropout_before_softmax")
        expect(
            not silenced(ratio),
            on(path, "the output is dropped and the weights are not"),
            "dropout_on_output_only",
        )
        expect(
            False,
            on(path, "training and eval mode give the same: nothing is dropped"),
            "dropout_missing",
        )


def expect_share_dropped(ratio, path=""):
    """Fail unless the share of zeros in the output is the dropout rate."""
    zeros, error = silenced(ratio), (DROP * (1 - DROP) / ratio[:, 6:9].numel()) ** 0.5
    evidence = f"with dropout = {DROP}, {zeros:.0%} of the output is 0 in training"
    expect(abs(zeros - DROP) <= 8 * error, on(path, evidence))


def expect_scaled_up(subject, attempt, draw, dropouts, path="", **options):
    """Fail unless a single token's output is scaled up by this number of dropouts."""
    answers = dropped(subject, attempt, draw, same_values=True, T=1, **options)
    alone, survivor = float(answers.max()), 1 / (1 - DROP) ** dropouts
    # the number of dropouts that would scale it up by this factor
    acted = math.log(alone, 1 / (1 - DROP)) if alone > 0 else 0.5
    another = (
        f"what a single token gives in training is not {survivor:.4g} times what it gives in eval"
        " mode"
    )
    expect(abs(acted - round(acted)) < 0.01, on(path, another))
    scaled = (
        f"what survives in a single token should be scaled by {survivor:.4g}; yours is scaled by"
        f" {alone:.4g}"
    )
    suspect = "dropout_extra" if abs(alone - survivor / (1 - DROP)) < 1e-4 * survivor else ""
    expect(
        abs(alone - survivor) < 1e-4 * survivor,
        on(path, f"with dropout = {DROP}, {scaled}"),
        suspect,
    )
    evidence = (
        "in training a single token loses parts of a head: its one weight is dropped as a whole, or"
        " not at all"
    )
    # At most three numbers: one head is left, or the other one, or both. Numbers that differ by
    # rounding count as one.
    for numbers in answers[:, 0].T:
        expect((numbers[numbers != 0].sort().values.diff() > 1e-4).sum() < 3, on(path, evidence))


def judge_written_out(subject, attempt, draw, s, fused, unseen, **options):
    """Fail if a fused function does the work.

    A fused function that cannot be seen is recognised by its missing second derivative. The answer
    must be the same while operations are watched as otherwise. If not, an attempt could do other
    work while it is watched.

    Args:
        fused: the evidence if a fused function does the work.
        unseen: the evidence if no operation can be seen at all.
    """
    weights, (x,) = subject.weights_and_inputs(draw, s)
    implementation = attempt.asking(
        watch=True, cotangent=draw(s.B, s.T, s.C), second=True, random=True
    )
    answer = subject.module(implementation, s, weights, **options)(x)
    operations = answer.reply.operations
    in_kernel = answer.raised is not None and re.search(
        "derivative for .*(attention|flash)", answer.message
    )
    expect(not in_kernel and not (operations and operations.fused), fused, "delegated")
    if answer.raised is not None and answer.raised.stage != "gradient":
        answer.must_return()
    expect(operations.made, unseen, "delegated")
    plain = subject.module(attempt.asking(random=True), s, weights, **options)(x)
    if answer.raised is None and plain.raised is None:
        expect(agrees(answer.output, plain.output), WATCHED)
