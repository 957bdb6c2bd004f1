"""The weights of each head are found however they are computed."""

import pytest
import torch
from torch import Tensor

from manyheads.box.worker.messages import Call, TraceCall
from manyheads.box.worker.tracing import trace
from manyheads.judge.axes import Axes
from manyheads.student.example import Example
from manyheads.student.follow import TABLES, TIMES
from manyheads.student.heads import weights_by_call

B, NH, T, HD = 2, 3, 5, 4
AXES = Axes({"B": B, "nh": NH, "T": T, "hd": HD})
HEAD = """
import torch, math
def f(q):
    B, nh, T, hd = q.shape
    hidden = torch.ones(T, T, dtype=torch.bool).triu(1)
"""
WAYS = {
    "all heads at once": "return (q @ q.mT).masked_fill(hidden, -math.inf).softmax(-1) @ q",
    "batch and heads in one": "q = q.flatten(0, 1)\n    return torch.bmm(q, q.mT).masked_fill(hidden, -math.inf).softmax(-1)",
    "a loop over heads": "return [(q[:, h] @ q[:, h].mT).masked_fill(hidden, -math.inf).softmax(-1) for h in range(nh)]",
    "a loop over sequences and heads": "return [[(s @ s.mT).masked_fill(hidden, -math.inf).softmax(-1) for s in b] for b in q]",
    "scores that sum to one": "s = q @ q.mT\n    s = s / s.sum(-1, keepdim=True)\n    return (q @ q.mT).masked_fill(hidden, -math.inf).softmax(-1)",
    "a softmax by hand": "e = (q @ q.mT).masked_fill(hidden, -math.inf).exp()\n    return e / e.sum(-1, keepdim=True)",
}
Q = torch.randn(B, NH, T, HD, generator=torch.Generator().manual_seed(4))


def seen(body: str) -> Tensor | None:
    namespace: dict[str, object] = {}
    exec(compile(f"{HEAD}    {body}\n", "a.py", "exec"), namespace)
    call = Call("f", (Q,))
    traced = trace(namespace, TraceCall(call, TABLES, TIMES), "a.py")
    return weights_by_call(Example(call, Q, True, None, AXES), traced)[0]


def expected() -> Tensor:
    past = torch.arange(T)[:, None] >= torch.arange(T)
    return (Q[0] @ Q[0].mT).masked_fill(~past, float("-inf")).softmax(-1)


@pytest.mark.parametrize("way", WAYS)
def test_the_weights_of_the_first_sequence_head_by_head(way: str) -> None:
    found = seen(WAYS[way])
    assert found.shape == (NH, T, T)
    assert torch.allclose(found, expected(), atol=1e-5)


def test_a_mask_after_the_softmax_is_part_of_the_weights() -> None:
    found = seen("return (q @ q.mT).softmax(-1).masked_fill(hidden, 0) @ q")
    assert not found.triu(1).any()


def test_a_softmax_over_the_wrong_axis_is_shown_as_it_is() -> None:
    found = seen("s = q @ q.mT\n    return (s - s.amax(-2, True)).softmax(-2) @ q")
    assert torch.allclose(found.sum(-2), torch.ones(NH, T))


@pytest.mark.parametrize("body", [
    "return torch.nn.functional.scaled_dot_product_attention(q, q, q)",
    "return q * 2",
    "q = q.transpose(0, 1)\n    return (q @ q.mT).softmax(-1) @ q",  # sequences where heads should be
])  # fmt: skip
def test_where_no_weights_are_computed_none_are_shown(body: str) -> None:
    assert seen(body) is None
