"""Checks that all functions share: types, dtypes, devices, refusals and gradients.

`calls_of(draw)` gives the functions of an exercise by name, each with its arguments by name.
"""

import re
from dataclasses import replace
from functools import partial

import torch

from manyheads.box.worker.messages import DeviceArgument, StandIn
from manyheads.checks import (
    CheckFailed,
    Evidence,
    Number,
    assert_matches,
    assert_refused,
    assert_shape,
    assert_unmutated,
    expect,
)
from manyheads.checks.asserts import TOLERANCE, difference
from manyheads.checks.gradients import expect_gradients, is_cut

from . import _layers as layer

BROKE_LATER = {"RuntimeError", "EinopsError", "IndexError"}
TWO_DEVICES = re.compile(r"same device|expected device|cross-device|CUDA|NVIDIA")


def restricted(calls_of, *names):
    """Return `calls_of`, restricted to these functions."""
    return lambda draw, *sizes: {
        name: kwargs for name, kwargs in calls_of(draw, *sizes).items() if name in names
    }


def same(got, want):
    """Return whether two tensors agree within the tolerance of assert_matches."""
    return got.shape == want.shape and difference(got, want) <= TOLERANCE


def expect_refused(answer, label, numbers):
    """Fail unless the call is refused with a ValueError, and not by an error further down."""
    if answer.raised is not None and BROKE_LATER & set(answer.raised.bases):
        evidence = (
            f"{label} ends in an error further down: check first, and raise a ValueError that names"
            f" the {numbers}"
        )
        raise CheckFailed(evidence, "argument_unchecked")
    assert_refused(answer, label, suspect="argument_unchecked")


def is_cut_in_part(attempt, got, want, g):
    """Return whether the values are right, and the gradient is not the gradient of these values.

    If the values are wrong, a detached part is a consequence: for example, a detached maximum
    cancels only in right values.
    """
    if got.reply.mutated or not same(got.output, want.output):
        return False

    def answer_to(other_args, first_arg):
        named_args = {**other_args, "args.0": first_arg}
        args = [named_args.get(f"args.{i}", arg) for i, arg in enumerate(got.call.args)]
        return attempt.call(got.call.subject, *args).output

    tensors = {
        f"args.{i}": arg
        for i, arg in enumerate(got.call.args)
        if i and f"args.{i}" in want.reply.gradients
    }
    return is_cut(answer_to, tensors, got.call.args[0], g, got, want)


def agree(attempt, reference, name, calls, guesses=None):
    """Fail unless the function gives what the reference gives.

    Args:
        calls: the function's arguments, by the evidence's name for the output.
        guesses: wrong outputs, by the evidence that they prove.
    """
    for label, args in calls.items():
        got, want = (implementation.call(name, *args) for implementation in (attempt, reference))
        for phrase, values in (guesses or {}).items():
            expect(not same(got.output, values), phrase)
        assert_matches(got, want, label)


def expect_unscaled(got, want):
    """Fail if the scores are the right ones, times a number."""
    if got.shape == want.shape:
        factor = float((got * want).sum() / (want * want).sum())
        is_scaled = abs(factor - 1) > TOLERANCE and same(got, want * factor)
        evidence = (
            Evidence("every score is {} times what it should be", Number(factor, digits=3))
            if abs(factor - 1) > 0.005
            else Evidence("every score is almost, but not quite, what it should be")
        )
        expect(not is_scaled, evidence)


def seen_in(mask, example_mask=None):
    """Return at which keys a query may look, as booleans.

    A mask that is added to scores is read in that sense, because another check judges the dtype.

    Args:
        mask: a boolean mask, or numbers in its place.
        example_mask: a mask of the same function that hides something, if `mask` may hide nothing.
    """
    example_mask = mask if example_mask is None else example_mask
    additive = example_mask.dtype.is_floating_point and bool((example_mask < -1).any())
    return mask > -1 if additive else mask != 0


@layer.shape(0.25)
def shapes(calls_of, attempt, reference, draw):
    """takes its arguments by name and gives one tensor of the right shape"""
    expect_shapes(attempt, reference, calls_of(draw))


def expect_shapes(attempt, reference, arguments):
    """Fail unless each function takes these arguments by name and gives one tensor of the shape."""
    for name, kwargs in arguments.items():
        answer, expected = attempt.call(name, **kwargs), reference.call(name, **kwargs)
        evidence = f"{name} should return one tensor; yours is {answer.returned}"
        expect(answer.kind == "tensor", evidence, "interface")
        assert_shape(answer, expected.shape, f"the output of {name}")


@layer.gradients(0.25)
def gradients(calls_of, attempt, reference, draw):
    """lets the right gradients through to every argument"""
    for name, kwargs in calls_of(draw).items():
        args = [*kwargs.values()]
        tensors = [
            name
            for name, x in kwargs.items()
            if isinstance(x, torch.Tensor) and x.is_floating_point()
        ]
        g = draw(*reference.call(name, *args).output.shape)
        got, want = (c.asking(cotangent=g).call(name, *args) for c in (attempt, reference))
        assert_shape(got, g.shape, f"the output of {name}")
        for i, argument in enumerate(tensors):  # the first ones
            if got.gradient(f"args.{i}") is None:
                moved = attempt.call(
                    name, *args[:i], args[i].roll(1, -1) + draw(*args[i].shape), *args[i + 1 :]
                )
                cut = bool(moved.output.isfinite().all()) and not same(moved.output, got.output)
                evidence = (
                    f"{name}: no gradient reaches {argument}"
                    + ", though the output depends on it" * cut
                )
                raise CheckFailed(evidence, "gradient_cut" if cut else "")
        of_each = [f"args.{i}" for i in range(len(tensors))]
        expect_gradients(got, want, of_each, partial(is_cut_in_part, attempt, got, want, g))


@layer.hygiene(0.25, "What is the dtype of a comparison, or of torch.ones without dtype=?")
def mask_is_boolean(calls_of, attempt, draw):
    """makes a boolean mask"""
    for name, kwargs in calls_of(draw).items():
        expect_boolean_mask(name, attempt.call(name, *kwargs.values()))


def expect_boolean_mask(name, mask):
    """Fail unless the answer of this function is a boolean tensor."""
    evidence = f"{name} should return a tensor; yours is {mask.returned}"
    expect(mask.kind == "tensor", evidence, "interface")
    evidence = f"the mask should be of dtype bool; yours is {mask.dtype}"
    expect(mask.dtype == "bool", evidence, "mask_not_bool")


@layer.hygiene(0.25)
def leaves_its_arguments(calls_of, attempt, draw):
    """leaves its arguments as they were"""
    for name, kwargs in calls_of(draw).items():
        assert_unmutated(attempt.call(name, *kwargs.values()), suspect="input_mutated")


@layer.hygiene(0.25)
def dtype(calls_of, attempt, draw):
    """answers in the dtype that it was given"""
    for name, kwargs in calls_of(draw).items():
        answers = {
            dtype: attempt.asking(dtype=dtype).call(name, *kwargs.values())
            for dtype in ("float32", "float64")
        }
        works = [dtype for dtype, answer in answers.items() if answer.raised is None]
        if not works:
            answers["float64"].must_return()
        expect(len(works) == 2, f"{name} works in {works[0]} only", "hard_coded_dtype")
        for dtype, answer in answers.items():
            leaf = next(answer.leaves())
            if leaf.kind == "tensor":
                evidence = f"{name}: {dtype} in should give {dtype} out; yours gives {leaf.dtype}"
                expect(leaf.dtype == dtype, evidence, "hard_coded_dtype")


@layer.hygiene(0.25)
def device(calls_of, attempt, draw):
    """works on the device of its arguments"""
    for name, kwargs in calls_of(draw).items():
        args, follows = (
            kwargs.values(),
            any(isinstance(arg, torch.Tensor) for arg in kwargs.values()),
        )
        # without a tensor among the arguments, device= gives the device
        meta_options, home_options = (
            {} if follows else {"device": DeviceArgument(device_name)}
            for device_name in ("meta", attempt.device)
        )
        answer = attempt.asking(watch=True).call(name, *on_meta(args), **meta_options)
        operations = answer.reply.operations
        # some operations accept tensors on two devices without raising
        mixed = TWO_DEVICES.search(answer.message) or (operations and operations.mixed)
        met = (
            f"{name}: tensors on two devices meet; one of them was made on a fixed device, or taken"
            " to one"
        )
        expect(not mixed, met, "hard_coded_device")
        if answer.raised is not None:
            # tensors on meta have no numbers, so an attempt that looks at numbers may raise
            attempt.call(name, *args, **home_options).must_return()
        else:
            on, condition = (
                answer.device or "meta",
                "the arguments are" if follows else "it is asked for",
            )
            expect(
                on == "meta",
                f"{name}: the output is on {on} wherever {condition}",
                "hard_coded_device",
            )


@layer.hygiene(0.25)
def stays_on_the_device(calls_of, attempt, draw):
    """stays on the device of its arguments"""
    for name, kwargs in calls_of(draw).items():
        plain = next(attempt.call(name, *kwargs.values()).leaves())
        answer = attempt.asking(watch=True).call(name, *on_meta(kwargs.values()))
        for leaf, expected_device in ((plain, attempt.device), (next(answer.leaves()), "meta")):
            if leaf is plain or answer.raised is None:
                expect(
                    leaf.kind == "tensor",
                    f"a tensor was expected; yours returned {leaf.returned}",
                    "interface",
                )
                evidence = (
                    f"{name} gives a tensor on {leaf.device}, whatever the device of its arguments"
                )
                expect(leaf.device == expected_device, evidence, "hard_coded_device")
        operations = answer.reply.operations
        mixed = re.search(r"same device|expected device", answer.message) or (
            operations is not None and operations.mixed
        )
        evidence = (
            f"{name}: something stays on another device than its arguments: a tensor made without"
            " device=, perhaps"
        )
        expect(not mixed, evidence, "hard_coded_device")


def evidence_of_fixed_sizes(fault, lesson, other_sizes):
    """Return the evidence that a lesson's sizes are hard-coded, and the sizes that fail alone.

    Args:
        fault: a function of sizes (B, T, n_head, head_dim) that is true if they do not work.
        lesson: the sizes of the lesson, which work.
        other_sizes: sizes that do not work.
    """
    single = [(*lesson[:i], other_sizes[i], *lesson[i + 1 :]) for i in range(4)]
    names = zip(("B", "T", "n_head", "head_dim"), other_sizes, single, strict=True)
    failing_sizes = [f"{name} = {size}" for name, size, sizes in names if fault(sizes)]
    B, T, nh, hd = lesson
    evidence = f"works for (B, T, C) = ({B}, {T}, {nh * hd}) with {nh} heads, but not for"
    return f"{evidence} {' or '.join(failing_sizes) or 'other sizes'}", failing_sizes


def on_meta(args):
    def to_meta(a):
        if isinstance(a, StandIn):
            return replace(
                a, linears={name: weight.to("meta") for name, weight in a.linears.items()}
            )
        return a.to("meta") if isinstance(a, torch.Tensor) else a

    return list(map(to_meta, args))


def expect_same_alone(attempt, name, args, other_args, shape, at=(-1, -1), position="last"):
    """Fail unless a sequence gets the same answer in a batch and alone.

    Both calls are made before either answer is looked at, and with as many queries as keys. The
    reason is that an attempt which raises for every input has fixed no shape, and that a mutant
    which raises in some calls must not stand for such an attempt.

    Args:
        args: the arguments with leading dimensions.
        other_args: the arguments without leading dimensions.
        shape: the shape of the answer to the batch.
        at: the index of the sequence in the leading dimensions.
        position: the evidence's name for this index.
    """
    batched = attempt.call(name, *args, *other_args)
    alone = attempt.call(name, *(t[at].clone() for t in args), *other_args)
    assert_shape(batched, shape, f"the output of {name}")
    assert_shape(alone, shape[len(at) :], f"the output of {name}, without leading dimensions,")
    evidence = (
        f"{name}: what stands {position} of the leading dimensions gives something else when it"
        " stands alone"
    )
    expect(same(alone.output, batched.output[at]), evidence)
