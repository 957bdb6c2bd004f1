"""Train a small language model with the attempt's attention, a few steps for each message; the model stays in between.

Only for display (`course train`), never for a verdict: student code in this process can forge any loss.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .answers import Output, Reply, dtype_name
from .execute import raised_by
from .language_model import LanguageModel, initialise
from .modules import build_module
from .training_messages import (
    Decode,
    Evaluate,
    Generate,
    InitModel,
    LoadWeights,
    ReadWeights,
    Training,
    TrainPlan,
    TrainSteps,
)

# Write with a trained language model, token by token: with what its attention hands back, or the whole text each time.

COLD = 1e-3  # a temperature below it is as good as 0, and would overflow


@torch.no_grad()
def decode(model: LanguageModel, message: Decode) -> tuple[Tensor, Tensor, Tensor]:
    """Return the tokens (count,), the logits from which each was chosen (count, V), and the ms that each took (count,).

    With caches the prompt is fed in two chunks, so that a cache meets several new tokens at once, too.
    """
    model.eval()
    generator = torch.Generator().manual_seed(message.seed)
    ids = message.prompt.long()
    caches: list[object] = [None] * len(model.blocks)
    first = len(ids) // 2
    left = [ids[:first], ids[first:]] if message.cached and first else [ids]
    fed, said, times = 0, [], []
    for _ in range(message.count):
        started = time.perf_counter()
        if message.cached:
            for chunk in left:
                logits, caches = model.step(chunk[None], fed, caches)
                fed += len(chunk)
        else:
            logits = model(ids[None])
        times.append((time.perf_counter() - started) * 1000)
        said.append(logits[0, -1])
        drawn = choose(said[-1], message.temperature, generator)
        ids, left = torch.cat([ids, drawn]), [drawn]
    return ids[len(message.prompt) :], torch.stack(said), torch.tensor(times, dtype=torch.float64)


def choose(logits: Tensor, temperature: float, generator: torch.Generator) -> Tensor:
    """Return (1,): a token drawn from the logits; the most probable one at a temperature of 0, and where they are no numbers."""
    if not temperature >= COLD or not logits.isfinite().all():
        return logits.argmax(-1, keepdim=True)
    return torch.multinomial((logits / temperature).softmax(-1), 1, generator=generator)


def all_weights(model: LanguageModel) -> Tensor:
    """Return every parameter as one row, in the order of their names, which does not hang on the order of an attempt's lines."""
    return torch.cat([parameter.detach().flatten() for _, parameter in sorted(model.named_parameters())])


@torch.no_grad()
def load_weights(model: LanguageModel, row: Tensor) -> bool:
    """Put such a row in. False, and nothing is changed, where it has another length."""
    parameters = [parameter for _, parameter in sorted(model.named_parameters())]
    sizes = [parameter.numel() for parameter in parameters]
    if sum(sizes) != len(row):
        return False
    for parameter, part in zip(parameters, row.split(sizes), strict=True):
        parameter.copy_(part.view_as(parameter))
    return True


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
        if isinstance(message, Decode):
            return tuple(map(_output, decode(self.model, message)))
        if isinstance(message, ReadWeights):
            return (_output(all_weights(self.model)),)
        if isinstance(message, LoadWeights):
            return (_output(torch.tensor(float(load_weights(self.model, message.weights)))),)
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
            ids = torch.cat([ids, choose(logits, TEMPERATURE, generator)])
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
