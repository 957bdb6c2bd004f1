"""What checks of attention modules without dropout share, whatever their inputs and layers are called."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from manyheads.checks import (
    HALF_PRECISION,
    CheckFailed,
    assert_gradients_match,
    assert_near,
    assert_same,
    expect,
)

from ._gradients import is_cut, weights_without_effect
from ._modules import expect_dtype_and_argument, expect_moved


@dataclass(frozen=True)
class Subject:
    """The module that an exercise asks for.

    name: its class. arguments: the constructor's, by sizes. shapes: of its parameters by name, by sizes.
    mask: by sizes, the shape of a mask that is held at construction; None where none can be.
    """

    name: str
    arguments: Callable[..., tuple]
    shapes: Callable[..., dict]
    mask: Callable[..., tuple] | None = None

    def weights(self, draw, s):
        """Weights by name, every bias non-zero."""
        return {
            name: draw.weights(*shape) if len(shape) > 1 else draw(*shape) for name, shape in self.shapes(s).items()
        }

    def made(self, implementation, s):
        """The module of these sizes, its weights as it draws them."""
        return implementation.module(self.name, *self.arguments(s))

    def module(self, implementation, s, weights):
        """The module of these sizes with these weights."""
        return self.made(implementation, s).loaded(weights)

    def is_registered(self, answer, s):
        """Whether all weights are parameters. One that is not cannot follow the module, which is another fault."""
        return not answer.reply.modules or self.shapes(s).keys() <= answer.module.parameters.keys()

    def has_another_shape(self, answer, s, name):
        """Whether this weight is a parameter, of another shape than asked for."""
        found = answer.module.parameters.get(name) if answer.reply.modules else None
        return found is not None and tuple(found.shape) != tuple(self.shapes(s)[name])


def judge_gradients(subject, attempt, reference, s, weights, inputs, g):
    """They reach the inputs and every weight, and are the reference's. The first input is what an edit is tried with."""
    x, others = inputs[0], inputs[1:]
    got, want = (subject.module(c.asking(cotangent=g), s, weights)(*inputs) for c in (attempt, reference))
    names = [f"args.{i}" for i, each in enumerate(inputs) if each is not None and each.is_floating_point()]
    try:
        assert_gradients_match(got, want, *names, *weights)
    except CheckFailed as fault:
        if got.raised is not None:
            raise
        cut = is_cut(lambda w, y: subject.module(attempt, s, w)(y, *others).output, weights, x, g, got, want)
        raise CheckFailed(str(fault), "gradient_cut" if cut else "") from None


def judge_parameters(subject, attempt, s, weights, inputs):
    """There are these weights, and nothing else."""
    found, wanted = subject.made(attempt, s).built().module.parameters, subject.shapes(s)
    extra, missing = found.keys() - wanted.keys(), wanted.keys() - found.keys()
    masks = [name for name in extra if subject.mask and found[name].shape[-2:] == subject.mask(s)]
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
    subject.module(attempt, s, weights)(*inputs).must_return()


def judge_moves(subject, attempt, s, weights, inputs):
    """The module works on the device that it was moved to."""
    for device in {"meta", attempt.device} - {"cpu"}:
        given = [torch.empty_like(each, device="meta") if device == "meta" else each for each in inputs]
        answer = subject.module(attempt.asking(watch=True), s, weights).on(device)(*given)
        expect_moved(answer, device, subject.is_registered(answer, s))
        if answer.raised is not None:  # the device is not to blame for what fails on the CPU too
            subject.module(attempt, s, weights)(*inputs).must_return()


def judge_dtype_and_argument(subject, attempt, s, weights, inputs):
    """The output has the dtype of x, and no argument changes."""
    expect_dtype_and_argument(
        lambda dtype: subject.module(attempt.asking(dtype=dtype), s, weights)(*inputs),
        lambda answer: subject.is_registered(answer, s),
    )


def judge_steady(subject, attempt, s, weights, inputs):
    """Two runs agree, and training mode gives what eval mode gives."""
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


def judge_half_precision(subject, attempt, reference, s, weights, inputs):
    """It stays near under autocast."""
    exact = subject.module(reference, s, weights)(*inputs)
    for dtype in HALF_PRECISION:
        asked = attempt.asking(dtype="float32", autocast=dtype)
        assert_near(subject.module(asked, s, weights)(*inputs), exact)
