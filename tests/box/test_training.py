"""A language model that learns in the worker: its numbers against slower ways to the same ones."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from manyheads.box.worker.answers import Reply
from manyheads.box.worker.messages import Build, InitModel, TrainStep, Write
from manyheads.box.worker.training import Adam, C, Trainer, initialise

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


class Strict(Causal):
    """Says no."""

    def forward(self, x: Tensor) -> Tensor:
        raise SystemExit("enough")


NAMES: dict[str, object] = {"Causal": Causal, "Strict": Strict}
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
        made = learner.answer(NAMES, InitModel(Build(target, (C, p), training=True), 7, TEXT), "a.py")
        assert made == Reply()
        return learner

    return prepared


def output(reply: Reply) -> Tensor:
    assert reply.raised is None
    tensor = reply.outputs[0].tensor
    assert tensor is not None
    return tensor


def losses(learner: Trainer, steps: int) -> list[float]:
    return [output(learner.answer(NAMES, TrainStep(), "a.py")).item() for _ in range(steps)]


def test_it_learns_and_what_it_writes_on_the_way_changes_nothing(prepared: Prepared) -> None:
    learner = prepared(p=0.5)
    first = losses(learner, 3)
    learner.answer(NAMES, Write(TEXT[:2], 5), "a.py")
    assert [*first, *losses(learner, 3)] == losses(prepared(p=0.5), 6)
    found = losses(learner, 20)
    assert sum(found[-3:]) < sum(first)  # it learns


def test_a_mask_and_ones_keep_their_values() -> None:
    held = nn.ParameterDict({"mask": torch.ones(4, 4).tril(), "scale": torch.ones(3), "weight": torch.rand(4, 4)})
    before = {name: value.clone() for name, value in held.items()}
    initialise(held)
    assert torch.equal(held["mask"], before["mask"])
    assert torch.equal(held["scale"], before["scale"])
    assert not torch.equal(held["weight"], before["weight"])


def test_it_writes_what_it_is_sure_of(prepared: Prepared) -> None:
    learner = prepared()
    model = learner.model
    with torch.no_grad():
        for block in model.blocks:
            for parameter in block.parameters():
                parameter.zero_()
        model.positions.weight.zero_()
        model.tokens.weight.copy_(torch.eye(7, C))
        model.head.weight.copy_(100 * torch.eye(7, C).roll(1, 0))  # after each token comes the next one
    written = output(learner.answer(NAMES, Write(torch.tensor([4], dtype=torch.uint8), 20), "a.py"))
    assert written.tolist() == [(5 + i) % 7 for i in range(20)]


def test_an_exception_is_an_answer_with_its_stage(prepared: Prepared) -> None:
    raised = prepared("Strict").answer(NAMES, TrainStep(), __file__).raised
    assert (raised.type, raised.message, raised.stage) == ("SystemExit", "enough", "call")
    raised = Trainer().answer(NAMES, InitModel(Build("Causal", ("8",)), 7, TEXT), "a.py").raised
    assert (raised.type, raised.stage) == ("TypeError", "build")


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
