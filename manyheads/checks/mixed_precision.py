"""Half precision: how near an attempt under autocast must stay to the reference in float64."""

from __future__ import annotations

from .asserts import assert_finite, assert_shape, difference
from .implementation import Answer, CheckFailed

# Of the largest expected value. The right attempts of the four exercises that are modules, on a CPU, are off by at most
# 0.0013 in float16 and 0.0115 in bfloat16, each with another way to round: tests/grader/test_half_precision.py.
TOLERANCES = {"float16": 0.005, "bfloat16": 0.05}
HALF_PRECISION = tuple(TOLERANCES)


def assert_near(got: Answer, want: Answer, what: str = "the output") -> None:
    """The answer to a call with `autocast` is finite, and as near as rounding to that precision allows."""
    dtype = got.call.autocast
    assert dtype is not None
    label = f"under autocast in {dtype}, {what}"
    assert_shape(got, want.output.shape, label)
    assert_finite(got, label)
    error = difference(got.output, want.output)
    if error > TOLERANCES[dtype]:
        raise CheckFailed(
            f"{label} differs by {error:.1%} of the largest expected value; rounding explains {TOLERANCES[dtype]:.1%}"
        )
