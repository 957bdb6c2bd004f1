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


def steps(traced: Traced) -> list[Step]:
    return [traced.steps[place] for place in traced.order]


@pytest.mark.parametrize(("code", "seen", "expected"), [
    pytest.param("return nn.Linear(4, 5)(x)", lambda t: [i.shape for i in steps(t)[-1].inputs], [(2, 3, 4)],
        id="a layer is given what it was called with, not what it holds"),
    *(pytest.param(f"{code}\n    return x", lambda t: steps(t)[-1].storage, "in place", id=f"{code} writes into a tensor")
        for code in ("x += 1", "x.masked_fill_(x > 3, 0)", "x[:, 0] = 0", "torch.add(x, 1, out=x)")),
    *(pytest.param(f"{code}\n    return 0", lambda t: [n for n in names(t) if n != "sum"], [], id=f"{code} gives no tensor")
        for code in ("x.shape", "len(x)", "x.dim()", "x.is_contiguous()", "str(x)", "x.tolist()", "x.sum().item()")),
    pytest.param("a, b = x.split(2, -1)\n    c, d = x\n    return c",
        lambda t: [(s.name, s.output_count, s.outputs[0].shape) for s in steps(t)],
        [("split", 2, (2, 3, 2)), ("unpack", 2, (3, 4))], id="parts are counted and unpacking is a step"),
    pytest.param("y = half(x)\n    return half(y)", lambda t: [s.lines for s in steps(t)], [(7, 5), (8, 5)],
        id="a helper stands below the line that called it"),
    pytest.param("return torch.vmap(lambda t: t @ t.mT)(x)",
        lambda t: [(s.name, s.outputs[0].shape, s.storage, s.crops) for s in steps(t)],
        [("mT", (4, 3), "", ()), ("matmul", (3, 3), "", ())], id="inside vmap shapes are those of one example"),
    pytest.param("z = x.mT.view(2, 12)\n    return z @ z",
        lambda t: (names(t), *((s.raised, s.lines, s.inputs[0].contiguous, s.outputs) for s in steps(t)[1:])),
        (["mT", "view"], (True, (7,), False, ())), id="an exception leaves the steps before it"),
    pytest.param("for _ in range(500):\n        x = x.mT + 1\n    return x", lambda t: (len(t.order), len(t.steps)),
        (1000, 4), id="a loop is a few steps in a long order"),
    pytest.param("return torch.stack([x[0, 0, c] * 2 for c in range(4)])", lambda t: (len(t.order), len(t.steps)), (9, 3),
        id="numbers do not make steps differ"),
    pytest.param("y = x * 1\n    y += 100\n    return y", lambda t: [s.crops[0][0, 0].item() for s in steps(t)],
        [0.0, 100.0], id="corners are what the numbers were then"),
    pytest.param("return x / math.sqrt(4.0) + torch.tensor(7.0)",
        lambda t: (steps(t)[0].numbers, steps(t)[1].outputs[0].value, steps(t)[2].inputs[1].value), ((2.0,), 7.0, 7.0),
        id="numbers beside tensors are noted"),
])  # fmt: skip
def test_what_is_seen(follow: Follow, code: str, seen: Callable[[Traced], object], expected: object) -> None:
    assert seen(follow(f"def half(x):\n    return x / 2\ndef f(x):\n    {code}\n", crop=(2, 2))) == expected


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
