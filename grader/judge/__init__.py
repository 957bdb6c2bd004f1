"""The judge: runs hidden checks over an attempt's answers. It never imports student code.

What a check file imports stands here: `check`, the asserts, and nothing else.
"""

from ..box.worker.messages import StandIn
from .expect import (
    CheckFailed,
    assert_finite,
    assert_gradients_match,
    assert_matches,
    assert_refused,
    assert_same,
    assert_shape,
    assert_unmutated,
    expect,
)
from .marks import Layer, check

__all__ = [
    "CheckFailed",
    "Layer",
    "StandIn",
    "assert_finite",
    "assert_gradients_match",
    "assert_matches",
    "assert_refused",
    "assert_same",
    "assert_shape",
    "assert_unmutated",
    "check",
    "expect",
]
