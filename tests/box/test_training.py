"""A language model that learns in the worker: its numbers against slower ways to the same ones."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from manyheads.box.worker.answers import Reply
from manyheads.box.worker.language_model import LanguageModel, initialise
from manyheads.box.worker.messages import Build
from manyheads.box.worker.training import CUTS, Adam, Trainer
from manyheads.box.worker.training_messages import Evaluate, Generate, InitModel, TrainPlan, TrainSteps

TEXT = torch.randint(7, (400,), generator=torch.Generator().manual_seed(1)).to(torch.uint8)
HELD_OUT = TEXT[200:]
PLAN = TrainPlan(vocabulary=7, n_layer=2, n_embd=8, block_size=16, batch=4, steps=20, rate=1e-2)


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


class Backwards(Causal):
    """The same layers, made in another order and with one more beside them."""

    def __init__(self, channels: int, p: float = 0.0) -> None:
        nn.Module.__init__(self)
        self.second = nn.Linear(channels, channels, bias=False)
        self.spare = nn.Linear(3, 3)
        self.first = nn.Linear(channels, channels)
        self.drop = nn.Dropout(p)


class Ahead(Causal):
    """Sees the token that it is to predict."""

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.first(torch.cat([x[:, 1:], x[:, -1:]], 1)))


class Strict(Causal):
    """Says no."""

    def forward(self, x: Tensor) -> Tensor:
        raise SystemExit("enough")


NAMES: dict[str, object] = {"Causal": Causal, "Backwards": Backwards, "Ahead": Ahead, "Strict": Strict}
Prepared = Callable[..., Trainer]


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """As in an attempt's process; many threads for small tensors wait for each other."""
    torch.set_num_threads(1)


@pytest.fixture
def prepared() -> Prepared:
    """A learner whose model is ready."""

    def prepared(target: str = "Causal", p: float = 0.0) -> Trainer:
        learner = Trainer()
        made = learner.answer(NAMES, InitModel(Build(target, (8, p), training=True), PLAN, TEXT, HELD_OUT), "a.py")
        assert made == Reply()
        return learner

    return prepared


def output(reply: Reply) -> Tensor:
    assert reply.raised is None
    tensor = reply.outputs[0].tensor
    assert tensor is not None
    return tensor


def losses(learner: Trainer, *steps: int) -> list[float]:
    return [loss for count in steps for loss in output(learner.answer(NAMES, TrainSteps(count), "a.py")).tolist()]


@pytest.mark.parametrize("p", [0.0, 0.5], ids=["without dropout", "with dropout"])
def test_steps_are_the_same_asked_for_one_by_one_or_at_once(prepared: Prepared, p: float) -> None:
    assert losses(prepared(p=p), 6) == losses(prepared(p=p), 1, 2, 3)


def test_an_examination_on_the_way_changes_nothing(prepared: Prepared) -> None:
    learner, other = prepared(p=0.5), prepared(p=0.5)
    first = losses(learner, 3)
    learner.answer(NAMES, Evaluate(), "a.py")
    learner.answer(NAMES, Generate(TEXT[:2], 5), "a.py")
    assert [*first, *losses(learner, 3)] == losses(other, 6)


def test_every_step_reads_other_windows_and_every_run_the_same(prepared: Prepared) -> None:
    def read() -> list[Tensor]:
        learner, seen = prepared(), []
        learner.model.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
        losses(learner, 3)
        return seen

    first, second = read(), read()
    assert len({tuple(window.tolist()) for batch in first for window in batch}) == 3 * PLAN.batch
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    windows = TEXT.long().unfold(0, PLAN.block_size, 1)
    assert all((windows == window).all(-1).any() for batch in first for window in batch)


def test_it_learns(prepared: Prepared) -> None:
    found = losses(prepared(), 20)
    assert sum(found[-5:]) < sum(found[:5])


def test_first_weights_hang_on_names_alone(prepared: Prepared) -> None:
    one, other = (dict(prepared(target).model.named_parameters()) for target in ("Causal", "Backwards"))
    assert one.keys() < other.keys()
    assert all(torch.equal(weight, other[name]) for name, weight in one.items())
    assert not torch.equal(one["blocks.0.attention.first.weight"], one["blocks.1.attention.first.weight"])
    assert not one["blocks.0.attention.first.bias"].any()


def test_a_mask_and_ones_keep_their_values() -> None:
    held = nn.ParameterDict({"mask": torch.ones(4, 4).tril(), "scale": torch.ones(3), "weight": torch.rand(4, 4)})
    before = {name: value.clone() for name, value in held.items()}
    initialise(held, 0)
    assert torch.equal(held["mask"], before["mask"])
    assert torch.equal(held["scale"], before["scale"])
    assert not torch.equal(held["weight"], before["weight"])


@pytest.mark.parametrize("target", ["Causal", "Ahead"])
def test_it_is_examined_one_token_at_a_time_on_the_past_alone(
    prepared: Prepared, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    windows = 9
    monkeypatch.setattr("manyheads.box.worker.training.WINDOWS", windows)
    learner = prepared(target)
    losses(learner, 5)
    model, slow = learner.model.eval(), []
    size = PLAN.block_size
    for start in torch.linspace(0, len(HELD_OUT) - size - 1, windows).long().tolist():
        for seen in range(size // CUTS, size + 1, size // CUTS):
            past, following = HELD_OUT[start : start + seen].long(), HELD_OUT[start + seen].long()
            slow.append(F.cross_entropy(model(past[None])[0, -1], following).item())
    found = output(learner.answer(NAMES, Evaluate(), "a.py")).item()
    assert found == pytest.approx(sum(slow) / len(slow), abs=1e-5)


def test_it_writes_what_it_is_sure_of(prepared: Prepared) -> None:
    learner = prepared()
    model = learner.model
    with torch.no_grad():
        for block in model.blocks:
            for parameter in block.parameters():
                parameter.zero_()
        model.positions.weight.zero_()
        model.tokens.weight.copy_(torch.eye(7, 8))
        model.head.weight.copy_(100 * torch.eye(7, 8).roll(1, 0))  # after each token comes the next one
    written = output(learner.answer(NAMES, Generate(torch.tensor([4], dtype=torch.uint8), 20), "a.py"))
    assert written.tolist() == [(5 + i) % 7 for i in range(20)]


def test_an_exception_is_an_answer_with_its_stage(prepared: Prepared) -> None:
    raised = prepared("Strict").answer(NAMES, TrainSteps(1), __file__).raised
    assert raised is not None
    assert (raised.type, raised.message, raised.stage) == ("SystemExit", "enough", "call")
    raised = Trainer().answer(NAMES, InitModel(Build("Causal", ("8",)), PLAN, TEXT, HELD_OUT), "a.py").raised
    assert raised is not None
    assert (raised.type, raised.stage) == ("TypeError", "build")
    raised = Trainer().answer(NAMES, TrainSteps(1), "a.py").raised
    assert raised is not None
    assert raised.type == "RuntimeError"


def test_adam_is_as_published() -> None:
    """Algorithm 1 of Kingma and Ba (2015), number by number; torch.optim's takes seconds to import."""
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


def test_a_frozen_or_unused_weight_stays() -> None:
    frozen, unused = nn.Parameter(torch.ones(2), requires_grad=False), nn.Parameter(torch.ones(2))
    Adam([frozen, unused]).step(1.0)
    assert torch.equal(frozen, torch.ones(2))
    assert torch.equal(unused, torch.ones(2))


def test_positions_end_with_the_text_that_is_given() -> None:
    model = LanguageModel([Causal(8)], vocabulary=7, channels=8, block_size=16)
    assert model(torch.zeros(2, 5, dtype=torch.long)).shape == (2, 5, 7)
