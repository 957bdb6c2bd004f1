"""What a monitor reports, and numbers that are asked for on the meta device, which has none: zeros, while somebody watches."""

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


def test_shapes_are_those_of_new_tensors_and_not_of_views() -> None:
    x = torch.ones(3, 5)
    with OpMonitor() as monitor:
        x.t().expand(2, 5, 3) + 1.0
    assert monitor.operations().shapes == ((2, 5, 3),)


@pytest.mark.parametrize(
    "normalise",
    [
        pytest.param(lambda x: torch.softmax(x, -1), id="torch.softmax"),
        pytest.param(lambda x: x.softmax(-1), id="Tensor.softmax"),
        pytest.param(torch.nn.Softmax(-1), id="nn.Softmax"),
    ],
)
def test_kernels_are_called_by_their_names(normalise: Callable[[Tensor], Tensor]) -> None:
    with OpMonitor() as monitor:
        normalise(torch.ones(3, 5))
    assert "_softmax" in monitor.operations().kernels


def test_a_kernel_of_somebody_else_has_no_name() -> None:
    library = torch.library.Library("mine_alone", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x + x, "CompositeExplicitAutograd")
    with OpMonitor() as monitor:
        torch.ops.mine_alone.twice(torch.ones(3))
    assert "twice" not in monitor.operations().kernels
