"""A language model that writes in the worker: with what its attention hands back, and with the whole text each time."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from manyheads.box.worker.answers import Reply
from manyheads.box.worker.language_model import LanguageModel, initialise
from manyheads.box.worker.messages import Build
from manyheads.box.worker.training import Trainer, all_weights, load_weights
from manyheads.box.worker.training_messages import Decode, InitModel, LoadWeights, ReadWeights, TrainPlan

TEXT = torch.randint(7, (200,), generator=torch.Generator().manual_seed(1)).to(torch.uint8)
PLAN = TrainPlan(vocabulary=7, n_layer=2, n_embd=8, block_size=16, batch=4, steps=20, rate=1e-2)
PROMPT = torch.tensor([4, 1, 2, 3, 0], dtype=torch.uint8)
SEEN: list[tuple[int, bool]] = []


class Mean(nn.Module):
    """The mean of all tokens so far; hands back their sum and their number."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.proj = nn.Linear(channels, channels, bias=False)

    def forward(self, x: Tensor, past: tuple[Tensor | float, int] | None = None) -> tuple[Tensor, object]:
        SEEN.append((x.shape[1], past is not None))
        total, count = past or (0.0, 0)
        sums = x.cumsum(1) + total
        counts = torch.arange(1, x.shape[1] + 1)[:, None] + count
        return self.proj(sums / counts), (sums[:, -1:], count + x.shape[1])


class Forgets(Mean):
    """Hands back something and does not look at it."""

    def forward(self, x: Tensor, past: object = None) -> tuple[Tensor, object]:
        return super().forward(x)


class Plain(Mean):
    """Returns its answers alone."""

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(x)[0]


class NotNumbers(Mean):
    """Answers with NaN as soon as it is handed something back."""

    def forward(self, x: Tensor, past: tuple[Tensor | float, int] | None = None) -> tuple[Tensor, object]:
        y, state = super().forward(x, past)
        return (y if past is None else y * float("nan")), state


NAMES: dict[str, object] = {"NotNumbers": NotNumbers, "Mean": Mean, "Forgets": Forgets, "Plain": Plain}


def trainer(target: str = "Mean") -> Trainer:
    torch.set_num_threads(1)
    made = Trainer()
    assert made.answer(NAMES, InitModel(Build(target, (8,), training=True), PLAN, TEXT, TEXT), "a.py") == Reply()
    SEEN.clear()
    return made


def decoded(made: Trainer, *, cached: bool, temperature: float = 1.0, count: int = 11) -> list[Tensor]:
    reply = made.answer(NAMES, Decode(PROMPT, count, 3, temperature, cached), "a.py")
    assert reply.raised is None
    return [output.tensor for output in reply.outputs if output.tensor is not None]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_with_a_right_cache_the_text_and_the_logits_are_those_without(temperature: float) -> None:
    made = trainer()
    ids, logits, ms = decoded(made, cached=True, temperature=temperature)
    others, whole, _ = decoded(made, cached=False, temperature=temperature)
    assert torch.equal(ids, others)
    assert torch.allclose(logits, whole, atol=1e-5)
    assert ids.shape == ms.shape == (11,)
    if temperature == 0:
        assert torch.equal(ids, logits.argmax(-1))


def test_each_token_is_fed_once_the_prompt_in_two_chunks() -> None:
    decoded(trainer(), cached=True, count=4)
    assert SEEN[:: PLAN.n_layer] == [(2, False), (3, True), (1, True), (1, True), (1, True)]


def test_without_the_cache_the_whole_text_is_fed_each_time() -> None:
    decoded(trainer(), cached=False, count=3)
    assert SEEN[:: PLAN.n_layer] == [(5, False), (6, False), (7, False)]


def test_a_cache_that_forgets_shows_in_the_logits() -> None:
    made = trainer("Forgets")
    assert (decoded(made, cached=True)[1][0] - decoded(made, cached=False)[1][0]).abs().max() > 1e-3


def test_what_is_not_a_number_is_written_on_and_shows_in_the_logits() -> None:
    ids, logits, _ = decoded(trainer("NotNumbers"), cached=True)
    assert logits.isnan().all()
    assert ((ids >= 0) & (ids < 7)).all()


@pytest.mark.parametrize("temperature", [1e-4, 1e-45, float("nan")])
def test_a_temperature_near_0_is_0(temperature: float) -> None:
    made = trainer()
    coldest = decoded(made, cached=True, temperature=0.0)[0]
    assert torch.equal(decoded(made, cached=True, temperature=temperature)[0], coldest)


def test_a_module_without_a_cache_is_read_as_before_and_cannot_be_given_one() -> None:
    ids, whole = (decoded(trainer(target), cached=False)[0] for target in ("Mean", "Plain"))
    assert torch.equal(ids, whole)
    made = trainer("Plain")
    ahead = decoded(made, cached=True)[1]  # nothing is handed back, so each chunk is answered alone
    assert not torch.allclose(ahead, decoded(made, cached=False)[1], atol=1e-3)


def test_weights_go_out_and_come_in_as_one_row() -> None:
    one, other = trainer(), trainer()
    assert isinstance(one.model, LanguageModel)
    initialise(other.model, 9)
    (row,) = (output.tensor for output in one.answer(NAMES, ReadWeights(), "a.py").outputs)
    assert row is not None
    assert not torch.equal(all_weights(other.model), row)
    assert other.answer(NAMES, LoadWeights(row), "a.py").outputs[0].tensor == 1.0
    for (name, weight), (other_name, same) in zip(
        sorted(one.model.named_parameters()), sorted(other.model.named_parameters()), strict=True
    ):
        assert name == other_name
        assert torch.equal(weight, same)


def test_a_row_of_another_model_changes_nothing() -> None:
    model = trainer().model
    before = all_weights(model)
    assert not load_weights(model, before[1:] + 1)
    assert torch.equal(all_weights(model), before)
