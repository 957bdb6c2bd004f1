"""A call followed operation by operation, watched for its kernels, and a model that learns."""

import math
import textwrap
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention.bias import causal_upper_left
from torch.nn.attention.flex_attention import flex_attention

from manyheads.box.worker.answer_call import execute
from manyheads.box.worker.messages import (
    CROPS,
    ORDER,
    SLICES,
    STEPS,
    Build,
    Call,
    InitModel,
    Operations,
    PlantedDifference,
    Reply,
    Slice,
    Step,
    TraceCall,
    Traced,
    TrainStep,
    Write,
)
from manyheads.box.worker.op_monitor import OpMonitor
from manyheads.box.worker.trace_operations import trace
from manyheads.box.worker.training import Adam, C, Trainer, initialise

Follow = Callable[..., Traced]
X = torch.arange(24.0).reshape(2, 3, 4)


@pytest.fixture
def follow() -> Follow:
    """Follow `f(x)`, whose source is given."""

    def follow(
        source: str, x: Tensor = X, crop: tuple[int, ...] = (), times: int = 1, **call: Any
    ) -> Traced:
        namespace: dict[str, object] = {}
        head = "import torch, math, einops\nfrom torch import nn\nimport torch.nn.functional as F\n"
        exec(compile(head + textwrap.dedent(source), "a.py", "exec"), namespace)
        return trace(namespace, TraceCall(Call("f", (x,), **call), crop, times), "a.py")

    return follow


def names(traced: Traced) -> list[str]:
    return [traced.steps[index].name for index in traced.order]


@pytest.mark.parametrize(
    ("code", "name", "shape", "storage"),
    [
        pytest.param("x.view(2, 12)", "view", (2, 12), "view", id="a view"),
        pytest.param("x.mT", "mT", (2, 4, 3), "view", id="a property that is a tensor"),
        pytest.param("x[:, 0]", "index", (2, 4), "view", id="an index that is a slice"),
        pytest.param("x[:, [0, 0, 1]]", "index", (2, 3, 4), "copy", id="an index that gathers"),
        pytest.param("x.reshape(-1)", "reshape", (24,), "view", id="a reshape that need not copy"),
        pytest.param(
            "x.contiguous()",
            "contiguous",
            (2, 3, 4),
            "same",
            id="contiguous where it is so already",
        ),
        pytest.param(
            "x.unsqueeze(0).expand(5, 2, 3, 4)", "expand", (5, 2, 3, 4), "view", id="an expand"
        ),
        pytest.param("x @ torch.eye(4)", "matmul", (2, 3, 4), "new", id="the operator @"),
        pytest.param("torch.einsum('btc,bsc->bts', x, x)", "einsum", (2, 3, 3), "new", id="einsum"),
        pytest.param(
            "einops.rearrange(x, 'b t (h d) -> b h t d', h=2)",
            "rearrange",
            (2, 2, 3, 2),
            "view",
            id="einops, two operations in one call",
            marks=pytest.mark.skipif(
                torch.__version__.startswith("2.6."), reason="torch 2.6 hides that it is a view"
            ),
        ),
        pytest.param(
            "einops.rearrange(x, 'b t c -> (t b) c')",
            "rearrange",
            (6, 4),
            "copy",
            id="einops that must copy",
        ),
        pytest.param("F.softmax(x, -1)", "softmax", (2, 3, 4), "new", id="a function of F"),
        pytest.param(
            "F.dropout(x, 0.5, False)", "dropout", (2, 3, 4), "same", id="a dropout that sleeps"
        ),
        pytest.param(
            "F.scaled_dot_product_attention(x, x, x, is_causal=True)",
            "scaled_dot_product_attention",
            (2, 3, 4),
            "new",
            id="the fused function",
        ),
        pytest.param("torch.cat([x, x])", "cat", (4, 3, 4), "copy", id="a concatenation"),
        pytest.param("1 / x", "div", (2, 3, 4), "new", id="a number divided by a tensor"),
        pytest.param("-x", "neg", (2, 3, 4), "new", id="a sign"),
        pytest.param("x == x", "eq", (2, 3, 4), "new", id="a comparison"),
        pytest.param("nn.Linear(4, 5)(x)", "Linear", (2, 3, 5), "new", id="a layer"),
        pytest.param(
            "nn.MultiheadAttention(4, 2, batch_first=True)(x, x, x)[0]",
            "MultiheadAttention",
            (2, 3, 4),
            "new",
            id="a layer that does much inside",
        ),
    ],
)
def test_what_a_line_calls_is_one_step(follow, code, name, shape, storage):
    traced = follow(f"def f(x):\n    return {code}\n")
    assert traced.reply.raised is None
    step = traced.steps[traced.order[-1]]
    assert (step.name, step.outputs[0].shape, step.storage, step.lines) == (
        name,
        shape,
        storage,
        (5,),
    )


def steps(traced: Traced) -> list[Step]:
    return [traced.steps[index] for index in traced.order]


def names_without_sum(traced: Traced) -> list[str]:
    return [name for name in names(traced) if name != "sum"]


@pytest.mark.parametrize(
    ("code", "seen", "expected"),
    [
        pytest.param(
            "return nn.Linear(4, 5)(x)",
            lambda t: [i.shape for i in steps(t)[-1].inputs],
            [(2, 3, 4)],
            id="a layer is given what it was called with, not what it holds",
        ),
        *(
            pytest.param(
                f"{code}\n    return x",
                lambda t: steps(t)[-1].storage,
                "in place",
                id=f"{code} writes into a tensor",
            )
            for code in (
                "x += 1",
                "x.masked_fill_(x > 3, 0)",
                "x[:, 0] = 0",
                "torch.add(x, 1, out=x)",
            )
        ),
        *(
            pytest.param(
                f"{code}\n    return 0",
                names_without_sum,
                [],
                id=f"{code} gives no tensor",
            )
            for code in (
                "x.shape",
                "len(x)",
                "x.dim()",
                "x.is_contiguous()",
                "str(x)",
                "x.tolist()",
                "x.sum().item()",
            )
        ),
        pytest.param(
            "a, b = x.split(2, -1)\n    c, d = x\n    return c",
            lambda t: [(s.name, s.output_count, s.outputs[0].shape) for s in steps(t)],
            [("split", 2, (2, 3, 2)), ("unpack", 2, (3, 4))],
            id="parts are counted and unpacking is a step",
        ),
        pytest.param(
            "y = half(x)\n    return half(y)",
            lambda t: [s.lines for s in steps(t)],
            [(7, 5), (8, 5)],
            id="a helper stands below the line that called it",
        ),
        pytest.param(
            "return torch.vmap(lambda t: t @ t.mT)(x)",
            lambda t: [(s.name, s.outputs[0].shape, s.storage, s.crops) for s in steps(t)],
            [("mT", (4, 3), "", ()), ("matmul", (3, 3), "", ())],
            id="inside vmap shapes are those of one example",
        ),
        pytest.param(
            "z = x.mT.view(2, 12)\n    return z @ z",
            lambda t: (
                names(t),
                *((s.raised, s.lines, s.inputs[0].contiguous, s.outputs) for s in steps(t)[1:]),
            ),
            (["mT", "view"], (True, (7,), False, ())),
            id="an exception leaves the steps before it",
        ),
        pytest.param(
            "for _ in range(500):\n        x = x.mT + 1\n    return x",
            lambda t: (len(t.order), len(t.steps)),
            (1000, 4),
            id="a loop is a few steps in a long order",
        ),
        pytest.param(
            "return torch.stack([x[0, 0, c] * 2 for c in range(4)])",
            lambda t: (len(t.order), len(t.steps)),
            (9, 3),
            id="numbers do not make steps differ",
        ),
        pytest.param(
            "y = x * 1\n    y += 100\n    return y",
            lambda t: [s.crops[0][0, 0].item() for s in steps(t)],
            [0.0, 100.0],
            id="corners are what the numbers were then",
        ),
        pytest.param(
            "return x / math.sqrt(4.0) + torch.tensor(7.0)",
            lambda t: (
                steps(t)[0].numbers,
                steps(t)[1].outputs[0].value,
                steps(t)[2].inputs[1].value,
            ),
            ((2.0,), 7.0, 7.0),
            id="numbers beside tensors are noted",
        ),
    ],
)
def test_what_is_seen(
    follow: Follow, code: str, seen: Callable[[Traced], object], expected: object
) -> None:
    assert (
        seen(follow(f"def half(x):\n    return x / 2\ndef f(x):\n    {code}\n", crop=(2, 2)))
        == expected
    )


def test_endless_variety_and_length_are_cut_and_counted(follow: Follow) -> None:
    various = follow(
        f"def f(x):\n    for n in range({STEPS + 7}):\n        y = torch.zeros(n)\n    return y\n"
    )
    assert (len(various.steps), various.dropped) == (STEPS, 7)
    long = follow(f"def f(x):\n    for n in range({ORDER + 9}):\n        y = x.mT\n    return y\n")
    assert (len(long.order), long.dropped) == (ORDER, 9)


def test_a_corner_of_what_comes_out_is_kept_of_the_first_times(follow: Follow) -> None:
    traced = follow(
        "def f(x):\n    for n in range(9):\n        x = x + 1\n    return x\n", crop=(2, 3), times=2
    )
    step = traced.steps[0]
    assert torch.equal(torch.stack(step.crops), torch.stack([X[0, :2, :3] + 1, X[0, :2, :3] + 2]))
    loop = f"def f(x):\n    for n in range({CROPS + 9}):\n        x = x + 1\n    return x\n"
    many = follow(loop, crop=(1,), times=999)
    assert len(many.steps[0].crops) == CROPS


@pytest.mark.parametrize(
    ("code", "slices"),
    [
        pytest.param("x[..., 1:3]", [Slice(2, 1, 3)], id="along the last axis"),
        pytest.param("x.mT[:, 2:]", [Slice(1, 2, 4)], id="of a tensor that is turned"),
        pytest.param("x[:, 1:].narrow(1, 1, 1)", [Slice(1, 1, 2)], id="of a slice"),
        pytest.param("x[:, :2, :2]", [], id="along two axes"),
        pytest.param("x[..., ::2]", [], id="with a step"),
        pytest.param("x[:, 0]", [], id="an axis less"),
        pytest.param(
            "x[1:].as_strided((1, 1, 4), (12, 4, 1), 0)", [], id="what stands before its input"
        ),
        pytest.param("x[..., 4:]", [], id="nothing of it"),
        pytest.param("x[:, [0, 1]]", [], id="a copy"),
        pytest.param(
            "[x[..., n:n+1] for n in range(4)][0]",
            [Slice(2, n, n + 1) for n in range(4)],
            id="each round",
        ),
        pytest.param(
            "[x[n % 2:n % 2 + 1] for n in range(99)][0]",
            [Slice(0, n % 2, n % 2 + 1) for n in range(SLICES)],
            id="the first rounds of many",
        ),
    ],
)
def test_what_a_slice_shows_of_its_input_is_kept(
    follow: Follow, code: str, slices: list[Slice]
) -> None:
    traced = follow(f"def f(x): return {code}")
    assert list(traced.steps[traced.order[-1]].slices) == slices


def test_following_changes_no_answer(follow: Follow) -> None:
    source = "def f(x):\n    x = F.dropout(x, 0.5) * torch.rand_like(x)\n    return x.softmax(-1)\n"
    namespace: dict[str, object] = {"F": torch.nn.functional, "torch": torch}
    exec(source, namespace)
    call = Call("f", (X,), seed=5)
    executed = execute(namespace, call, "a.py").outputs[0].tensor
    followed = trace(namespace, TraceCall(call, (2, 2), 3), "<string>").reply.outputs[0].tensor
    assert torch.equal(executed, followed)


def test_what_a_check_puts_around_a_call_is_no_step_of_the_students(follow: Follow) -> None:
    source = "def f(x):\n    return F.scaled_dot_product_attention(x, x, x).abs()\n"
    traced = follow(source, around=PlantedDifference(8.0, 0.3))
    assert names(traced) == ["scaled_dot_product_attention", "abs"]


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


@pytest.mark.parametrize(
    "take",
    [
        pytest.param(lambda x: x.cpu(), id="cpu()"),
        pytest.param(
            lambda x: x.t().to("cpu", torch.float32).t(), id="to(), turned, in another dtype"
        ),
        pytest.param(lambda x: torch.full((3, 4), 7.0).copy_(x), id="a copy into what is there"),
        pytest.param(lambda x: torch.tensor(x.tolist()), id="one by one"),
    ],
)
def test_what_is_taken_from_the_meta_device_is_zeros(take: Callable[[Tensor], Tensor]) -> None:
    with OpMonitor() as monitor:
        copied = take(torch.randn(3, 4, dtype=torch.float64, device="meta"))
    assert (copied.device.type, tuple(copied.shape), float(copied.abs().sum())) == (
        "cpu",
        (3, 4),
        0.0,
    )
    assert not monitor.operations().mixed


def test_two_devices_in_one_operation_leave_no_rubbish() -> None:
    with OpMonitor() as monitor:
        out = torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 3, device="meta"))
    assert monitor.operations().mixed
    assert out.is_meta or float(out.abs().sum()) == 0.0


def test_without_a_watch_there_is_nothing_to_take() -> None:
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta"):
        torch.ones(3, device="meta").cpu()


Q = torch.randn(2, 3, 5, 4, generator=torch.Generator().manual_seed(0))
uneven = partial(torch.nested.nested_tensor, [Q[0, 0], Q[1, 0, :3]])
CAUSAL = torch.ones(5, 5).tril()


class Own(Tensor):
    """A student's own kind of tensor."""


WAYS = {
    "a mask that is an object": lambda: F.scaled_dot_product_attention(
        Q, Q, Q, causal_upper_left(5, 5)
    ),
    "its table": lambda: causal_upper_left(5, 5)._materialize(),
    "a tensor of a class of one's own": lambda: Own(Q) + 0,
    "a view as such a class": lambda: Q.as_subclass(Own) + 0,
    "attention with a function for scores": lambda: flex_attention(
        Q, Q, Q, lambda s, b, h, i, j: s + i - j
    ),
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


X_SHORT = torch.ones(3, 5)


def of_somebody_else(x: Tensor) -> Tensor:
    """A kernel of a library of its own."""
    library = torch.library.Library("mine_alone", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x + x, "CompositeExplicitAutograd")
    return torch.ops.mine_alone.twice(x)


@pytest.mark.parametrize(
    ("do", "seen"),
    [
        pytest.param(
            lambda: X_SHORT.t().expand(2, 5, 3) + 1.0,
            lambda o: o.shapes == ((2, 5, 3),),
            id="shapes of new tensors, not of views",
        ),
        pytest.param(
            lambda: torch.softmax(X_SHORT, -1),
            lambda o: "_softmax" in o.kernels,
            id="torch.softmax by its name",
        ),
        pytest.param(
            lambda: X_SHORT.softmax(-1),
            lambda o: "_softmax" in o.kernels,
            id="Tensor.softmax by its name",
        ),
        pytest.param(
            lambda: nn.Softmax(-1)(X_SHORT),
            lambda o: "_softmax" in o.kernels,
            id="nn.Softmax by its name",
        ),
        pytest.param(
            lambda: of_somebody_else(X_SHORT),
            lambda o: "twice" not in o.kernels,
            id="no name of somebody else's",
        ),
        pytest.param(
            lambda: F.scaled_dot_product_attention(Q, Q, Q, causal_upper_left(5, 5)),
            lambda o: o.fused,
            id="fused attention with a mask that is an object",
        ),
    ],
)
def test_a_watch_sees(do: Callable[[], object], seen: Callable[[Operations], bool]) -> None:
    with OpMonitor() as monitor:
        do()
    assert seen(monitor.operations())


def test_a_tensor_is_made_as_before_once_nobody_watches() -> None:
    with OpMonitor():
        pass
    assert "__new__" not in vars(Tensor)
    assert Own(Q).shape == torch.Tensor(2, 3, 5, 4).shape


TEXT = torch.randint(7, (40_000,), generator=torch.Generator().manual_seed(1)).to(torch.uint8)


class Causal(nn.Module):
    """The mean of all tokens so far, in two layers; with dropout where asked."""

    def __init__(self, channels: int, p: float = 0.0) -> None:
        super().__init__()
        self.first = nn.Linear(channels, channels)
        self.second = nn.Linear(channels, channels, bias=False)
        self.drop = nn.Dropout(p)

    def forward(self, x: Tensor) -> Tensor:
        mean = self.drop(x).cumsum(1) / torch.arange(1, x.shape[1] + 1)[:, None]
        return self.second(self.first(mean))


NAMES: dict[str, object] = {"Causal": Causal}
Prepared = Callable[..., Trainer]


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """As in an attempt's process; many threads for small tensors wait for each other."""
    torch.set_num_threads(1)


@pytest.fixture
def prepare_learner() -> Prepared:
    """A learner whose model is ready."""

    def learner_for(target: str = "Causal", p: float = 0.0) -> Trainer:
        learner = Trainer()
        reply = learner.answer(
            NAMES, InitModel(Build(target, (C, p), training=True), 7, TEXT), "a.py"
        )
        assert reply == Reply()
        return learner

    return learner_for


def output(reply: Reply) -> Tensor:
    assert reply.raised is None
    tensor = reply.outputs[0].tensor
    assert tensor is not None
    return tensor


def losses(learner: Trainer, steps: int) -> list[float]:
    return [output(learner.answer(NAMES, TrainStep(), "a.py")).item() for _ in range(steps)]


def test_it_learns_and_what_it_writes_on_the_way_changes_nothing(prepare_learner: Prepared) -> None:
    learner = prepare_learner(p=0.5)
    early_losses = losses(learner, 3)
    learner.answer(NAMES, Write(TEXT[:2], 5), "a.py")
    assert [*early_losses, *losses(learner, 3)] == losses(prepare_learner(p=0.5), 6)
    later_losses = losses(learner, 20)
    assert sum(later_losses[-3:]) < sum(early_losses)  # it learns


def test_a_mask_and_ones_keep_their_values() -> None:
    parameters = nn.ParameterDict(
        {"mask": torch.ones(4, 4).tril(), "scale": torch.ones(3), "weight": torch.rand(4, 4)}
    )
    original = {name: value.clone() for name, value in parameters.items()}
    initialise(parameters)
    assert torch.equal(parameters["mask"], original["mask"])
    assert torch.equal(parameters["scale"], original["scale"])
    assert not torch.equal(parameters["weight"], original["weight"])


def test_it_writes_what_it_is_sure_of(prepare_learner: Prepared) -> None:
    learner = prepare_learner()
    model = learner.model
    with torch.no_grad():
        for block in model.blocks:
            for parameter in block.parameters():
                parameter.zero_()
        model.positions.weight.zero_()
        model.tokens.weight.copy_(torch.eye(7, C))
        # after each token comes the next one
        model.head.weight.copy_(100 * torch.eye(7, C).roll(1, 0))
    written = output(learner.answer(NAMES, Write(torch.tensor([4], dtype=torch.uint8), 20), "a.py"))
    assert written.tolist() == [(5 + i) % 7 for i in range(20)]


def test_adam_is_as_published() -> None:
    """Algorithm 1 of Kingma and Ba (2015), number by number; torch.optim's takes seconds to
    import.
    """
    torch.manual_seed(0)
    gradients = torch.randn(7, 3, dtype=torch.float64)
    weight = nn.Parameter(torch.ones(3, dtype=torch.float64))
    adam = Adam([weight], betas=(0.9, 0.99))
    for gradient in gradients:
        weight.grad = gradient.clone()
        adam.step(0.05)
        assert weight.grad is None
    for i in range(3):
        theta, m, v = 1.0, 0.0, 0.0
        for t, g in enumerate(gradients[:, i].tolist(), 1):
            m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
            theta -= 0.05 * (m / (1 - 0.9**t)) / (math.sqrt(v / (1 - 0.99**t)) + 1e-8)
        assert weight[i].item() == pytest.approx(theta, rel=1e-9)
