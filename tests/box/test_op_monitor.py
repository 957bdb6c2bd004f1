"""Numbers that are asked for on the meta device, which has none: zeros, the same every time, while somebody watches."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from manyheads.box.worker.op_monitor import OpMonitor


@pytest.mark.parametrize(
    "take",
    [
        pytest.param(lambda x: x.cpu(), id="cpu()"),
        pytest.param(lambda x: x.t().to("cpu", torch.float32).t(), id="to(), turned, in another dtype"),
        pytest.param(lambda x: torch.full((3, 4), 7.0).copy_(x), id="a copy into what is there"),
        pytest.param(lambda x: torch.tensor(x.tolist()), id="one by one"),
    ],
)
def test_what_is_taken_from_the_meta_device_is_zeros(take: Callable[[Tensor], Tensor]) -> None:
    with OpMonitor() as monitor:
        taken = take(torch.randn(3, 4, dtype=torch.float64, device="meta"))
    assert (taken.device.type, tuple(taken.shape), float(taken.abs().sum())) == ("cpu", (3, 4), 0.0)
    assert not monitor.operations().mixed


def test_two_devices_in_one_operation_leave_no_rubbish() -> None:
    with OpMonitor() as monitor:
        out = torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 3, device="meta"))
    assert monitor.operations().mixed
    assert out.is_meta or float(out.abs().sum()) == 0.0


def test_without_a_watch_there_is_nothing_to_take() -> None:
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta"):
        torch.ones(3, device="meta").cpu()
