"""The module that an exercise asks for, and what every module is asked, whatever its inputs and layers are called."""

import re
from types import SimpleNamespace

import torch

from manyheads.checks import (
    HALF_PRECISION,
    CheckFailed,
    Layer,
    assert_finite,
    assert_gradients_match,
    assert_near,
    assert_refused,
    assert_same,
    assert_shape,
    assert_unmutated,
    check,
    expect,
)

from ._gradients import is_cut, weights_without_effect

DEEP = 44.0  # how far below 0 scores can lie: what hides a key must lie deeper
ONE_PATH = {"": {}}


class Subject:
    """The module that an exercise asks for. Each exercise says in a class of its own how it is made.

    paths: by name, as the evidence writes it, the options that choose a path. A single path has no name.
    """

    name: str
    paths = ONE_PATH

    def arguments(self, s):
        """The constructor's, by name, by sizes."""
        raise NotImplementedError

    def shapes(self, s):
        """The shapes of its parameters, by name, by sizes."""
        raise NotImplementedError

    def mask(self, s):
        """The shape of a mask that is held at construction; None where none can be."""

    def sizes(self, draw):
        """Sizes that differ pairwise, so that no two axes can be mixed up unseen. None is usual in lessons."""
        raise NotImplementedError

    def inputs(self, draw, s):
        """What forward is given, by sizes."""
        raise NotImplementedError

    def given(self, draw, s):
        """Weights and inputs, by sizes."""
        return self.weights(draw, s), self.inputs(draw, s)

    def case(self, draw):
        """Sizes, weights and inputs."""
        s = self.sizes(draw)
        return s, *self.given(draw, s)

    def weights(self, draw, s, **options):
        """Weights by name, every bias non-zero. options: of `shapes`."""
        return {
            name: draw.weights(*shape) if len(shape) > 1 else draw(*shape, scale=0.5 if "W_" in name else 1.0)
            for name, shape in self.shapes(s, **options).items()
        }

    def made(self, implementation, s, **options):
        """The module of these sizes, its weights as it draws them. options: more arguments."""
        return implementation.module(self.name, *self.arguments(s).values(), **options)

    def module(self, implementation, s, weights, **options):
        """The module of these sizes with these weights."""
        return self.made(implementation, s, **options).loaded(weights)

    def is_registered(self, answer, s):
        """Whether all weights are parameters, and were when they were loaded: a layer that is made anew in every call
        is not. One that is not cannot follow the module, which is another fault.
        """
        if not answer.reply.modules:
            return True
        return {*self.shapes(s)} <= answer.module.parameters.keys() - {*answer.module.unloaded}

    def has_another_shape(self, answer, s, name):
        """Whether this weight is a parameter, of another shape than asked for."""
        found = answer.module.parameters.get(name) if answer.reply.modules else None
        return found is not None and tuple(found.shape) != tuple(self.shapes(s)[name])


def asked_of(subject, judge, title="", **mark):
    """A check that exercises share, asked of this subject: with the title, hint and points that it has there, or with these."""

    @check(**{**vars(judge.pytestmark[0].args[0]), **mark})
    def asked(attempt, reference, draw):
        judge(subject, attempt, reference, draw)

    asked.__doc__ = title or judge.__doc__
    return asked


def changed(s, **sizes):
    """The same sizes, but for these."""
    return SimpleNamespace(**{**vars(s), **sizes})


def on(path, evidence):
    """The evidence, with the path's name before it where there are two."""
    return f"{path}: {evidence}" if path else evidence


def directions(draw, heads, hd):
    """What each head's query reads of a channel that is 1 in every token. Keys that read the opposite have scores near −DEEP."""
    drawn = draw(heads, hd)
    return drawn * ((DEEP * hd**0.5) ** 0.5 / drawn.norm(dim=-1, keepdim=True))


def climbing(T):
    """From −1 to 1. Its middle is 0 on every processor."""
    return (2 * torch.arange(T, dtype=torch.float64) - (T - 1)) / (T - 1)


@check(points=0.25, layer=Layer.FINITE, hint="Which row of the mask hides everything? What is softmax of nothing?")
def finite(subject, attempt, reference, draw):
    """gives numbers, however large the scores"""
    s = subject.sizes(draw)
    weights, x = subject.steep(draw, s)
    assert_finite(subject.module(attempt, s, weights)(x))


@check(
    points=0.25, layer=Layer.CAUSALITY, hint="Print the weights for T = 4. Every row should end in zeros but the last."
)
def causal(subject, attempt, reference, draw):
    """does not see the future"""
    s, weights, (x,) = subject.case(draw)
    ordinary, large = (weights, x), subject.steep(draw, s)
    for start, kind, (weights, x) in (
        (1, "", ordinary),
        (s.T - 2, "", ordinary),
        (s.T // 2, " of large scores", large),
    ):
        edited = x.clone()
        edited[:, start:, 2:] = draw(s.B, s.T - start, s.C - 2)
        for path, options in subject.paths.items():
            before, after = (subject.module(attempt, s, weights, **options)(each).output for each in (x, edited))
            assert_shape(before, x.shape)
            assert_finite(before, on(path, "the output"))
            moved = (before - after).abs().amax(dim=(0, 2)) > 1e-5 * before.abs().max()
            first = int(moved.nonzero()[0]) if moved.any() else s.T
            change = f"editing positions {start}…{s.T - 1}{kind} changes the output of position {first}"
            expect(first >= start, on(path, change))
            assert_finite(after, on(path, "the output"))


def judge_gradients(subject, attempt, reference, s, weights, inputs, g, path="", random=False, **options):
    """They reach the inputs and every weight, and are the reference's. The first input is what an edit is tried with.

    random: whether chance may decide about them.
    """
    x, others = inputs[0], inputs[1:]
    both = (each.asking(cotangent=g, random=random) for each in (attempt, reference))
    got, want = (subject.module(each, s, weights, **options)(*inputs) for each in both)
    names = [f"args.{i}" for i, each in enumerate(inputs) if each is not None and each.is_floating_point()]
    try:
        assert_gradients_match(got, want, *names, *weights)
    except CheckFailed as fault:
        if got.raised is not None:
            raise

        def output(weights, x):
            return subject.module(attempt, s, weights, **options)(x, *others).output

        cut = is_cut(output, weights, x, g, got, want)
        raise CheckFailed(on(path, str(fault)), "gradient_cut" if cut else "") from None


@check(points=0.25, layer=Layer.HYGIENE)
def parameters(subject, attempt, reference, draw):
    """has the parameters that are asked for, and no others"""
    s = subject.sizes(draw)
    found, wanted = subject.made(attempt, s).built().module.parameters, subject.shapes(s)
    extra, missing = found.keys() - wanted.keys(), wanted.keys() - found.keys()
    masks = [name for name in extra if subject.mask(s) and found[name].shape[-2:] == subject.mask(s)]
    expect(not masks, "the mask is among the parameters: an optimiser would change it", "mask_is_parameter")
    layers = {name.rpartition(".")[0] for name in wanted}
    biases = sorted(name for name in extra if name.endswith(".bias") and name.rpartition(".")[0] in layers)
    expect(not biases, f"{' and '.join(biases)} should not exist: bias=False", "proj_bias")
    unbiased = sorted(name for name in missing if name.endswith(".bias") and name[:-4] + "weight" in found)
    expect(not unbiased, f"there is no {' and '.join(unbiased)}, and there should be", "proj_bias")
    lost = f"{' and '.join(sorted(missing))} cannot be found among parameters(): an optimiser would not train it"
    expect(not missing or extra, lost, "params_not_registered")
    told = f"there are {sorted(found)}; {sorted(wanted)} are asked for"
    expect(not extra, told if len(told) < 300 else f"there are {len(extra)} parameters too many", "params_extra")
    for name, shape in wanted.items():
        told = f"{name} should have shape {shape}; yours has {tuple(found[name].shape)}"
        expect(tuple(found[name].shape) == shape, told, "layer_widths")
    for options in subject.paths.values():
        weights, inputs = subject.given(draw, s)
        subject.module(attempt, s, weights, **options)(*inputs).must_return()


@check(points=0.25, layer=Layer.HYGIENE)
def refuses_indivisible(subject, attempt, reference, draw):
    """refuses an n_embd that n_head does not divide, when it is made"""
    nh, hd = 6, 7
    odd = nh * hd + 2  # 3 * odd is divisible: who asks about the width of qkv takes it
    answer = subject.made(attempt, SimpleNamespace(C=odd, nh=nh, block=8)).built()
    assert_refused(answer, f"n_embd = {odd} with n_head = {nh}", suspect="divisibility_unchecked")
    for options in subject.paths.values():
        even = SimpleNamespace(C=nh * hd, nh=nh, block=8)
        made = subject.module(attempt, even, subject.weights(draw, even), **options)
        made(draw(2, 8, even.C)).must_return()  # an attempt that refuses everything fails


def judge_moves(subject, attempt, s, weights, inputs):
    """The module works on the device that it was moved to."""
    for device in {"meta", attempt.device} - {"cpu"}:
        given = [torch.empty_like(each, device="meta") if device == "meta" else each for each in inputs]
        answer = subject.module(attempt.asking(watch=True), s, weights).on(device)(*given)
        expect_moved(answer, device, subject.is_registered(answer, s))
        if answer.raised is not None:  # the device is not to blame for what fails on the CPU too
            subject.module(attempt, s, weights)(*inputs).must_return()


def expect_moved(answer, device, registered):
    """Nothing stays on another device than this one, where the module and its input are.

    registered: whether all weights are parameters. One that is not cannot follow the module, which is another fault.
    """
    no_gpu = re.search("CUDA|NVIDIA|HIP", answer.message)
    expect(not no_gpu, "it asks for a GPU, whatever the device of x", "hard_coded_device")
    where = answer.reply.outputs[0].device if answer.reply.outputs else None
    seen = answer.reply.operations
    stays = (seen is not None and seen.mixed) or where not in (None, device)
    stays = stays or re.search("on the expected device|the same device", answer.message)
    if stays and answer.reply.modules and any(len(t.shape) > 1 for t in answer.module.plain.values()):
        behind = "a tensor that the module holds stays behind when the module moves: make it a buffer"
        expect(False, behind, "mask_not_moved" if registered else "")
    alone = "hard_coded_device" if registered else ""
    expect(not stays, "a tensor is made on a device of its own, not on that of x", alone)


def judge_dtype_and_argument(subject, attempt, s, weights, inputs):
    """In each dtype the output has that of x, and no argument changes. Returns the answers on the last path."""
    for options in subject.paths.values():
        answers = {
            dtype: subject.module(attempt.asking(dtype=dtype), s, weights, **options)(*inputs)
            for dtype in ("float32", "float64")
        }
        works = [dtype for dtype, answer in answers.items() if answer.raised is None]
        for dtype, answer in answers.items():
            suspect = "hard_coded_dtype" if subject.is_registered(answer, s) else ""
            expect(not works or dtype in works, f"it works in {' '.join(works)} only: {dtype} fails", suspect)
            follows = answer.dtype in (dtype, answer.kind)
            expect(follows, f"{dtype} in should give {dtype} out, not {answer.dtype}", suspect)
            assert_unmutated(answer, suspect="input_mutated")
    return answers.values()


@check(points=0.25, layer=Layer.HYGIENE, hint="Is there a dropout, or a layer that is made anew in forward?")
def steady(subject, attempt, reference, draw):
    """gives the same at every call, in training too"""
    s, weights, inputs = subject.case(draw)
    asked = attempt.asking(random=True)

    def answer(seed, training=False):
        made = subject.module(asked.asking(seed=seed), s, weights)
        return (made.training() if training else made)(*inputs)

    def output(seed, training=False):
        return answer(seed, training).output.nan_to_num()

    first = output(1)
    differ = "two runs on the same input differ, in eval mode"
    if not torch.equal(first, output(2)):
        deaf = weights_without_effect(lambda w: subject.module(asked, s, w)(*inputs), weights)
        told = f"{differ}, whatever {deaf[0]} is" if deaf else differ
        # A layer of another width takes no given weights, so that its own stay: that is not why.
        suspect = "params_not_registered" if deaf and not subject.has_another_shape(answer(1), s, deaf[0]) else ""
        expect(False, told, suspect if deaf else "dropout_always_on")
    awake = "training mode gives another output than eval mode: no dropout is asked for here"
    expect(torch.equal(output(1, training=True), output(2, training=True)), awake, "dropout_extra")
    assert_same(output(1, training=True), first, awake)


@check(
    points=0,
    layer=Layer.HYGIENE,
    device="cuda",
    hint="A large negative number that fits float32 may not fit float16. What fits every dtype?",
)
def half_precision(subject, attempt, reference, draw):
    """stays finite and near under autocast, in float16 and in bfloat16"""
    s, weights, inputs = subject.case(draw)
    for path, options in subject.paths.items():
        exact = subject.module(reference, s, weights, **options)(*inputs)
        for dtype in HALF_PRECISION:
            asked = attempt.asking(dtype="float32", autocast=dtype)
            assert_near(subject.module(asked, s, weights, **options)(*inputs), exact, on(path, "the output"))
