"""The planted difference is large in one place, little elsewhere, nowhere the same, and in fused
attention alone.
"""

import runpy
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from manyheads.box.worker.execute import execute
from manyheads.box.worker.messages import Call
from tests.make import REPOSITORY

planting = runpy.run_path(str(REPOSITORY / "grader" / "checks" / "_planted.py"))["planting"]
X = torch.randn(2, 3, 5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def attend(x: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(x, x, x)


def planted_output(
    x: Tensor, position: float = 0.3, function: Callable[[Tensor], Tensor] = attend
) -> Tensor:
    output = (
        execute({"attend": function}, Call("attend", (x,), around=planting(8.0, position)), "")
        .outputs[0]
        .tensor
    )
    assert output is not None
    return output


def test_it_is_large_in_one_place_little_elsewhere_and_nowhere_the_same() -> None:
    apart = planted_output(X, 0.77) - attend(X)
    index = int(0.77 * X.numel())
    assert int(apart.abs().argmax()) == index
    assert 8 <= float(apart.abs().max()) <= 24
    remaining = torch.cat([apart.flatten()[:index], apart.flatten()[index + 1 :]])
    assert float(remaining.abs().max()) <= 0.6
    assert len(remaining.unique()) == len(remaining)


def test_it_follows_the_input_comes_out_the_same_each_time_and_leaves_others_alone() -> None:
    assert torch.equal(planted_output(X), planted_output(X))
    of_twice, of_once = (planted_output(x) - attend(x) for x in (2 * X, X))
    assert not torch.allclose(of_twice, of_once)
    assert torch.equal(
        planted_output(X, function=lambda x: (x @ x.mT / 2).softmax(-1) @ x),
        (X @ X.mT / 2).softmax(-1) @ X,
    )


def test_it_works_in_every_layout_and_on_nothing_at_all() -> None:
    for x in (X[0], X[0, 0], X.float(), X[:, :, :0]):
        assert planted_output(x).shape == x.shape
    assert planted_output(X, function=torch.vmap(attend)).shape == X.shape
