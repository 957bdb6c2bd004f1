"""Half precision: how closely an attempt under autocast must agree with the reference in float64."""

from __future__ import annotations

from .answer import Answer
from .asserts import assert_finite, assert_shape, difference
from .failed import CheckFailed

# Fractions of the largest expected value. On a CPU, right attempts at modules differ by at most 0.0013 in float16 and
# 0.0115 in bfloat16, depending on where they round.
TOLERANCES = {"float16": 0.005, "bfloat16": 0.05}
HALF_PRECISION = tuple(TOLERANCES)


def assert_near(got: Answer, want: Answer, what: str = "the output") -> None:
    """The answer to a call with `autocast` is finite, and differs by no more than rounding in that precision explains."""
    dtype = got.call.autocast
    assert dtype is not None
    label = f"under autocast in {dtype}, {what}"
    assert_shape(got, want.output.shape, label)
    assert_finite(got, label)
    error = difference(got.output, want.output)
    if error > TOLERANCES[dtype]:
        raise CheckFailed(
            f"{label} differs by {error:.1%} of the largest value; rounding explains {TOLERANCES[dtype]:.1%}"
        )
