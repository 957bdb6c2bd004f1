"""Train a small language model with the attempt's attention, a few steps for each message; the model stays in between.

Only for display (`course train`), never for a verdict: student code in this process can forge any loss.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .answers import Output, Reply, dtype_name
from .execute import raised_by
from .language_model import LanguageModel, initialise
from .modules import build_module
from .training_messages import (
    Evaluate,
    Generate,
    InitModel,
    Training,
    TrainPlan,
    TrainSteps,
)

WARM_UP, LAST_RATE = 20, 0.1  # steps of warm-up; the final rate as a share of the highest
WINDOWS, CUTS = 128, 8  # held-out windows, and the number of context lengths at which each is evaluated
TEMPERATURE = 0.8  # below 1: prefer the more probable characters
_STRIDE = 1_000_003  # the distance between the step seeds of two runs


class Trainer:
    """Answers InitModel, then all else in any order."""

    def __init__(self) -> None:
        self._study: _Study | None = None

    def answer(self, namespace: Mapping[str, object], message: Training, source: str) -> Reply:
        """Answer one message. Exceptions of the attempt are in the reply. `source`: the attempt's file name."""
        stage = "build" if isinstance(message, InitModel) else "call"
        try:
            with torch.enable_grad():
                return Reply(outputs=self._outputs(namespace, message))
        except BaseException as error:  # a student's SystemExit is an answer too
            return Reply(raised=raised_by(error, stage, source))

    @property
    def model(self) -> LanguageModel:
        """The current model."""
        return self._ready().model

    def _outputs(self, namespace: Mapping[str, object], message: Training) -> tuple[Output, ...]:
        if isinstance(message, InitModel):
            self._study = _Study(namespace, message)
            return ()
        if isinstance(message, TrainSteps):
            return (_output(torch.tensor([self._ready().step() for _ in range(message.steps)])),)
        if isinstance(message, Evaluate):
            return (_output(self._ready().evaluate()),)
        return (_output(self._ready().generate(message)),)

    def _ready(self) -> _Study:
        if self._study is None:
            raise RuntimeError("a language model is to be built first")
        return self._study


class _Study:
    """One model and its optimiser."""

    def __init__(self, namespace: Mapping[str, object], message: InitModel) -> None:
        plan = self._plan = message.plan
        torch.default_generator.manual_seed(plan.draws)
        attentions = [build_module(namespace, message.attention).module for _ in range(plan.n_layer)]
        self.model = LanguageModel(attentions, plan.vocabulary, plan.n_embd, plan.block_size)
        initialise(self.model, plan.draws)
        self._optimiser = Adam(self.model.parameters())
        size = plan.block_size + 1  # one more than the context: the token to predict
        self._text = message.text.long().unfold(0, size, 1)  # (N, T + 1): a window from every token
        held_out = message.held_out.long().unfold(0, size, 1)
        self._held_out = held_out[torch.linspace(0, len(held_out) - 1, WINDOWS).long()]
        self._step = 0

    def step(self) -> float:
        """Train on one batch. Returns the loss before the step."""
        self.model.train()
        seed = self._plan.seed * _STRIDE + self._step
        generator = torch.Generator().manual_seed(seed)
        torch.default_generator.manual_seed(seed)  # for dropout
        windows = self._text[torch.randint(len(self._text), (self._plan.batch,), generator=generator)]
        loss = F.cross_entropy(self.model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())
        loss.backward()
        self._optimiser.step(_rate(self._plan, self._step))
        self._step += 1
        return loss.item()

    @torch.no_grad()
    def evaluate(self) -> Tensor:
        """Return the loss of the last token only, so that the model cannot see a later one."""
        self.model.eval()
        losses = []
        for cut in range(1, CUTS + 1):
            seen = self._plan.block_size * cut // CUTS
            losses.append(F.cross_entropy(self.model(self._held_out[:, :seen])[:, -1], self._held_out[:, seen]))
        return torch.stack(losses).mean()

    @torch.no_grad()
    def generate(self, message: Generate) -> Tensor:
        """Sample one token at a time."""
        self.model.eval()
        generator = torch.Generator().manual_seed(message.seed)
        ids = message.prompt.long()
        for _ in range(message.count):
            logits = self.model(ids[None, -self._plan.block_size :])[0, -1]  # (V,)
            ids = torch.cat([ids, torch.multinomial((logits / TEMPERATURE).softmax(-1), 1, generator=generator)])
        return ids[len(message.prompt) :]


class Adam:
    """Adam as in torch.optim, whose first step would import 824 modules and take 1.6 seconds."""

    def __init__(self, parameters: Iterable[nn.Parameter], betas: tuple[float, float] = (0.9, 0.99)) -> None:
        self._slots = [(p, torch.zeros_like(p), torch.zeros_like(p)) for p in parameters if p.requires_grad]
        self._betas, self._steps = betas, 0

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Update the parameters, and clear their gradients."""
        self._steps += 1
        first, second = self._betas
        for parameter, mean, square in self._slots:
            if parameter.grad is None:
                continue
            mean.lerp_(parameter.grad, 1 - first)
            square.lerp_(parameter.grad**2, 1 - second)
            spread = (square / (1 - second**self._steps)).sqrt() + 1e-8
            parameter.sub_(rate / (1 - first**self._steps) * mean / spread)
            parameter.grad = None


def _rate(plan: TrainPlan, step: int) -> float:
    """Return the learning rate: linear warm-up, then half a cosine down to LAST_RATE."""
    warm = min(1.0, (step + 1) / WARM_UP)
    return plan.rate * warm * (LAST_RATE + (1 - LAST_RATE) * (1 + math.cos(math.pi * step / plan.steps)) / 2)


def _output(tensor: Tensor) -> Output:
    return Output("tensor", tensor, dtype_name(tensor.dtype), tensor.device.type, tuple(tensor.shape))
