"""Checks that several functions share: refusals, shapes, masks, leading dimensions, fixed sizes."""

from manyheads.checks import (
    CheckFailed,
    Evidence,
    Listed,
    Number,
    agrees,
    assert_refused,
    assert_shape,
    expect,
)
from manyheads.checks.asserts import TOLERANCE

BROKE_LATER = {"RuntimeError", "EinopsError", "IndexError"}


def expect_refused(answer, label, numbers):
    """Fail unless the call is refused with a ValueError, and not by an error further down."""
    if answer.raised is not None and BROKE_LATER & set(answer.raised.bases):
        evidence = Evidence(
            "{} ends in an error further down: check first, and raise a ValueError that "
            "names the {}",
            label,
            numbers,
        )
        raise CheckFailed(evidence, "argument_unchecked")
    assert_refused(answer, label, suspect="argument_unchecked")


def expect_unscaled(got, want):
    """Fail if the scores are the right ones, times a number."""
    if got.shape != want.shape:
        return
    factor = float((got * want).sum() / (want * want).sum())
    evidence = Evidence("every score is {} times what it should be", Number(factor, digits=3))
    if abs(factor - 1) <= 0.005:
        evidence = "every score is almost, but not quite, what it should be"
    is_scaled = abs(factor - 1) > TOLERANCE and agrees(got, want * factor)
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


def expect_shapes(attempt, reference, arguments):
    """Fail unless each function takes these arguments by name and gives one tensor of the shape."""
    for name, kwargs in arguments.items():
        answer, expected = attempt.call(name, **kwargs), reference.call(name, **kwargs)
        evidence = Evidence("{} should return one tensor; yours is {}", name, answer.kind_in_words)
        expect(answer.kind == "tensor", evidence, "interface")
        assert_shape(answer, expected.shape, Evidence("the output of {}", name))


def expect_boolean_mask(name, mask):
    """Fail unless the answer of this function is a boolean tensor."""
    evidence = Evidence("{} should return a tensor; yours is {}", name, mask.kind_in_words)
    expect(mask.kind == "tensor", evidence, "interface")
    evidence = Evidence("the mask should be of dtype bool; yours is {}", mask.dtype)
    expect(mask.dtype == "bool", evidence, "mask_not_bool")


def evidence_of_fixed_sizes(fault, lesson, other_sizes):
    """Return the evidence of hard-coded sizes, and the names of the sizes that fail alone.

    Args:
        fault: a function of sizes (B, T, n_head, head_dim) that is true if they do not work.
        lesson: the sizes of the lesson, which work.
        other_sizes: sizes that do not work.
    """
    single = [(*lesson[:i], other_sizes[i], *lesson[i + 1 :]) for i in range(4)]
    names = zip(("B", "T", "n_head", "head_dim"), other_sizes, single, strict=True)
    failing = [(name, size) for name, size, sizes in names if fault(sizes)]
    B, T, nh, hd = lesson
    evidence = Evidence(
        "works for (B, T, C) = ({}, {}, {}) with {} heads, but not for", B, T, nh * hd, nh
    )
    failing_sizes = Listed([Evidence("{} = {}", name, size) for name, size in failing], " or ")
    wrong_sizes = failing_sizes if failing else "other sizes"
    return Evidence("{} {}", evidence, wrong_sizes), [name for name, _ in failing]


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
    assert_shape(batched, shape, Evidence("the output of {}", name))
    assert_shape(
        alone, shape[len(at) :], Evidence("the output of {}, without leading dimensions,", name)
    )
    evidence = Evidence(
        "{}: what stands {} of the leading dimensions gives something else when it stands alone",
        name,
        position,
    )
    expect(agrees(alone, batched[at]), evidence)
