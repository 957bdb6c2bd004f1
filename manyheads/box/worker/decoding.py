"""Write with a trained language model, token by token: with what its attention hands back, or the whole text each time."""

from __future__ import annotations

import time

import torch
from torch import Tensor

from .model import LanguageModel
from .training_messages import Decode

COLD = 1e-3  # a temperature below it is as good as 0, and would overflow


@torch.no_grad()
def decode(model: LanguageModel, message: Decode) -> tuple[Tensor, Tensor, Tensor]:
    """The tokens (count,), the logits from which each was chosen (count, V), and the ms that each took (count,).

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
    """(1,): a token drawn from the logits; the most probable one at a temperature of 0, and where they are no numbers."""
    if not temperature >= COLD or not logits.isfinite().all():
        return logits.argmax(-1, keepdim=True)
    return torch.multinomial((logits / temperature).softmax(-1), 1, generator=generator)


def all_weights(model: LanguageModel) -> Tensor:
    """Every parameter as one row, in the order of their names, which does not hang on the order of an attempt's lines."""
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
