"""The filter of system calls: what honest attempts do works, what carries messages or reaches out does not."""

import pytest

from manyheads.box.level import Box
from manyheads.box.worker.answers import Reply
from manyheads.box.worker.limits import Limits
from manyheads.box.worker.messages import Call
from tests.make import replies

from .honest_attempts import BODIES, REFUSED_KINDLY
from .refused_calls import CARRIES_A_MESSAGE, PRELUDE, REACHES_OUT

LIMITS = Limits(seconds_per_call=60.0, seconds_per_attempt=120.0)


def reply(box: Box, body: str, prelude: str = "import os, sys, time, torch\n") -> Reply:
    source = f"{prelude}\ndef f():\n    {body.strip()}\n"
    return replies(box, LIMITS, source, Call("f"), seconds=60.0)[0]


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_an_honest_attempt_may_use(box: Box, body: str) -> None:
    got = reply(box, body)
    assert got.raised is None, got.raised
    assert got.outputs[0].tensor.item() == 1.0


@pytest.mark.parametrize(("body", "kinds"), REFUSED_KINDLY.values(), ids=REFUSED_KINDLY)
def test_is_refused_with_an_exception_of_python(box: Box, body: str, kinds: set[str]) -> None:
    got = reply(box, body)
    assert {got.raised.type, *got.raised.bases} & kinds, got.raised


REFUSED = CARRIES_A_MESSAGE | REACHES_OUT


@pytest.mark.parametrize("expression", REFUSED.values(), ids=REFUSED)
def test_leaves_no_message_for_another_run_and_does_not_reach_out_of_the_box(box: Box, expression: str) -> None:
    got = reply(box, f"return works(lambda: {expression})", PRELUDE)
    assert got.raised is None, got.raised
    assert got.outputs[0].tensor.item() == 0.0
