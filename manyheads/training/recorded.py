"""The recorded training of the reference (`course release --curves`), for machines without a reference."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from ..box.worker.training_messages import TrainPlan
from ..course import CourseError
from ..course.file import AttentionModule
from ..errors import restore
from .curve import Curve
from .text import TrainingText

ALIKE = 1e-4  # the largest difference of one random number between processors
SENTENCE = "The keys to the cabinet were on the table"
_WEIGHT, _TAKEN, _GIVEN = "weight ", "taken ", "given "  # prefixes of a weight's name and of a block's number


@dataclass(frozen=True)
class Recorded:
    """The reference's run.

    spread: how much the held-out loss varies with other initial weights, at each evaluation.
    weights: the model's weights at the end, by name.
    setup: the hash of what it was recorded with (`setup_of`).
    sentence: input and output of each block's attention for SENTENCE, (1, T, C) each.
    drawn: the `random_sample` of the machine that recorded it.
    """

    curve: Curve
    spread: Mapping[int, float]
    weights: Mapping[str, Tensor]
    setup: str
    sentence: tuple[tuple[Tensor, Tensor], ...] = ()
    drawn: tuple[float, ...] = ()

    @property
    def draws_the_same(self) -> bool:
        """Whether this machine's torch draws the same random numbers, so that the same model starts with the same loss."""
        here = random_sample()
        return len(here) == len(self.drawn) and all(abs(a - b) < ALIKE for a, b in zip(here, self.drawn, strict=True))


def random_sample() -> tuple[float, ...]:
    """A few random numbers of the two kinds that a run draws, with a fixed seed."""
    generator = torch.Generator().manual_seed(0)
    normal, whole = torch.randn(64, generator=generator), torch.randint(1 << 16, (4,), generator=generator)
    return (*normal[:4].tolist(), *(float(number) for number in whole))


def setup_of(trainable: AttentionModule, text: TrainingText, plan: TrainPlan) -> str:
    """A hash of everything that determines a curve, except the module's code and torch."""
    content = json.dumps(
        [trainable.model_dump(include={"module", "arguments"}), text.vocabulary, asdict(plan)], sort_keys=True
    )
    return hashlib.sha256(content.encode() + bytes(text.ids.tolist())).hexdigest()


def save(recorded: Recorded) -> bytes:
    """The bytes of the file, which are the same for the same content. Weights are stored in half precision."""
    examined = sorted(recorded.curve.held_out)
    tensors = {
        "losses": torch.tensor(recorded.curve.losses),
        "held_out": torch.tensor([recorded.curve.held_out[step] for step in examined]),
        "spread": torch.tensor([recorded.spread[step] for step in examined]),
        **{_WEIGHT + name: weight.detach().half().contiguous() for name, weight in recorded.weights.items()},
        **{f"{_TAKEN}{i}": taken for i, (taken, _) in enumerate(recorded.sentence)},
        **{f"{_GIVEN}{i}": given for i, (_, given) in enumerate(recorded.sentence)},
    }
    body = {"examined": examined, "setup": recorded.setup, "drawn": recorded.drawn}
    return bytes(safetensors.torch.save(tensors, metadata={"body": json.dumps(body)}))


def read(path: Path) -> Recorded:
    """Read a recorded curve. Raises CourseError."""
    try:
        return _read(path.read_bytes())
    except (OSError, ValueError, LookupError, TypeError, SafetensorError) as error:
        problem = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read ({type(error).__name__})"
        raise CourseError(f"{path} {problem}. {restore(path)} --curves") from error


def _read(data: bytes) -> Recorded:
    tensors = safetensors.torch.load(data)
    length = int.from_bytes(data[:8], "little")
    body: dict[str, Any] = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["body"])
    examined = [int(step) for step in body["examined"]]

    def by_step(name: str) -> dict[int, float]:
        return dict(zip(examined, tensors[name].tolist(), strict=True))

    weights = {name.removeprefix(_WEIGHT): t.float() for name, t in tensors.items() if name.startswith(_WEIGHT)}
    blocks = range(sum(name.startswith(_TAKEN) for name in tensors))
    sentence = tuple((tensors[f"{_TAKEN}{i}"], tensors[f"{_GIVEN}{i}"]) for i in blocks)
    curve = Curve(tuple(tensors["losses"].tolist()), by_step("held_out"))
    drawn = tuple(float(number) for number in body["drawn"])
    return Recorded(curve, by_step("spread"), weights, str(body["setup"]), sentence, drawn)
