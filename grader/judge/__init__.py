"""The judge: runs hidden checks over an attempt's answers. It never imports student code.

What a check file imports stands here: `check`, the asserts and what they need, nothing else.
"""

from ..box.worker.messages import StandIn
from .candidate import Module
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
    moved,
)
from .half import HALF_PRECISION, assert_near
from .marks import Layer, check
from .slopes import contradicts_itself, is_cut, unheard

__all__ = [
    "HALF_PRECISION",
    "CheckFailed",
    "Layer",
    "Module",
    "StandIn",
    "assert_finite",
    "assert_gradients_match",
    "assert_matches",
    "assert_near",
    "assert_refused",
    "assert_same",
    "assert_shape",
    "assert_unmutated",
    "check",
    "contradicts_itself",
    "expect",
    "is_cut",
    "moved",
    "unheard",
]
