"""What a monitor reports, and numbers that are asked for on the meta device, which has none: zeros, while somebody watches."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention.bias import causal_upper_left
from torch.nn.attention.flex_attention import flex_attention

from manyheads.box.worker.op_monitor import OpMonitor


@pytest.mark.parametrize("take", [
    pytest.param(lambda x: x.cpu(), id="cpu()"),
    pytest.param(lambda x: x.t().to("cpu", torch.float32).t(), id="to(), turned, in another dtype"),
    pytest.param(lambda x: torch.full((3, 4), 7.0).copy_(x), id="a copy into what is there"),
    pytest.param(lambda x: torch.tensor(x.tolist()), id="one by one"),
])  # fmt: skip
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


@pytest.mark.parametrize("normalise", [
    pytest.param(lambda x: torch.softmax(x, -1), id="torch.softmax"),
    pytest.param(lambda x: x.softmax(-1), id="Tensor.softmax"),
    pytest.param(torch.nn.Softmax(-1), id="nn.Softmax"),
])  # fmt: skip
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


Q = torch.randn(2, 3, 5, 4, generator=torch.Generator().manual_seed(0))
uneven = partial(torch.nested.nested_tensor, [Q[0, 0], Q[1, 0, :3]])
CAUSAL = torch.ones(5, 5).tril()


class Own(Tensor):
    """A student's own kind of tensor."""


WAYS = {
    "a mask that is an object": lambda: F.scaled_dot_product_attention(Q, Q, Q, causal_upper_left(5, 5)),
    "its table": lambda: causal_upper_left(5, 5)._materialize(),
    "a tensor of a class of one's own": lambda: Own(Q) + 0,
    "a view as such a class": lambda: Q.as_subclass(Own) + 0,
    "attention with a function for scores": lambda: flex_attention(Q, Q, Q, lambda s, b, h, i, j: s + i - j),
    "a branch": lambda: torch.cond(Q.sum() < torch.inf, lambda x: x * 2, lambda x: x, (Q,)),
    "tensors of several lengths": lambda: uneven().to_padded_tensor(0.0),
    "tensors of several lengths, jagged": lambda: uneven(layout=torch.jagged).to_padded_tensor(0.0),
    "a sparse table": lambda: torch.sparse.mm(CAUSAL.to_sparse(), Q[0, 0]),
    "a table of rows": lambda: CAUSAL.to_sparse_csr() @ Q[0, 0],
    "a softmax of a sparse table": lambda: torch.sparse.softmax(CAUSAL.to_sparse(), -1).to_dense(),
    "one head at a time by vmap": lambda: torch.vmap(lambda x: (x @ x.mT).softmax(-1))(Q),
    "a gradient on the way": lambda: torch.func.grad(lambda x: (x * x).sum())(Q),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_what_can_be_done_unwatched_can_be_done_watched(monkeypatch, way):
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")  # as in every box
    plain = way()
    with OpMonitor():
        watched = way()
    assert torch.equal(plain.as_subclass(Tensor), watched.as_subclass(Tensor))


def test_fused_attention_with_a_mask_that_is_an_object_is_seen() -> None:
    with OpMonitor() as monitor:
        F.scaled_dot_product_attention(Q, Q, Q, causal_upper_left(5, 5))
    assert monitor.operations().fused


def test_a_tensor_is_made_as_before_once_nobody_watches() -> None:
    with OpMonitor():
        pass
    assert "__new__" not in vars(Tensor)
    assert Own(Q).shape == torch.Tensor(2, 3, 5, 4).shape
