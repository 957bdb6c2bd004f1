"""A call followed operation by operation, watched for its kernels, and a model that learns."""

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
from manyheads.box.worker.trace_operations import trace
from manyheads.box.worker.training import Adam, C, Trainer, initialise

X = torch.arange(24.0).reshape(2, 3, 4)
HEAD = """
import torch, math, einops
from torch import nn
import torch.nn.functional as F
def half(x):
    return x / 2
"""


def follow(body: str, crop: tuple[int, ...] = (2, 2), times: int = 1, **call: Any) -> Traced:
    """Follow `f(x)`, whose body begins on line 8."""
    namespace: dict[str, object] = {}
    source = f"{HEAD}def f(x):\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n"
    exec(compile(source, "a.py", "exec"), namespace)
    return trace(namespace, TraceCall(Call("f", (X,), **call), crop, times), "a.py")


def steps_of(traced: Traced) -> list[Step]:
    return [traced.steps[index] for index in traced.order]


def names(traced: Traced) -> list[str]:
    return [step.name for step in steps_of(traced)]


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("x.view(2, 12)", "view, (2, 12), view"),
        ("x.mT", "mT, (2, 4, 3), view"),
        ("x[:, 0]", "index, (2, 4), view"),
        ("x[:, [0, 0, 1]]", "index, (2, 3, 4), copy"),
        ("x.reshape(-1)", "reshape, (24,), view"),
        ("x.contiguous()", "contiguous, (2, 3, 4), same"),
        ("x.unsqueeze(0).expand(5, 2, 3, 4)", "expand, (5, 2, 3, 4), view"),
        ("x @ torch.eye(4)", "matmul, (2, 3, 4), new"),
        ("torch.einsum('btc,bsc->bts', x, x)", "einsum, (2, 3, 3), new"),
        ("einops.rearrange(x, 'b t c -> (t b) c')", "rearrange, (6, 4), copy"),
        ("F.dropout(x, 0.5, False)", "dropout, (2, 3, 4), same"),
        ("F.scaled_dot_product_attention(x, x, x)", "scaled_dot_product_attention, (2, 3, 4), new"),
        ("torch.cat([x, x])", "cat, (4, 3, 4), copy"),
        ("1 / x", "div, (2, 3, 4), new"),
        ("x == x", "eq, (2, 3, 4), new"),
        ("nn.Linear(4, 5)(x)", "Linear, (2, 3, 5), new"),
        ("nn.MultiheadAttention(4, 2)(x, x, x)[0]", "MultiheadAttention, (2, 3, 4), new"),
    ],
)
def test_each_call_of_a_line_is_one_step(code: str, told: str) -> None:
    step = steps_of(follow(f"return {code}"))[-1]
    assert f"{step.name}, {step.outputs[0].shape}, {step.storage}" == told
    assert step.lines == (8,)


STEPS_SEEN: dict[str, tuple[str, Callable[[Traced], object], object]] = {
    "a layer is given what it was called with, not what it holds": (
        "return nn.Linear(4, 5)(x)",
        lambda t: [i.shape for i in steps_of(t)[-1].inputs],
        [(2, 3, 4)],
    ),
    "operations that write into a tensor": (
        "x += 1\nx.masked_fill_(x > 3, 0)\nx[:, 0] = 0\ntorch.add(x, 1, out=x)\nreturn x",
        lambda t: [s.storage for s in steps_of(t) if s.name != "gt"],
        ["in place"] * 4,
    ),
    "questions that give no tensor are no steps": (
        "return [x.shape, len(x), x.dim(), x.is_contiguous(), str(x), x.tolist(), x.sum().item()]",
        names,
        ["sum"],
    ),
    "parts are counted and unpacking is a step": (
        "a, b = x.split(2, -1)\nc, d = x\nreturn c",
        lambda t: [(s.name, s.output_count, s.outputs[0].shape) for s in steps_of(t)],
        [("split", 2, (2, 3, 2)), ("unpack", 2, (3, 4))],
    ),
    "a helper stands below the line that called it": (
        "y = half(x)\nreturn half(y)",
        lambda t: [s.lines for s in steps_of(t)],
        [(8, 6), (9, 6)],
    ),
    "inside vmap shapes are those of one example": (
        "return torch.vmap(lambda t: t @ t.mT)(x)",
        lambda t: [(s.name, s.outputs[0].shape, s.storage, s.crops) for s in steps_of(t)],
        [("mT", (4, 3), "", ()), ("matmul", (3, 3), "", ())],
    ),
    "an exception leaves the steps before it": (
        "z = x.mT.view(2, 12)\nreturn z @ z",
        lambda t: [(s.name, s.raised, s.lines, s.inputs[0].contiguous) for s in steps_of(t)],
        [("mT", False, (8,), True), ("view", True, (8,), False)],
    ),
    "a loop is a few steps in a long order": (
        "for _ in range(500):\n    x = x.mT + 1\nreturn x",
        lambda t: (len(t.order), len(t.steps)),
        (1000, 4),
    ),
    "numbers do not make steps differ": (
        "return torch.stack([x[0, 0, c] * 2 for c in range(4)])",
        lambda t: (len(t.order), len(t.steps)),
        (9, 3),
    ),
    "corners are what the numbers were then": (
        "y = x * 1\ny += 100\nreturn y",
        lambda t: [s.crops[0][0, 0].item() for s in steps_of(t)],
        [0.0, 100.0],
    ),
    "corners are kept of the first times": (
        "for n in range(9):\n    x = x + 1\nreturn x",
        lambda t: [crop[0, 0].item() for crop in t.steps[0].crops],
        [1.0, 2.0],
    ),
    "numbers beside tensors are noted": (
        "return x / math.sqrt(4.0) + torch.tensor(7.0)",
        lambda t: [s.numbers or s.outputs[0].value or s.inputs[1].value for s in steps_of(t)],
        [(2.0,), (7.0,), 7.0],
    ),
    "endless variety is cut and counted": (
        f"for n in range({STEPS + 7}):\n    y = torch.zeros(n)\nreturn y",
        lambda t: (len(t.steps), t.dropped),
        (STEPS, 7),
    ),
    "endless length is cut and counted": (
        f"for n in range({ORDER + 9}):\n    y = x.mT\nreturn y",
        lambda t: (len(t.order), t.dropped),
        (ORDER, 9),
    ),
    "a tensor that lies about itself does not stop the call": (
        """
        class Odd(torch.Tensor):
            @property
            def shape(self):
                raise RuntimeError("no")
        return (x.as_subclass(Odd) + 1).as_subclass(torch.Tensor)
        """,
        lambda t: (t.reply.raised, t.reply.outputs[0].shape),
        (None, (2, 3, 4)),
    ),
}


@pytest.mark.parametrize(("body", "seen", "expected"), STEPS_SEEN.values(), ids=STEPS_SEEN)
def test_what_is_seen(body: str, seen: Callable[[Traced], object], expected: object) -> None:
    assert seen(follow(body, times=2)) == expected


def test_no_more_corners_are_kept_than_agreed() -> None:
    loop = f"for n in range({CROPS + 9}):\n    x = x + 1\nreturn x"
    assert len(follow(loop, crop=(1,), times=999).steps[0].crops) == CROPS


@pytest.mark.parametrize(
    ("code", "slices"),
    [
        ("x[..., 1:3]", [Slice(2, 1, 3)]),
        ("x.mT[:, 2:]", [Slice(1, 2, 4)]),
        ("x[:, 1:].narrow(1, 1, 1)", [Slice(1, 1, 2)]),
        ("x[:, :2, :2]", []),
        ("x[..., ::2]", []),
        ("x[:, 0]", []),
        ("x[1:].as_strided((1, 1, 4), (12, 4, 1), 0)", []),
        ("x[..., 4:]", []),
        ("x[:, [0, 1]]", []),
        ("[x[n % 2:n % 2 + 1] for n in range(99)]", [Slice(0, n % 2, n % 2 + 1) for n in range(8)]),
    ],
)
def test_each_slice_along_one_axis_is_kept_of_the_first_rounds(
    code: str, slices: list[Slice]
) -> None:
    assert list(steps_of(follow(f"return {code}"))[-1].slices) == slices
    assert len(slices) <= SLICES


def test_following_changes_no_answer_and_shows_nothing_of_a_check() -> None:
    namespace: dict[str, object] = {"F": F, "torch": torch}
    body = "return F.scaled_dot_product_attention(x, x, x, dropout_p=0.5) * torch.rand_like(x)"
    exec(f"def f(x):\n    {body}\n", namespace)
    call = Call("f", (X,), seed=5, around=PlantedDifference(8.0, 0.3))
    traced = trace(namespace, TraceCall(call, (2, 2), 3), "<string>")
    executed = execute(namespace, call, "a.py").outputs[0].tensor
    assert torch.equal(traced.reply.outputs[0].tensor, executed)
    assert names(traced) == ["scaled_dot_product_attention", "rand_like", "mul"]


def watched(function: Callable[..., object], *arguments: object, watch: bool = True) -> Reply:
    return execute({"f": function}, Call("f", arguments, watch=watch), "")


@pytest.mark.parametrize(
    "take",
    [
        pytest.param(lambda x: x.cpu(), id="cpu()"),
        pytest.param(lambda x: x.t().to("cpu", torch.float32).t(), id="to(), turned"),
        pytest.param(lambda x: torch.full((3, 4), 7.0).copy_(x), id="a copy into another tensor"),
        pytest.param(lambda x: torch.tensor(x.tolist()), id="one by one"),
    ],
)
def test_a_copy_of_a_tensor_of_the_meta_device_is_zeros(take: Callable[[Tensor], Tensor]) -> None:
    reply = watched(take, torch.empty(3, 4, dtype=torch.float64, device="meta"))
    assert torch.equal(reply.outputs[0].tensor.float(), torch.zeros(3, 4))
    assert not reply.operations.mixed


def test_two_devices_in_one_operation_leave_no_rubbish() -> None:
    reply = watched(F.linear, torch.ones(2, 3), torch.ones(4, 3, device="meta"))
    assert reply.operations.mixed
    (output,) = reply.outputs
    assert output.device == "meta" or not output.tensor.any()


def test_without_a_watch_nothing_is_copied_from_the_meta_device() -> None:
    reply = watched(lambda x: x.cpu(), torch.ones(3, device="meta"), watch=False)
    assert reply.raised.message.startswith("Cannot copy out of meta")


Q = torch.randn(2, 3, 5, 4, generator=torch.Generator().manual_seed(0))
uneven = partial(torch.nested.nested_tensor, [Q[0, 0], Q[1, 0, :3]])
CAUSAL = torch.ones(5, 5).tril()


class OwnTensor(Tensor):
    """A student's own kind of tensor."""


WAYS = {
    "a mask that is an object": lambda: F.scaled_dot_product_attention(
        Q, Q, Q, causal_upper_left(5, 5)
    ),
    "its table": lambda: causal_upper_left(5, 5)._materialize(),
    "a tensor of a class of one's own": lambda: OwnTensor(Q) + 0,
    "a view as such a class": lambda: Q.as_subclass(OwnTensor) + 0,
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
def test_a_watched_call_returns_what_it_returns_unwatched(monkeypatch, way):
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")  # as in every box
    plain, seen = (watched(way, watch=watch).outputs[0].tensor for watch in (False, True))
    assert plain is not None
    assert torch.equal(plain, seen)
    assert "__new__" not in vars(Tensor), "a tensor is made as before"


def call_own_kernel(x: Tensor) -> Tensor:
    library = torch.library.Library("mine_alone", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x + x, "CompositeExplicitAutograd")
    return torch.ops.mine_alone.twice(x)


OPERATIONS_SEEN: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Operations], bool]]] = {
    "the shape of a new tensor, not of a view": (
        lambda x: x.t().expand(2, 5, 3) + 1.0,
        lambda o: o.shapes == ((2, 5, 3),),
    ),
    "Tensor.softmax by its name": (lambda x: x.softmax(-1), lambda o: "_softmax" in o.kernels),
    "nn.Softmax by its name": (lambda x: nn.Softmax(-1)(x), lambda o: "_softmax" in o.kernels),
    "no name of a kernel that an attempt defines": (
        call_own_kernel,
        lambda o: o.made == (15,) and "twice" not in o.kernels,
    ),
    "fused attention with a mask that is an object": (
        lambda x: F.scaled_dot_product_attention(Q, Q, Q, causal_upper_left(5, 5)),
        lambda o: o.fused,
    ),
}


@pytest.mark.parametrize(("function", "seen"), OPERATIONS_SEEN.values(), ids=OPERATIONS_SEEN)
def test_a_watch_sees(function, seen) -> None:
    assert seen(watched(function, torch.ones(3, 5)).operations)


TEXT = torch.randint(7, (40_000,), generator=torch.Generator().manual_seed(1)).to(torch.uint8)


class Causal(nn.Module):
    """The mean of all tokens so far, in two layers, with dropout."""

    def __init__(self, channels: int, p: float = 0.0) -> None:
        super().__init__()
        self.first = nn.Linear(channels, channels)
        self.second = nn.Linear(channels, channels, bias=False)
        self.drop = nn.Dropout(p)

    def forward(self, x: Tensor) -> Tensor:
        mean = self.drop(x).cumsum(1) / torch.arange(1, x.shape[1] + 1)[:, None]
        return self.second(self.first(mean))


def answer(learner: Trainer, message: InitModel | TrainStep | Write) -> Reply:
    torch.set_num_threads(1)  # as in an attempt's process; threads for small tensors wait
    reply = learner.answer({"Causal": Causal}, message, "a.py")
    assert reply.raised is None
    return reply


def prepare_learner(dropout: float) -> Trainer:
    learner = Trainer()
    build = Build("Causal", (C, dropout), training=True)
    assert answer(learner, InitModel(build, 7, TEXT)) == Reply()
    return learner


def losses(learner: Trainer, steps: int) -> list[float]:
    return [answer(learner, TrainStep()).outputs[0].tensor.item() for _ in range(steps)]


def test_it_learns_and_what_it_writes_on_the_way_changes_nothing() -> None:
    learner = prepare_learner(0.5)
    early_losses = losses(learner, 3)
    answer(learner, Write(TEXT[:2], 5))
    assert [*early_losses, *losses(learner, 3)] == losses(prepare_learner(0.5), 6)
    assert sum(losses(learner, 20)[-3:]) < sum(early_losses)


def test_a_mask_and_ones_keep_their_values() -> None:
    parameters = nn.ParameterDict(
        {"mask": torch.ones(4, 4).tril(), "scale": torch.ones(3), "weight": torch.rand(4, 4)}
    )
    original = {name: value.clone() for name, value in parameters.items()}
    initialise(parameters)
    kept = {name for name in original if torch.equal(parameters[name], original[name])}
    assert kept == {"mask", "scale"}


def test_it_writes_what_it_is_sure_of() -> None:
    learner = prepare_learner(0.0)
    model = learner.model
    with torch.no_grad():
        for parameter in (*model.blocks.parameters(), model.positions.weight):
            parameter.zero_()
        model.tokens.weight.copy_(torch.eye(7, C))
        # after each token comes the next one
        model.head.weight.copy_(100 * torch.eye(7, C).roll(1, 0))
    written = answer(learner, Write(torch.tensor([4], dtype=torch.uint8), 20)).outputs[0].tensor
    assert written.tolist() == [(5 + i) % 7 for i in range(20)]


def test_adam_is_as_published() -> None:
    """The optimizer follows algorithm 1 of Kingma and Ba (2015), number by number."""
    # torch.optim's takes seconds to import
    torch.manual_seed(0)
    gradients = torch.randn(7, 3, dtype=torch.float64)
    weight = nn.Parameter(torch.ones(3, dtype=torch.float64))
    adam = Adam([weight], betas=(0.9, 0.99))
    for gradient in gradients:
        weight.grad = gradient.clone()
        adam.step(0.05)
        assert weight.grad is None
    theta, m, v = (torch.full((3,), start, dtype=torch.float64) for start in (1.0, 0.0, 0.0))
    for t, g in enumerate(gradients, 1):
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        theta -= 0.05 * (m / (1 - 0.9**t)) / ((v / (1 - 0.99**t)).sqrt() + 1e-8)
    torch.testing.assert_close(weight.detach(), theta, rtol=1e-9, atol=0.0)
