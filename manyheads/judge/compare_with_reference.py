"""Why a check came to grief over an attempt's answers: they are of a shape or a kind that it never thought of.

A wrong attempt may return anything. Where a check stumbles over that (an index beyond an axis, arithmetic on bools), the
grader is not broken: the reference, asked the same, gives answers of another shape, and that is what the student is told.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..box.worker.answers import Output, Reply
from ..checks.asserts import assert_shape
from ..checks.implementation import AttemptRaised, CheckFailed, Runner
from ..checks.recording import Exchange
from ..checks.sanitize import kind_name


def compare_with_reference(exchanges: Sequence[Exchange], reference: Runner) -> CheckFailed | None:
    """The first answer that is not like the reference's, as a check would say it; None where all are."""
    for exchange in exchanges:
        try:
            right = reference.execute(exchange.call)
            if right.raised is None:
                _compare(exchange.reply, right)
        except CheckFailed as failed:
            return failed
        except Exception:  # a call that only an attempt can answer says nothing
            continue
    return None


def _compare(mine: Reply, right: Reply) -> None:
    if mine.raised is not None:
        raise AttemptRaised(mine.raised)
    for got, wanted in zip(mine.outputs, right.outputs, strict=False):
        _compare_outputs(got, wanted)
    for name, gradient in right.gradients.items():
        other = mine.gradients.get(name)
        if gradient is not None and other is not None:
            assert_shape(other, gradient.shape, "a gradient")


def _compare_outputs(got: Output, wanted: Output) -> None:
    if got.kind != wanted.kind:
        raise CheckFailed(f"{kind_name(wanted.kind)} was expected; yours returned {kind_name(got.kind)}")
    if got.tensor is None or wanted.tensor is None:
        return
    assert_shape(got.tensor, wanted.tensor.shape)
    if got.tensor.is_floating_point() != wanted.tensor.is_floating_point():
        expected, yours = (str(t.dtype).removeprefix("torch.") for t in (wanted.tensor, got.tensor))
        raise CheckFailed(f"a tensor of {expected} was expected; yours is of {yours}")
