"""Find why a check raised an error of its own: the attempt's answers may have an unexpected shape or type.

A wrong attempt may return anything. If a check fails on that (an index beyond an axis, arithmetic on bools), the grader
is not broken. The reference is asked the same calls, and the student is told how the answers differ in shape or type.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..box.worker.answers import Output, Reply
from ..box.worker.messages import Call
from ..checks.answer import Answer, answers_of
from ..checks.asserts import assert_shape
from ..checks.failed import CheckFailed
from ..checks.implementation import Runner
from ..checks.recording import Exchange
from ..checks.sanitize import kind_name


def compare_with_reference(exchanges: Sequence[Exchange], reference: Runner) -> CheckFailed | None:
    """The first answer that differs from the reference's in shape or type, as a check would report it; None if all agree."""
    for exchange in exchanges:
        try:
            right = reference.execute(exchange.call)
            if right.raised is None:
                _compare(exchange.call, exchange.reply, right)
        except CheckFailed as failed:
            return failed
        except Exception:  # a call that only an attempt can answer cannot be compared
            continue
    return None


def _compare(call: Call, mine: Reply, right: Reply) -> None:
    Answer(call, mine).must_return()
    for got, wanted, answer in zip(mine.outputs, right.outputs, answers_of(call, mine), strict=False):
        _compare_outputs(got, wanted, answer.label)
    for name, gradient in right.gradients.items():
        other = mine.gradients.get(name)
        if gradient is not None and other is not None:
            assert_shape(other, gradient.shape, "a gradient")


def _compare_outputs(got: Output, wanted: Output, label: str) -> None:
    if got.kind != wanted.kind:
        raise CheckFailed(f"{kind_name(wanted.kind)} was expected; yours returned {kind_name(got.kind)}")
    if got.tensor is None or wanted.tensor is None:
        return
    assert_shape(got.tensor, wanted.tensor.shape, label)
    if got.tensor.is_floating_point() != wanted.tensor.is_floating_point():
        expected, yours = (str(t.dtype).removeprefix("torch.") for t in (wanted.tensor, got.tensor))
        raise CheckFailed(f"a tensor of {expected} was expected; yours is of {yours}")
