"""The worker traces a call step by step, records its operations, and trains a small model."""

import sys
import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

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
    TensorInfo,
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


def trace_body(body: str, crop: tuple[int, ...] = (2, 2), times: int = 1, **call: Any) -> Traced:
    """Trace a call `f(X)`. The body of `f` begins on line 8 of the attempt."""
    namespace: dict[str, object] = {}
    source = f"{HEAD}def f(x):\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n"
    exec(compile(source, "a.py", "exec"), namespace)
    return trace(namespace, TraceCall(Call("f", (X,), **call), crop, times), "a.py")


def steps_of(traced: Traced) -> list[Step]:
    """Return all steps of a call in order, repeated ones too."""
    return [traced.steps[index] for index in traced.order]


def step_names(traced: Traced) -> list[str]:
    return [step.name for step in steps_of(traced)]


@pytest.mark.parametrize(
    ("code", "description"),
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
def test_each_operation_is_one_step(code, description):
    step = steps_of(trace_body(f"return {code}"))[-1]
    assert f"{step.name}, {step.outputs[0].shape}, {step.storage}" == description
    assert step.lines == (8,)


def describe(step: Step) -> str:
    """Return a step in one line: its lines, name, arguments, "->", result, storage and corners."""

    def sizes(tensors: Sequence[TensorInfo]) -> list[str]:
        return ["strided " * (not t.contiguous) + str(t.value or t.shape) for t in tensors]

    result = "raised" if step.raised else f"{step.output_count} {' '.join(sizes(step.outputs))}"
    corners = [f"{crop.flatten()[0]:g}" for crop in step.crops]
    lines = " from ".join(map(str, reversed(step.lines)))
    arguments = " ".join([*sizes(step.inputs), *map(str, step.numbers)])
    words = [lines, step.name, arguments, "->", result, step.storage, *corners]
    return " ".join(filter(None, words))


# list comprehensions have no frame since Python 3.12
IN_COMPREHENSION = "" if sys.version_info >= (3, 12) else "from 8 "

# The body of f(x), and one line for each distinct step, as `describe` writes it.
TRACED_STEPS = {
    "a layer is given its arguments, not what it holds": (
        "return nn.LayerNorm(4)(x)",
        """
        8 LayerNorm -> 1 (4,) new 0
        8 LayerNorm (2, 3, 4) -> 1 (2, 3, 4) new -1.34164
        """,
    ),
    "operations that write into a tensor": (
        "x += 1\nx[:, 0] = 0\ntorch.add(x, 1, out=x)\nreturn x",
        """
        8 add_ (2, 3, 4) 1.0 -> 1 (2, 3, 4) in place 1
        9 index = (2, 3, 4) 0.0 -> 1 (2, 3, 4) in place 0
        10 add (2, 3, 4) (2, 3, 4) 1.0 -> 1 (2, 3, 4) in place 1
        """,
    ),
    "questions that give no tensor are no steps": (
        "return [x.shape, len(x), x.dim(), x.is_contiguous(), str(x), x.tolist(), x.sum().item()]",
        "8 sum (2, 3, 4) -> 1 276.0 new 276",
    ),
    "parts are counted and unpacking is a step": (
        "a, b = x.split(2, -1)\nc, d = x\nreturn c",
        """
        8 split (2, 3, 4) 2.0 -> 2 strided (2, 3, 2) strided (2, 3, 2) view 0
        9 unpack (2, 3, 4) 0.0 -> 2 (3, 4) (3, 4) view 0
        """,
    ),
    "a helper stands below the line that called it": (
        "y = half(x)\nreturn half(y)",
        """
        6 from 8 div (2, 3, 4) 2.0 -> 1 (2, 3, 4) new 0
        6 from 9 div (2, 3, 4) 2.0 -> 1 (2, 3, 4) new 0
        """,
    ),
    "inside vmap shapes are those of one example, without corners": (
        "return torch.vmap(lambda t: t @ t.mT)(x)",
        """
        8 from 8 mT (3, 4) -> 1 strided (4, 3)
        8 from 8 matmul (3, 4) strided (4, 3) -> 1 (3, 3)
        """,
    ),
    "an exception leaves the steps before it": (
        "z = x.mT.view(2, 12)\nreturn z @ z",
        """
        8 mT (2, 3, 4) -> 1 strided (2, 4, 3) view 0
        8 view strided (2, 4, 3) 2.0 12.0 -> raised
        """,
    ),
    "corners are the numbers at the time of the step": (
        "y = x * 1\ny += 100\nreturn y",
        """
        8 mul (2, 3, 4) 1.0 -> 1 (2, 3, 4) new 0
        9 add_ (2, 3, 4) 100.0 -> 1 (2, 3, 4) in place 100
        """,
    ),
    "only the first rounds have corners": (
        "for n in range(9):\n    x = x + 1\nreturn x",
        "9 add (2, 3, 4) 1.0 -> 1 (2, 3, 4) new 1 2",
    ),
    "numbers beside tensors are noted": (
        "return x / math.sqrt(4.0) + torch.tensor(7.0)",
        """
        8 div (2, 3, 4) 2.0 -> 1 (2, 3, 4) new 0
        8 tensor 7.0 -> 1 7.0 new 7
        8 add (2, 3, 4) 7.0 -> 1 (2, 3, 4) new 7
        """,
    ),
    "numbers do not make steps differ": (
        "return torch.stack([x[0, 0, c] * 2 for c in range(4)])",
        f"""
        8 {IN_COMPREHENSION}index (2, 3, 4) -> 1 () view 0 1
        8 {IN_COMPREHENSION}mul () 2.0 -> 1 () new 0 2
        8 stack () 2.0 4.0 6.0 -> 1 (4,) copy 0
        """,
    ),
    "a tensor that lies about itself does not stop the call": (
        """
        class Odd(torch.Tensor):
            @property
            def shape(self):
                raise RuntimeError("no")
        return (x.as_subclass(Odd) + 1).as_subclass(torch.Tensor)
        """,
        "",
    ),
}


@pytest.mark.parametrize(("body", "steps"), TRACED_STEPS.values(), ids=TRACED_STEPS)
def test_these_steps_are_traced(body, steps):
    traced = trace_body(body, times=2)
    assert "\n".join(map(describe, traced.steps)) == textwrap.dedent(steps).strip()
    assert (traced.reply.raised is not None) == steps.strip().endswith("raised")


@pytest.mark.parametrize(
    ("body", "counts"),  # counts: distinct steps, steps in order, dropped steps
    [
        ("for _ in range(500):\n    x = x.mT + 1\nreturn x", (4, 1000, 0)),
        (f"for n in range({STEPS + 7}):\n    y = torch.zeros(n)\nreturn y", (STEPS, STEPS, 7)),
        (f"for n in range({ORDER + 9}):\n    y = x.mT\nreturn y", (1, ORDER, 9)),
    ],
    ids=["a loop of equal steps", "too many different steps", "too many equal steps"],
)
def test_equal_steps_are_merged_and_excess_steps_are_counted(body, counts):
    traced = trace_body(body)
    assert (len(traced.steps), len(traced.order), traced.dropped) == counts


def test_the_number_of_crops_of_a_step_is_limited():
    loop = f"for n in range({CROPS + 9}):\n    x = x + 1\nreturn x"
    assert len(trace_body(loop, crop=(1,), times=999).steps[0].crops) == CROPS


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
def test_slices_along_one_axis_are_recorded_in_the_first_rounds(code, slices):
    assert list(steps_of(trace_body(f"return {code}"))[-1].slices) == slices
    assert len(slices) <= SLICES


def test_tracing_changes_no_answer_and_hides_planted_operations():
    namespace: dict[str, object] = {"F": F, "torch": torch}
    body = "return F.scaled_dot_product_attention(x, x, x, dropout_p=0.5) * torch.rand_like(x)"
    exec(f"def f(x):\n    {body}\n", namespace)
    call = Call("f", (X,), seed=5, around=PlantedDifference(8.0, 0.3))
    traced = trace(namespace, TraceCall(call, (2, 2), 3), "<string>")
    executed = execute(namespace, call, "a.py").outputs[0].tensor
    assert torch.equal(traced.reply.outputs[0].tensor, executed)
    assert step_names(traced) == ["scaled_dot_product_attention", "rand_like", "mul"]


def run_watched(function: Callable[..., object], *arguments: object, watch: bool = True) -> Reply:
    return execute({"f": function}, Call("f", arguments, watch=watch), "")


@pytest.mark.parametrize(
    "copy",
    [
        pytest.param(lambda x: x.cpu(), id="cpu()"),
        pytest.param(lambda x: x.t().to("cpu", torch.float32).t(), id="to(), turned"),
        pytest.param(lambda x: torch.full((3, 4), 7.0).copy_(x), id="a copy into another tensor"),
        pytest.param(lambda x: torch.tensor(x.tolist()), id="one by one"),
    ],
)
def test_a_copy_from_the_meta_device_is_zeros(copy):
    reply = run_watched(copy, torch.empty(3, 4, dtype=torch.float64, device="meta"))
    assert torch.equal(reply.outputs[0].tensor.float(), torch.zeros(3, 4))
    assert not reply.operations.mixed


def test_mixed_devices_are_reported_without_uninitialised_numbers():
    reply = run_watched(F.linear, torch.ones(2, 3), torch.ones(4, 3, device="meta"))
    assert reply.operations.mixed
    (output,) = reply.outputs
    assert output.device == "meta" or not output.tensor.any()


def test_an_unwatched_copy_from_the_meta_device_raises():
    reply = run_watched(lambda x: x.cpu(), torch.ones(3, device="meta"), watch=False)
    assert reply.raised.message.startswith("Cannot copy out of meta")


Q = torch.randn(2, 3, 5, 4, generator=torch.Generator().manual_seed(0))
uneven = partial(torch.nested.nested_tensor, [Q[0, 0], Q[1, 0, :3]])
CAUSAL = torch.ones(5, 5).tril()


class OwnTensor(Tensor):
    """A subclass of Tensor, defined by a student."""


# imported only when called, because the import takes two seconds
def causal_bias() -> Tensor:
    from torch.nn.attention.bias import causal_upper_left

    return causal_upper_left(5, 5)


def attend_flexibly(*arguments, **options) -> Tensor:
    from torch.nn.attention.flex_attention import flex_attention

    return flex_attention(*arguments, **options)


COMPUTATIONS = {
    "a mask that is an object": lambda: F.scaled_dot_product_attention(Q, Q, Q, causal_bias()),
    "the table of such a mask": lambda: causal_bias()._materialize(),
    "a tensor of a subclass": lambda: OwnTensor(Q) + 0,
    "a view as a subclass": lambda: Q.as_subclass(OwnTensor) + 0,
    "attention with a function for scores": lambda: attend_flexibly(
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


@pytest.mark.parametrize("compute", COMPUTATIONS.values(), ids=COMPUTATIONS)
def test_watching_a_call_does_not_change_its_output(monkeypatch, compute):
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")  # as in every box
    unwatched, watched = (
        run_watched(compute, watch=watch).outputs[0].tensor for watch in (False, True)
    )
    assert unwatched is not None
    assert torch.equal(unwatched, watched)
    assert "__new__" not in vars(Tensor), "Tensor has its original __new__ again"


def call_own_kernel(x: Tensor) -> Tensor:
    library = torch.library.Library("mine_alone", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x + x, "CompositeExplicitAutograd")
    return torch.ops.mine_alone.twice(x)


RECORDED_OPERATIONS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Operations], bool]]] = {
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
        lambda x: F.scaled_dot_product_attention(Q, Q, Q, causal_bias()),
        lambda o: o.fused,
    ),
}


@pytest.mark.parametrize(
    ("function", "is_recorded"), RECORDED_OPERATIONS.values(), ids=RECORDED_OPERATIONS
)
def test_a_watched_call_records_its_operations(function, is_recorded):
    assert is_recorded(run_watched(function, torch.ones(3, 5)).operations)


TEXT = torch.randint(7, (40_000,), generator=torch.Generator().manual_seed(1)).to(torch.uint8)


class Causal(nn.Module):
    """A module that averages all tokens so far, with dropout and two linear layers."""

    def __init__(self, channels: int, p: float = 0.0) -> None:
        super().__init__()
        self.first = nn.Linear(channels, channels)
        self.second = nn.Linear(channels, channels, bias=False)
        self.drop = nn.Dropout(p)

    def forward(self, x: Tensor) -> Tensor:
        mean = self.drop(x).cumsum(1) / torch.arange(1, x.shape[1] + 1)[:, None]
        return self.second(self.first(mean))


def trainer_reply(trainer: Trainer, message: InitModel | TrainStep | Write) -> Reply:
    torch.set_num_threads(1)  # as in an attempt's process: tensors are too small for threads
    reply = trainer.answer({"Causal": Causal}, message, "a.py")
    assert reply.raised is None
    return reply


def prepare_trainer(dropout: float) -> Trainer:
    """Return a trainer with a newly initialised model that uses the module `Causal`."""
    trainer = Trainer()
    build = Build("Causal", (C, dropout), training=True)
    assert trainer_reply(trainer, InitModel(build, 7, TEXT)) == Reply()
    return trainer


def losses(trainer: Trainer, steps: int) -> list[float]:
    return [trainer_reply(trainer, TrainStep()).outputs[0].tensor.item() for _ in range(steps)]


def test_training_lowers_the_loss_and_is_not_changed_by_writing():
    trainer = prepare_trainer(0.5)
    early_losses = losses(trainer, 3)
    trainer_reply(trainer, Write(TEXT[:2], 5))
    assert [*early_losses, *losses(trainer, 3)] == losses(prepare_trainer(0.5), 6)
    assert sum(losses(trainer, 20)[-3:]) < sum(early_losses)


def test_initialisation_keeps_masks_and_ones():
    parameters = nn.ParameterDict(
        {"mask": torch.ones(4, 4).tril(), "scale": torch.ones(3), "weight": torch.rand(4, 4)}
    )
    original = {name: value.clone() for name, value in parameters.items()}
    initialise(parameters)
    unchanged = {name for name in original if torch.equal(parameters[name], original[name])}
    assert unchanged == {"mask", "scale"}


def test_a_confident_model_writes_the_expected_tokens():
    trainer = prepare_trainer(0.0)
    model = trainer.model
    with torch.no_grad():
        for parameter in (*model.blocks.parameters(), model.positions.weight):
            parameter.zero_()
        model.tokens.weight.copy_(torch.eye(7, C))
        # the model predicts that the next token is the last one plus 1
        model.head.weight.copy_(100 * torch.eye(7, C).roll(1, 0))
    tokens = (
        trainer_reply(trainer, Write(torch.tensor([4], dtype=torch.uint8), 20)).outputs[0].tensor
    )
    assert tokens.tolist() == [(5 + i) % 7 for i in range(20)]


def test_adam_gives_the_same_weights_as_torch():
    """The worker implements Adam itself, because the import of torch.optim takes seconds."""
    actual, of_torch = (nn.Parameter(torch.ones(3, dtype=torch.float64)) for _ in range(2))
    adam = Adam([actual], betas=(0.9, 0.99))
    expected = torch.optim.Adam([of_torch], lr=0.05, betas=(0.9, 0.99))
    for gradient in torch.randn(7, 3, dtype=torch.float64):
        actual.grad, of_torch.grad = gradient.clone(), gradient
        adam.step(0.05)
        expected.step()
        assert actual.grad is None
    torch.testing.assert_close(actual, of_torch, rtol=1e-9, atol=0.0)
