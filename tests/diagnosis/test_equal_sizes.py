"""A size that is read off the wrong axis: right where the two axes are equally long, and an exception elsewhere."""

from __future__ import annotations

import pytest
import torch
from manyheads.diagnosis.equal_sizes import ask_where_sizes_are_equal

from manyheads.box.worker.messages import Call
from manyheads.checks.implementation import LocalRunner
from manyheads.checks.local import LocalRecordingRunner
from manyheads.checks.transcript import Exchange

REFERENCE = """
def summed(x):
    return x.cumsum(1) * x.shape[1]
"""


def namespace(text: str) -> dict[str, object]:
    names: dict[str, object] = {"torch": torch}
    exec(text, names)
    return names


@pytest.mark.parametrize(("body", "expected"), [
    pytest.param("return torch.ones(len(x), len(x)).tril().to(x) @ x * x.shape[1]", True, id="the rows' number"),
    pytest.param("return x.transpose(1, 2).reshape(x.shape).cumsum(1).mT * x.shape[1]", False, id="other values"),
    pytest.param("return x.cumsum(1).view(3, 5, 7) * x.shape[1]", False, id="sizes that stand in the text"),
    pytest.param("return x.cumsum(1) * x.shape[1]", False, id="nothing is wrong"),
    pytest.param("return (x.cumsum(1) * x.shape[1])[:, :, :7].view(x.shape)", False, id="right where one is small"),
    pytest.param("return x.undefined", False, id="always an exception"),
])  # fmt: skip
def test_right_where_two_axes_are_equally_long(body: str, expected: bool) -> None:
    subject, reference = (
        LocalRecordingRunner(namespace(f"def summed(x):\n    {body}")),
        LocalRunner(namespace(REFERENCE)),
    )
    calls = [Call("summed", (torch.randn(sizes).double(),)) for sizes in ((4, 9, 12), (5, 8, 13))]
    exchanges = [Exchange("check", call, subject.execute(call)) for call in calls]
    assert ask_where_sizes_are_equal(subject, reference, exchanges).works is expected
