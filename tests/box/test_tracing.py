"""A call followed operation by operation: what the student's line called, on what, and what became of the numbers."""

import textwrap
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from manyheads.box.worker.answers import CROPS, ORDER, STEPS, Step, Traced
from manyheads.box.worker.execute import execute
from manyheads.box.worker.messages import Call, TraceCall
from manyheads.box.worker.tracing import trace

Follow = Callable[..., Traced]
X = torch.arange(24.0).reshape(2, 3, 4)


@pytest.fixture
def follow() -> Follow:
    """Follow `f(x)`, whose source is given."""

    def follow(source: str, x: Tensor = X, crop: tuple[int, ...] = (), times: int = 1) -> Traced:
        namespace: dict[str, object] = {}
        head = "import torch, math, einops\nfrom torch import nn\nimport torch.nn.functional as F\n"
        exec(compile(head + textwrap.dedent(source), "a.py", "exec"), namespace)
        return trace(namespace, TraceCall(Call("f", (x,)), crop, times), "a.py")

    return follow


def names(traced: Traced) -> list[str]:
    return [traced.steps[place].name for place in traced.order]


def only(traced: Traced) -> Step:
    assert traced.reply.raised is None
    assert len(traced.order) == 1, names(traced)
    return traced.steps[0]


@pytest.mark.parametrize(("code", "name", "shape", "storage"), [
    pytest.param("x.view(2, 12)", "view", (2, 12), "view", id="a view"),
    pytest.param("x.mT", "mT", (2, 4, 3), "view", id="a property that is a tensor"),
    pytest.param("x[:, 0]", "index", (2, 4), "view", id="an index that is a slice"),
    pytest.param("x[:, [0, 0, 1]]", "index", (2, 3, 4), "copy", id="an index that gathers"),
    pytest.param("x.reshape(-1)", "reshape", (24,), "view", id="a reshape that need not copy"),
    pytest.param("x.contiguous()", "contiguous", (2, 3, 4), "same", id="contiguous where it is so already"),
    pytest.param("x.unsqueeze(0).expand(5, 2, 3, 4)", "expand", (5, 2, 3, 4), "view", id="an expand"),
    pytest.param("x @ torch.eye(4)", "matmul", (2, 3, 4), "new", id="the operator @"),
    pytest.param("torch.einsum('btc,bsc->bts', x, x)", "einsum", (2, 3, 3), "new", id="einsum"),
    pytest.param("einops.rearrange(x, 'b t (h d) -> b h t d', h=2)", "rearrange", (2, 2, 3, 2), "view", id="einops, two operations in one call",
                 marks=pytest.mark.skipif(torch.__version__.startswith("2.6."), reason="torch 2.6 hides that it is a view")),
    pytest.param("einops.rearrange(x, 'b t c -> (t b) c')", "rearrange", (6, 4), "copy", id="einops that must copy"),
    pytest.param("F.softmax(x, -1)", "softmax", (2, 3, 4), "new", id="a function of F"),
    pytest.param("F.dropout(x, 0.5, False)", "dropout", (2, 3, 4), "same", id="a dropout that sleeps"),
    pytest.param("F.scaled_dot_product_attention(x, x, x, is_causal=True)", "scaled_dot_product_attention", (2, 3, 4), "new", id="the fused function"),
    pytest.param("torch.cat([x, x])", "cat", (4, 3, 4), "copy", id="a concatenation"),
    pytest.param("1 / x", "div", (2, 3, 4), "new", id="a number divided by a tensor"),
    pytest.param("-x", "neg", (2, 3, 4), "new", id="a sign"),
    pytest.param("x == x", "eq", (2, 3, 4), "new", id="a comparison"),
    pytest.param("nn.Linear(4, 5)(x)", "Linear", (2, 3, 5), "new", id="a layer"),
    pytest.param("nn.MultiheadAttention(4, 2, batch_first=True)(x, x, x)[0]", "MultiheadAttention", (2, 3, 4), "new", id="a layer that does much inside"),
])  # fmt: skip
def test_what_a_line_calls_is_one_step(follow, code, name, shape, storage):
    traced = follow(f"def f(x):\n    return {code}\n")
    assert traced.reply.raised is None
    step = traced.steps[traced.order[-1]]
    assert (step.name, step.outputs[0].shape, step.storage, step.lines) == (name, shape, storage, (5,))


def test_a_layer_is_given_what_it_was_called_with_not_what_it_holds(follow: Follow) -> None:
    traced = follow("layer = nn.Linear(4, 5)\ndef f(x):\n    return layer(x)\n")
    assert [seen.shape for seen in only(traced).inputs] == [(2, 3, 4)]


@pytest.mark.parametrize("code", ["x += 1", "x.masked_fill_(x > 3, 0)", "x[:, 0] = 0", "torch.add(x, 1, out=x)"])
def test_what_writes_into_a_tensor_is_seen_to_do_so(follow: Follow, code: str) -> None:
    traced = follow(f"def f(x):\n    {code}\n    return x\n")
    assert [traced.steps[place].storage for place in traced.order][-1] == "in place"


@pytest.mark.parametrize(
    "code", ["x.shape", "len(x)", "x.dim()", "x.is_contiguous()", "str(x)", "x.tolist()", "x.sum().item() and None"]
)
def test_what_gives_no_tensor_is_no_step(follow: Follow, code: str) -> None:
    assert names(follow(f"def f(x):\n    {code}\n    return 0\n")) in ([], ["sum"])


def test_parts_are_counted_and_unpacking_is_a_step(follow: Follow) -> None:
    traced = follow("def f(x):\n    a, b = x.split(2, -1)\n    c, d = x\n    return c\n")
    split, unpack = (traced.steps[place] for place in traced.order)
    assert (split.name, split.output_count, [o.shape for o in split.outputs]) == ("split", 2, [(2, 3, 2)] * 2)
    assert (unpack.name, unpack.output_count, unpack.outputs[0].shape) == ("unpack", 2, (3, 4))


def test_a_helper_stands_below_the_line_that_called_it(follow: Follow) -> None:
    traced = follow("def half(x):\n    return x / 2\ndef f(x):\n    y = half(x)\n    return half(y)\n")
    assert [traced.steps[place].lines for place in traced.order] == [(7, 5), (8, 5)]


def test_inside_vmap_shapes_are_those_of_one_example(follow: Follow) -> None:
    traced = follow("def f(x):\n    return torch.vmap(lambda t: t @ t.mT)(x)\n", crop=(2, 2))
    steps = [traced.steps[place] for place in traced.order]
    assert [(s.name, s.outputs[0].shape) for s in steps] == [("mT", (4, 3)), ("matmul", (3, 3))]
    assert {(s.storage, s.crops) for s in steps} == {("", ())}


def test_an_exception_in_the_middle_leaves_the_steps_before_it(follow: Follow) -> None:
    traced = follow("def f(x):\n    y = x.mT\n    z = y.view(2, 12)\n    return z @ z\n")
    last = traced.steps[traced.order[-1]]
    assert names(traced) == ["mT", "view"]
    assert (last.raised, last.lines, last.inputs[0].contiguous, last.outputs) == (True, (6,), False, ())
    assert traced.reply.raised.line == 6


def test_a_loop_is_a_few_steps_in_a_long_order(follow: Follow) -> None:
    traced = follow("def f(y):\n    for _ in range(500):\n        y = y.mT\n        y = y + 1\n    return y\n")
    assert len(traced.order) == 1000
    assert len(traced.steps) == 4  # each of the two, on (3, 4) and on (4, 3)


def test_numbers_do_not_make_steps_differ(follow: Follow) -> None:
    traced = follow("def f(x):\n    return torch.stack([x[0, 0, c] * 2 for c in range(4)])\n")
    assert len(traced.steps) == 3
    assert len(traced.order) == 9


def test_endless_variety_and_length_are_cut_and_counted(follow: Follow) -> None:
    various = follow(f"def f(x):\n    for n in range({STEPS + 7}):\n        y = torch.zeros(n)\n    return y\n")
    assert (len(various.steps), various.dropped) == (STEPS, 7)
    long = follow(f"def f(x):\n    for n in range({ORDER + 9}):\n        y = x.mT\n    return y\n")
    assert (len(long.order), long.dropped) == (ORDER, 9)


def test_a_corner_of_what_comes_out_is_kept_of_the_first_times(follow: Follow) -> None:
    traced = follow("def f(x):\n    for n in range(9):\n        x = x + 1\n    return x\n", crop=(2, 3), times=2)
    step = traced.steps[0]
    assert torch.equal(torch.stack(step.crops), torch.stack([X[0, :2, :3] + 1, X[0, :2, :3] + 2]))
    loop = f"def f(x):\n    for n in range({CROPS + 9}):\n        x = x + 1\n    return x\n"
    many = follow(loop, crop=(1,), times=999)
    assert len(many.steps[0].crops) == CROPS


def test_corners_are_what_the_numbers_were_then(follow: Follow) -> None:
    traced = follow("def f(x):\n    y = x * 1\n    y += 100\n    return y\n", crop=(1, 1))
    assert [step.crops[0].item() for step in traced.steps] == [0.0, 100.0]


def test_numbers_beside_tensors_are_noted(follow: Follow) -> None:
    traced = follow("def f(x):\n    return x / math.sqrt(4.0) + torch.tensor(7.0)\n")
    divided, constant, added = (traced.steps[place] for place in traced.order)
    assert divided.numbers == (2.0,)
    assert constant.outputs[0].value == added.inputs[1].value == 7.0


def test_following_changes_no_answer(follow: Follow) -> None:
    source = "def f(x):\n    x = F.dropout(x, 0.5) * torch.rand_like(x)\n    return x.softmax(-1)\n"
    namespace: dict[str, object] = {"F": torch.nn.functional, "torch": torch}
    exec(source, namespace)
    call = Call("f", (X,), seed=5)
    mine = execute(namespace, call, "a.py").outputs[0].tensor
    followed = trace(namespace, TraceCall(call, (2, 2), 3), "<string>").reply.outputs[0].tensor
    assert torch.equal(mine, followed)


def test_what_lies_about_itself_does_not_stop_the_call(follow: Follow) -> None:
    source = """
    class Odd(torch.Tensor):
        @property
        def shape(self):
            raise RuntimeError("no")

    def f(x):
        y = x.as_subclass(Odd)
        return (y + 1).as_subclass(torch.Tensor)
    """
    traced = follow(source)
    assert traced.reply.raised is None
    assert traced.reply.outputs[0].shape == (2, 3, 4)
