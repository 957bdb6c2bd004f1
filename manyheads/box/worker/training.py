"""Train a small language model with the attempt's attention, one step for each message.

The model stays in memory between messages. It has nanoGPT's architecture. B is the number of
sequences, T of tokens (characters), C of channels. The loss is only for display (`course train`),
never for a verdict, because student code in this process can forge it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .answer_call import raised_by
from .messages import InitModel, Output, Reply, Training, Write, dtype_name
from .nn_modules import at_most_two_values, build_module

C, NH, T = 64, 4, 64  # channels, heads and maximal tokens: the small sizes of the lesson
BLOCKS = 2  # layers of the model
BATCH = 32  # sequences of each step
STEPS = 600  # over which the learning rate falls
# the highest learning rate, the steps of warm-up, and the final rate as a share of the highest
RATE, WARM_UP, LAST_RATE = 1e-2, 20, 0.1
TEMPERATURE = 0.8  # below 1: prefer the more probable characters


class Block(nn.Module):
    """Attention, then an MLP on each token; each is added to its input."""

    def __init__(self, attention: nn.Module) -> None:
        super().__init__()
        self.norm_1 = nn.LayerNorm(C)
        self.attention = attention
        self.norm_2 = nn.LayerNorm(C)
        self.mlp = nn.Sequential(nn.Linear(C, 4 * C), nn.GELU(), nn.Linear(4 * C, C))

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, T, C) from (B, T, C)."""
        x = x + self.attention(self.norm_1(x))
        y: Tensor = x + self.mlp(self.norm_2(x))
        return y


class LanguageModel(nn.Module):
    """Predicts each next token from those before it, if its attention is causal."""

    def __init__(self, attentions: Sequence[nn.Module], vocabulary: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, C)
        self.positions = nn.Embedding(T, C)
        self.blocks = nn.Sequential(*map(Block, attentions))
        self.norm = nn.LayerNorm(C)
        self.head = nn.Linear(C, vocabulary, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        """Return (B, T, vocabulary) logits for (B, T) ids."""
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        logits: Tensor = self.head(self.norm(self.blocks(x)))
        return logits


@torch.no_grad()
def initialise(model: nn.Module) -> None:
    """Draw the weights of the model, in place, from torch's default generator.

    A matrix gets variance 1 / (its number of inputs), so that q and k have variance 1. An embedding
    gets variance 0.3². Biases start at 0. A parameter with at most two values (ones; a mask) is not
    a random weight and keeps its values.
    """
    for name, parameter in model.named_parameters():
        if parameter.is_floating_point() and not at_most_two_values(parameter):
            if name in ("tokens.weight", "positions.weight"):
                deviation = 0.3
            else:
                deviation = 0.0 if parameter.dim() < 2 else parameter.shape[-1] ** -0.5
            parameter.normal_(0.0, deviation)


class Adam:
    """Adam as in torch.optim, where the first step would import 824 modules and take 1.6 s."""

    def __init__(
        self, parameters: Iterable[nn.Parameter], betas: tuple[float, float] = (0.9, 0.99)
    ) -> None:
        self._slots = [
            (p, torch.zeros_like(p), torch.zeros_like(p)) for p in parameters if p.requires_grad
        ]
        self._betas, self._steps = betas, 0

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Update the parameters in place, and clear their gradients.

        Args:
            rate: the learning rate.
        """
        self._steps += 1
        beta_1, beta_2 = self._betas
        for parameter, mean, square in self._slots:
            if parameter.grad is not None:
                mean.lerp_(parameter.grad, 1 - beta_1)
                square.lerp_(parameter.grad**2, 1 - beta_2)
                spread = (square / (1 - beta_2**self._steps)).sqrt() + 1e-8
                parameter.sub_(rate / (1 - beta_1**self._steps) * mean / spread)
                parameter.grad = None


class Trainer:
    """Answers InitModel first, then TrainStep and Write in any order."""

    model: LanguageModel

    def answer(self, namespace: Mapping[str, object], message: Training, source: str) -> Reply:
        """Return the reply to one message. Exceptions of the attempt are in the reply.

        The reply has no output for InitModel, the loss for TrainStep, and the new tokens for Write.

        Args:
            namespace: the names that the attempt defines.
            message: the message.
            source: the attempt's file name.
        """
        try:
            with torch.enable_grad():
                if isinstance(message, InitModel):
                    self._build(namespace, message)
                    return Reply()
                result = self._write(message) if isinstance(message, Write) else self._step()
        except BaseException as error:  # a student's SystemExit is an answer too
            return Reply(
                raised=raised_by(
                    error, "build" if isinstance(message, InitModel) else "call", source
                )
            )
        return Reply(
            (
                Output(
                    "tensor",
                    result,
                    dtype_name(result.dtype),
                    result.device.type,
                    tuple(result.shape),
                ),
            )
        )

    def _build(self, namespace: Mapping[str, object], message: InitModel) -> None:
        """Build the model and all that training needs. The same message gives the same weights."""
        torch.default_generator.manual_seed(0)
        attentions = [build_module(namespace, message.attention).module for _ in range(BLOCKS)]
        self.model = LanguageModel(attentions, message.vocabulary)
        initialise(self.model)
        self._adam = Adam(self.model.parameters())
        self._steps = 0
        self._draw = torch.Generator().manual_seed(0)
        # (N, T + 1): for each position, the T tokens from there and the token after them
        self._text = message.text.long().unfold(0, T + 1, 1)

    def _step(self) -> Tensor:
        """Train on one batch, and return the loss before the step, of shape ()."""
        self.model.train()
        windows = self._text[torch.randint(len(self._text), (BATCH,), generator=self._draw)]
        loss = F.cross_entropy(self.model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())
        loss.backward()
        warm = min(1.0, (self._steps + 1) / WARM_UP)
        cosine = (1 + math.cos(math.pi * self._steps / STEPS)) / 2
        self._adam.step(RATE * warm * (LAST_RATE + (1 - LAST_RATE) * cosine))
        self._steps += 1
        return loss.detach()

    @torch.no_grad()
    def _write(self, message: Write) -> Tensor:
        """Draw one token after the other, and return the new tokens, (count,)."""
        self.model.eval()
        generator = torch.Generator().manual_seed(0)
        ids = message.prompt.long()
        for _ in range(message.count):
            logits = self.model(ids[None, -T:])[0, -1]  # (V,)
            ids = torch.cat(
                [ids, torch.multinomial((logits / TEMPERATURE).softmax(-1), 1, generator=generator)]
            )
        return ids[len(message.prompt) :]
