"""Hold an attempt's training and writing against the recorded reference's, on machines without a reference."""

from __future__ import annotations

import hashlib
import json
import math
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
from ..course.file import Trainable
from ..errors import restore
from .training_plan import Curve, TrainingText

# The recorded training of the reference (`course release --curves`), for machines without a reference.

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
    """Return a few random numbers of the two kinds that a run draws, with a fixed seed."""
    generator = torch.Generator().manual_seed(0)
    normal, whole = torch.randn(64, generator=generator), torch.randint(1 << 16, (4,), generator=generator)
    return (*normal[:4].tolist(), *(float(number) for number in whole))


def setup_of(trainable: Trainable, text: TrainingText, plan: TrainPlan) -> str:
    """Return a hash of everything that determines a curve, except the module's code and torch."""
    content = json.dumps(
        [trainable.model_dump(include={"module", "arguments"}), text.vocabulary, asdict(plan)], sort_keys=True
    )
    return hashlib.sha256(content.encode() + bytes(text.ids.tolist())).hexdigest()


def save(recorded: Recorded) -> bytes:
    """Return the bytes of the file, which are the same for the same content. Weights are stored in half precision."""
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


# Compare an attempt's training curve with the reference's.

SAME = 0.005  # two runs that differ only by rounding stay closer than this at every step
ROUGHLY = 2.0  # times the recorded spread
FIRST_LOSS_ROUNDING = 2e-5  # the largest rounding difference of the first loss, before any training


@dataclass(frozen=True)
class TrainingVerdict:
    """`well`: whether nothing seems to be wrong. `sentence`: the explanation."""

    well: bool
    sentence: str


def verdict(yours: Curve, recorded: Recorded) -> TrainingVerdict:
    """Compare at the last step at which both were evaluated."""
    reference = recorded.curve
    if not recorded.draws_the_same:
        return _roughly(yours, recorded)
    begins_alike = abs(yours.losses[0] - reference.losses[0]) <= FIRST_LOSS_ROUNDING
    common = sorted(yours.held_out.keys() & reference.held_out.keys())
    if not common:
        if begins_alike:
            return TrainingVerdict(True, "Yours begins as the reference does; more steps would say more.")
        return TrainingVerdict(
            False, "Yours begins elsewhere than the reference, with the same weights: it computes something else."
        )
    step = common[-1]
    apart = yours.held_out[step] - reference.held_out[step]
    ahead = reference.recent(step) - yours.recent(step)
    spread = recorded.spread[step]
    if ahead > spread and apart > spread:
        return TrainingVerdict(False, _sees_ahead(yours, reference, step))
    if begins_alike:
        if abs(apart) <= SAME:
            return TrainingVerdict(True, "Yours learns as the reference does: the two curves are one.")
        return TrainingVerdict(
            False,
            f"Yours begins as the reference does and ends {_beside(apart)}: its answers are right, but it learns "
            "differently. Does every weight get its gradient, and keep what it learned?",
        )
    if abs(apart) <= spread:
        return TrainingVerdict(
            False,
            "Yours learns about as well as the reference, but it is not the same computation: the losses differ before "
            "anything is learned. Some mistakes cost nothing here; the check names them.",
        )
    return TrainingVerdict(False, f"Yours ends {_beside(apart)} and begins elsewhere, too: it computes something else.")


def _roughly(yours: Curve, recorded: Recorded) -> TrainingVerdict:
    """Return the verdict on a machine with other random numbers than the recording: only the end can be compared."""
    common = sorted(yours.held_out.keys() & recorded.curve.held_out.keys())
    if not common:
        return TrainingVerdict(True, "More steps would say more.")
    apart = yours.held_out[common[-1]] - recorded.curve.held_out[common[-1]]
    if abs(apart) <= ROUGHLY * recorded.spread[common[-1]]:
        return TrainingVerdict(
            True, "Yours learns about as well as the reference; torch draws other numbers here, so no more can be said."
        )
    return TrainingVerdict(False, f"Yours ends {_beside(apart)}, which is more than other random numbers would do.")


def _sees_ahead(yours: Curve, reference: Curve, step: int) -> str:
    return (
        f"Yours sees what it is to predict: while learning its loss is {yours.recent(step):.2f}, below the reference's "
        f"{reference.recent(step):.2f}, but in writing, where there is no future to look at, it is "
        f"{yours.held_out[step]:.2f}, above {reference.held_out[step]:.2f}."
    )


def _beside(apart: float) -> str:
    return f"{abs(apart):.2g} {'above' if apart > 0 else 'below'} it" if abs(apart) >= 0.01 else "a hair beside it"


def choices(loss: float) -> str:
    """Return a loss as a number of equally likely characters."""
    return f"{math.exp(loss):.1f}" if loss < 5 else f"{math.exp(min(loss, 20)):.0f}"
