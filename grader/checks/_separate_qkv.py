"""Shared checks of causal attention with W_query, W_key and W_value.

`SeparateProjections` describes the module, of one head or of several, and has its general
requirements. The functions are for checks of both files.
"""

import re
from functools import partial

import torch

from manyheads.checks import (
    CheckFailed,
    Evidence,
    Listed,
    Percent,
    assert_gradients_match,
    assert_matches,
    assert_shape,
    check,
    expect,
    relative_change,
    replace_sizes,
)
from manyheads.checks.module_expectations import (
    HINT,
    LONE_COPIES,
    RARE,
    copies_of,
    expect_gradients_awake,
    is_cut,
    is_dropped,
    moved_after_a_call,
    weights_without_effect,
)

from . import _modules

LAYERS = ("W_query", "W_key", "W_value")
P = 0.25  # the dropout rate
MISFIT = re.compile(
    r"must match|not broadcastable|expanded size|doesn't match the broadcast|inconsistent tensor"
)
STRIDES = re.compile("view size is not compatible")
STRANDED = re.compile(r"expected device|same device|CUDA|NVIDIA")


class SeparateProjections(_modules.Subject):
    """The module that an exercise asks for, with the general requirements of such a module.

    Attributes:
        sizes: T is shorter than the context, `block`. C is the width of the input. nh is 1 if there
            is a single head.
        several: whether there are several heads, with an output projection.
    """

    room = "a context of"
    flattening = 0.0625
    projections = tuple((f"{name}.weight", 1, "nh") for name in LAYERS)

    def __init__(self, name, sizes, several=False):
        self.name, self.sizes, self.several = name, sizes, several
        self.arguments = (("d_in", "C"), ("d_out", "d_out"), ("context_length", "block"))
        self.arguments += (("num_heads", "nh"),) * several

    def shapes(self, s, bias=True, **options):
        shapes = {f"{name}.weight": (s.d_out, s.C) for name in LAYERS}
        shapes |= {f"{name}.bias": (s.d_out,) for name in LAYERS if bias}
        if self.several:
            shapes |= {"out_proj.weight": (s.d_out, s.d_out), "out_proj.bias": (s.d_out,)}
        return shapes

    def module(self, implementation, s, state, *, bias=True, **options):
        return super().module(implementation, s, state, qkv_bias=bias, **options)

    def low_scores(self, draw, s, **options):
        state, inputs = super().low_scores(draw, s, **options)
        small = {
            name: self.flattening * state[name]
            for name in ("W_query.bias", "W_key.bias")
            if name in state
        }
        return state | small, inputs

    @check(
        layer="gradients",
        points=0.25,
        hint="Is there a detach, a .data or a no_grad between x and the output?",
    )
    def gradients(self, attempt, reference, draw):
        """lets gradients through to x and to every weight"""
        s = self.sizes(draw)
        (state, (x,)), g = self.low_scores(draw, s), draw(s.B, s.T, s.d_out)
        got, want = (
            self.module(c.with_options(cotangent=g), s, state)(x) for c in (attempt, reference)
        )
        assert_shape(got, g.shape)
        names = [*(name for name in state if name in got.module.parameters), "args.0"]
        try:
            assert_gradients_match(got, want, *names)
        except CheckFailed as failure:
            again = self.module(attempt.with_options(seed=1), s, state)(x)
            # Weights that are made anew in forward have no gradients to compare. If two weights are
            # one tensor, only one of the two can be changed.
            is_steady = torch.equal(again.output, got.output)
            can_change = got.module.parameters.keys() >= state.keys()

            def output(weights, tokens):
                return self.module(attempt, s, weights)(tokens).output

            if is_steady and can_change and is_cut(output, state, x, g, got, want):
                evidence = Evidence(
                    "{}; your gradients are not those of your own output", failure.evidence
                )
                raise CheckFailed(evidence, "gradient_cut") from None
            raise
        expect_gradients_awake(
            self.module(attempt.with_options(cotangent=g), s, state, dropout=RARE), x
        )

    @check(layer="hygiene", points=0.25)
    def parameters(self, attempt, reference, draw):
        """learns W_query, W_key and W_value and nothing else"""
        s = self.sizes(draw)
        for bias in (False, True):
            actual, expected = parameters_of(self, attempt, draw, s, bias), self.shapes(s, bias)
            if self.several and "out_proj.weight" not in actual:
                x, state = draw(s.B, s.block, s.C), self.weights(draw, s)
                answer, second = (
                    self.module(attempt.with_options(seed=seed), s, state)(x) for seed in (0, 1)
                )
                evidence = "out_proj is made anew in every call: nothing is learnt"
                if answer.raised is None and second.raised is None:
                    is_same = torch.equal(answer.output, second.output)
                    expect(is_same, evidence, "params_not_registered")
                is_loaded = "out_proj.weight" not in answer.module.unloaded
                hidden = actual.keys() <= expected.keys() and is_loaded
                evidence = (
                    "out_proj has a weight, and no optimiser will ever see it: it is not among the"
                    " parameters"
                )
                expect(not hidden, evidence, "params_not_registered")
            judge_names(actual, expected, s.block, Evidence("qkv_bias is {}", bias))
            for name, shape in expected.items():
                strange = {*actual[name].shape}.difference(*expected.values())
                message = Evidence(
                    "{} should have shape {}; yours has {}, whatever is asked for",
                    name,
                    shape,
                    tuple(actual[name].shape),
                )
                expect(self.several or not strange, message, "hard_coded_shape")
                assert_shape(torch.empty(actual[name].shape, device="meta"), shape, name)
            state, x = self.weights(draw, s, bias=bias), draw(s.B, s.block, s.C)
            self.module(attempt, s, state, bias=bias)(x).must_return()

    @check(
        layer="hygiene",
        points=0.25,
        hint="Compare T with context_length before anything else, and raise a ValueError that names"
        " both.",
    )
    def refuses_beyond_context(self, attempt, reference, draw):
        """refuses more tokens than the context holds"""
        self.refuses_too_long(attempt, reference, draw)

    @check(
        layer="hygiene",
        points=0.25,
        hint="F.dropout is on unless you turn it off; nn.Dropout follows the module's mode.",
    )
    def dropout_sleeps(self, attempt, reference, draw):
        """leaves dropout out in eval mode"""
        s = self.sizes(draw)
        weights, (x,) = self.weights_and_inputs(draw, s)
        answer = self.module(attempt.with_options(runs=2), s, weights)(x)
        plain, again = answer.outputs
        steady = answer.reply.mutated or (relative_change(plain, again) <= 1e-5).all()
        if not steady:
            deaf = weights_without_effect(
                lambda w: self.module(attempt.with_options(random=True), s, w)(x), weights
            )
            names = Listed(deaf)
            explanation = (
                Evidence("; {} changes nothing: another is made in every call", names)
                if deaf
                else ""
            )
            module = self.module(attempt.with_options(random=True), s, weights)
            alone = (module.with_options(seed=seed)(copies_of(x[:1, :1])).output for seed in (0, 1))
            awake = not deaf and is_dropped(*alone, heads=s.nh)
            suspect = "dropout_always_on" if awake else ""
            if deaf:
                suspect = "params_not_registered"
            evidence = Evidence(
                "even without dropout the same input gives two answers{}", explanation
            )
            expect(False, evidence, suspect)
        answer = self.module(attempt.with_options(random=True, runs=2), s, weights, dropout=0.5)(x)
        for once in answer.outputs[: 1 if answer.reply.mutated else 2]:
            same = once.shape == plain.shape and bool((relative_change(plain, once) <= 1e-5).all())
            expect(same, "in eval mode dropout = 0.5 changes the output", "dropout_always_on")

    @check(layer="hygiene", points=0.25, hint="Dropout belongs between the softmax and the values.")
    def dropout_on_weights(self, attempt, reference, draw):
        """drops attention weights in training, and scales up the rest"""
        s = self.sizes(draw, nh=2) if self.several else self.sizes(draw)

        def build_for(s):
            weights = self.passing_on(self.weights(draw, s))
            return partial(self.module, attempt.with_options(random=True), s, weights)

        ask = build_for(s)
        awake, asleep = dropout_answers(ask, draw(1, 1, s.C))  # one token: each head has one weight
        x = draw(1, 2, s.C)
        two = dropout_answers(ask, x)
        # A few copies in eval mode, with which `course check` compares the outcomes of dropout. x
        # has two tokens, so few that the fault dictionary can hold all possible outcomes. An
        # attempt that mixes up the sequences of a batch answers wrongly here.
        ask(dropout=0.0)(x.expand(3, *x.shape[1:]).contiguous()).must_return()
        # If single channels are dropped, a part of one head is left, which `course check` sees.
        if self.several:
            dropout_answers(build_for(replace_sizes(s, nh=1, hd=s.d_out)), draw(1, 1, s.C))
        struck, survived = (near(awake, answer) for answer in (0 * asleep, asleep / (1 - P)))
        drops_heads = (struck | survived).all() and len(struck.flatten(1).unique(dim=0)) <= 2**s.nh
        if not drops_heads:
            judge_rate(ask, x, s.nh)
            scaled_twice = near(awake, asleep / (1 - P) ** 2)
            evidence = (
                "what survives is scaled up twice, by 1 / (1 − p)²: two dropouts act, and one is"
                " asked for"
            )
            acts_twice = scaled_twice.any() and (struck | scaled_twice).all()
            expect(not acts_twice, evidence, "dropout_extra")
            judge_misplaced(ask, x, *two, unmoved=near(awake, asleep).all(), heads=s.nh)
        of_head = "every head" if self.several else "the head"
        evidence = Evidence(
            "with one token {} should give all 0 or all of its value scaled up by 1 / (1 − p)",
            of_head,
        )
        expect(drops_heads, evidence)
        share = float(struck.double().mean())
        # Each head is dropped or kept 192 times. A right attempt is this far off once in 8e9 runs.
        # A smaller error of the share shows in the mean below.
        expect(
            abs(share - P) <= (0.154 if self.several else 0.21),
            Evidence("with dropout = {}, {} is dropped", P, Percent(share)),
        )
        awake, asleep = two
        error = 8 * awake.std(0) / len(awake) ** 0.5 + 1e-5 * asleep.abs().max()
        expect(
            ((awake.mean(0) - asleep[0]).abs() <= error).all(),
            "on average training does not give what eval mode gives",
        )
        awake, asleep = (
            module(x.expand(LONE_COPIES, -1, -1).contiguous()).output
            for module in (ask().in_training_mode(), ask())
        )
        evidence = "made without a word about dropout it drops in training all the same"
        expect(near(awake, asleep).all(), evidence, "dropout_rate_fixed")

    @check(layer="hygiene", points=0.25, hint=HINT)
    def again(self, attempt, reference, draw):
        """answers every call as a fresh instance would"""
        super().again(attempt, reference, draw)
        _modules.judge_modes(self, attempt, draw)

    @check(
        layer="hygiene",
        points=0.25,
        hint="A tensor that must move with the module and is not learned: register_buffer.",
    )
    def moves(self, attempt, reference, draw):
        """moves to another device as a whole"""
        s = self.sizes(draw)
        state, (x,) = self.weights_and_inputs(draw, replace_sizes(s, T=s.block))
        # an attempt that fails on the CPU cannot move
        self.module(attempt, s, state)(x).must_return()
        module = self.module(attempt.with_options(watch=True), s, state)
        on_meta = torch.empty_like(x, device="meta")
        evidence = "and some tensor is made on, or stays on, another device"
        judge_moved(self, s, module.on_device("meta")(on_meta), evidence)
        judge_moved(self, s, module.with_options(around=moved_after_a_call([x]))(on_meta), "")

    @check(
        layer="hygiene",
        points=0.25,
        hint="Name no dtype in forward, or take x.dtype; and make new tensors in place of x.mul_.",
    )
    def dtype_and_argument(self, attempt, reference, draw):
        """follows the dtype of its input, and leaves the input as it was"""
        s = self.sizes(draw)
        weights, inputs = self.weights_and_inputs(draw, s)
        for answer in _modules.expect_dtype_kept(self, attempt, s, weights, inputs):
            assert_shape(answer, (s.B, s.T, s.d_out))


def works(answer, shape):
    """Return whether the answer is a tensor of this shape."""
    out = answer.reply.outputs
    return answer.raised is None and bool(out) and out[0].shape == tuple(shape)


def expect_shape(answer, shape, case, familiar, build, draw):
    """Fail unless the answer has this shape, and recognise sizes that are written into the code.

    Args:
        case: the sizes of the call, for the evidence.
        familiar: rows of B, T, d_in, d_out, and of the number of heads if there are several: sizes
            that attempts often have written in.
        build: makes a module from d_in, d_out, context_length and the number of heads.
    """
    is_refused = answer.raised is not None and answer.raised.stage == "build"
    has_bad_view = STRIDES.search(answer.message)
    if not (works(answer, shape) or has_bad_view or is_refused):
        # perhaps familiar sizes work, for one batch size or one number of tokens alone
        batch_sizes, lengths = set(), set()
        for B, T, d_in, d_out, *heads in familiar:
            if works(build(d_in, d_out, T, *heads)(draw(B, T, d_in)), (B, T, d_out)):
                batch_sizes.add(B)
                lengths.add(T)
        is_fixed = 1 in (len(batch_sizes), len(lengths))
        expect(
            not is_fixed,
            Evidence("it works for some sizes, but not for {}", case),
            "hard_coded_shape",
        )
    assert_shape(answer, shape)


def expect_shorter_texts(module, x, T, d_out):
    """Fail unless the module takes the first T tokens of x, which fills the context."""
    B, block, _ = x.shape
    answer = module(x[:, :T])
    if not works(answer, (B, T, d_out)) and works(module(x), (B, block, d_out)):
        suspect = "mask_not_sliced" if MISFIT.search(answer.message) else ""
        expect(
            False,
            Evidence("a full context of {} tokens works; {} tokens do not", block, T),
            suspect,
        )
    assert_shape(answer, (B, T, d_out))


def answer_of_width(module, x, d_out):
    """Return the output for x, and fail unless its shape is right."""
    answer = module(x)
    assert_shape(answer, (*x.shape[:2], d_out))
    return answer.output


def moves_of_tokens(module, x, edited, d_out):
    """Return how far the answer for each token moves when x is edited: (B, T)."""
    return relative_change(*(answer_of_width(module, tokens, d_out) for tokens in (x, edited)))


def expect_past_kept(module, x, edited, start, d_out):
    """Fail unless answers before `start` stay when the tokens from there on are edited."""
    moves = moves_of_tokens(module, x, edited, d_out)[:, :start]
    early = (moves > 1e-5).any(0).nonzero().flatten().tolist()
    evidence = Evidence(
        "the tokens from position {} on were edited, and the answers at positions {} moved",
        start,
        early,
    )
    expect(not early, evidence)


def expect_past_seen(module, x, edited, d_out):
    """Fail unless token 1 of the first sequence moves the answers from there on, and no others."""
    moves = moves_of_tokens(module, x, edited, d_out)
    evidence = "one sequence of the batch was edited, and the answers for another one moved"
    expect(not (moves[1:] > 1e-5).any(), evidence)
    blind = [t for t in range(1, x.shape[1]) if moves[0, t] < 1e-9]
    evidence = Evidence(
        "the token at position 1 was edited, and the answers at positions {} stayed", blind
    )
    expect(not blind, evidence)


def expect_hidden_for_good(module, x, edited):
    """Fail unless the first two answers stay when later tokens are edited."""
    leak = relative_change(module(x).output, module(edited).output)[:, :2].max()
    expect(leak <= 1e-5, "with low scores everywhere the future shows through")


def cases_of_values(module, large_sizes, draw):
    """Yield several cases: sizes, weights and inputs.

    With as many tokens as channels of a head, a product without the transpose fits, too. There are
    two such cases, so that an attempt which needs these sizes to be equal does not look like one
    with a hard-coded size. Another case has a single sequence.
    """
    ordinary, low, large = module.sizes(draw), module.sizes(draw), large_sizes(draw)
    hd = ordinary.d_out // ordinary.nh
    as_channels, alone = replace_sizes(ordinary, T=hd), replace_sizes(ordinary, B=1)
    as_more_channels = replace_sizes(ordinary, T=hd + 2, d_out=(hd + 2) * ordinary.nh)
    for s in (ordinary, low, as_channels, as_more_channels, alone, large):
        yield s, *(module.low_scores if s is low else module.weights_and_inputs)(draw, s)


def expect_values(got, expected, alone):
    """Fail unless the values are right. `alone` says what became of the first token."""
    got = got.output
    assert_shape(got, expected.shape)
    starts_right = (got[:, 0] - expected[:, 0]).abs().max() <= 1e-5 * expected.abs().max()
    name = "the output" if starts_right else Evidence("token 0 {}; the output", alone)
    assert_matches(got, expected, name)


def parameters_of(subject, attempt, draw, s, bias):
    """Return the parameters of a new module, and judge the arguments dropout and qkv_bias.

    Args:
        bias: whether the module is made with biases. If not, qkv_bias is not given.
    """
    arguments = subject.given_arguments(s) | ({"dropout": 0.0, "qkv_bias": True} if bias else {})
    module = attempt.module(subject.name, **arguments)
    facts = module.build_only().module
    if not bias and "W_query.bias" in facts.parameters:
        evidence = (
            "without a word about qkv_bias the layers have a bias: its default should be False"
        )
        without_bias = attempt.module(subject.name, **arguments, qkv_bias=False).build_only()
        expect("W_query.bias" in without_bias.module.parameters, evidence, "interface")
    if not facts.parameters:
        module(draw(s.B, s.block, s.C)).must_return()  # raises if nothing is written yet
    by_position = attempt.module(
        subject.name, *subject.given_arguments(s).values(), 0.0, True
    ).build_only()
    if bias and by_position.raised is None and "W_query.bias" in facts.parameters:
        has_bias = "W_query.bias" in by_position.module.parameters
        expect(
            has_bias,
            "given by position, the last two arguments are not dropout and qkv_bias",
            "interface",
        )
    return facts.parameters


def judge_names(actual, expected, ctx, setting):
    """Fail unless the names are exactly the expected ones. The difference decides the suspect."""
    missing = [n for n in expected if n not in actual]
    extra = [n for n in actual if n not in expected]
    masks = [n for n in extra if actual[n].shape[-2:] == (ctx, ctx)]
    expect(
        not masks,
        "a tensor of the mask's shape is among the parameters: it would be trained",
        "mask_is_parameter",
    )
    strays = [n for n in extra if n.rpartition(".")[0] in LAYERS and n.endswith(".bias")]
    expect(
        not strays,
        Evidence("{}, and {} is there all the same", setting, Listed(strays)),
        "proj_bias",
    )
    silent = [n for n in missing if n.endswith(".bias") and n.replace(".bias", ".weight") in actual]
    expect(not silent, Evidence("{}, and there is no {}", setting, Listed(silent)), "proj_bias")
    lost = Evidence("{} cannot be found among the parameters", Listed(missing))
    # the values tell whether it is hidden or was never made
    absent = all(n.startswith("out_proj") for n in missing)
    suspect = "" if absent else "params_not_registered"
    expect(
        not missing or extra, Evidence("{}: no optimiser will see them by that name", lost), suspect
    )
    expect(
        not missing, Evidence("{}, though {} of other names can", lost, len(extra)), "params_extra"
    )
    layers = "four" if "out_proj.weight" in expected else "three"
    expect(
        not extra,
        Evidence("there are {} parameters beyond those of the {} layers", len(extra), layers),
        "params_extra",
    )


def dropout_answers(ask, x):
    """Return the answers to copies of one sequence in training, and the answer in eval mode.

    The shapes are (copies, T, d) and (1, T, d).

    Args:
        ask: gives the module for a dropout rate.
        x: the sequence, (1, T, C).
    """
    copies = copies_of(x)
    awake = ask(dropout=P).in_training_mode()(copies).output
    asleep = ask(dropout=0.0)(x).output
    assert_shape(asleep, (*x.shape[:2], *asleep.shape[-1:]))
    assert_shape(awake, (len(copies), *asleep.shape[1:]))
    return awake, asleep


def near(a, b):
    """Return where a and b agree to 1e-4 of the largest number of b."""
    return (a - b).abs() <= 1e-4 * b.abs().max()


def judge_rate(ask, x, heads):
    """Fail if a module with dropout = 0 drops in training mode, or in eval mode as well.

    A difference between copies need not be dropout: sequences that are mixed up differ, too. Chance
    shows at another seed.
    """

    def at_two_seeds(module):
        return tuple(
            module.with_options(seed=seed)(copies_of(x)).output.nan_to_num() for seed in (0, 1)
        )

    awake, asleep = (
        at_two_seeds(ask(dropout=0.0).in_training_mode()),
        at_two_seeds(ask(dropout=0.0)),
    )
    is_steady = near(*asleep).all()
    own_rate = "made with dropout = 0 it drops in training all the same"
    expect(not is_steady or near(*awake).all(), own_rate, "dropout_rate_fixed")
    evidence = "made with dropout = 0 it drops all the same"
    expect(is_steady or not is_dropped(*asleep, heads=heads), evidence, "dropout_rate_fixed")


def judge_misplaced(ask, x, awake, asleep, unmoved, heads):
    """Fail with the place where dropout acts, if it does not act on the weights.

    Args:
        x: a sequence of two tokens.
        awake: the answers to copies of x in training mode.
        asleep: the answer to x in eval mode.
        unmoved: whether training mode changes nothing for a single token.
        heads: the number of heads.
    """
    if unmoved and near(awake, asleep).all():
        eval_too = ask(dropout=0.9)(x.expand(64, *x.shape[1:]).contiguous()).output
        expect(
            False,
            "in training nothing is ever dropped",
            "dropout_missing" if near(eval_too, asleep).all() else "",
        )
    outcomes = len(
        (awake.nan_to_num(1e3)[:, -1] / asleep.abs().max()).mul(1e4).round().unique(dim=0)
    )
    scores = unmoved and outcomes <= 4**heads
    expect(
        not scores,
        "scores are dropped, not weights: what is left sums to 1",
        "dropout_before_softmax",
    )
    scattered = (near(awake, 0 * asleep) | near(awake, asleep / (1 - P))).all()
    evidence = "single channels of the answer are dropped, not whole weights"
    expect(unmoved or not scattered, evidence, "dropout_on_output_only")


def judge_moved(subject, s, answer, of_fixed_device):
    """Fail unless everything that a moved module needed was on its new device.

    Args:
        of_fixed_device: the evidence of a device that is written into the code; "" if the module
            was moved after a call, because that shows no such device.
    """
    operations = answer.reply.operations
    devices = {out.device for out in answer.reply.outputs} - {None}
    is_mixed = STRANDED.search(answer.message) or (operations and operations.mixed)
    if not is_mixed and devices <= {"meta"}:
        return
    facts = answer.reply.modules[0] if answer.reply.modules else None
    plain = facts and [
        t.shape for t in facts.plain.values() if t.device != "meta" and s.block in t.shape[-2:]
    ]
    expect(
        not plain,
        Evidence("the module moved, and a plain tensor {} stayed behind", plain and plain[0]),
        "mask_not_moved",
    )
    if not of_fixed_device:
        expect(
            False,
            "the module moved after a call, and a tensor that was made in that call stayed behind",
        )
    registered = subject.is_registered(answer, s)
    expect(
        False,
        Evidence("the module moved, {}", of_fixed_device),
        "hard_coded_device" if registered else "",
    )
