"""Let models learn, right ones and wrong ones, several at once, each on one core."""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from pathlib import Path

import safetensors.torch
import torch
from pydantic import BaseModel, ConfigDict

from manyheads.box.worker.training import Trainer
from manyheads.judge.process_ties import usable
from manyheads.student.train_model import TrainingRun, TrainingStopped, local
from manyheads.student.training_plan import Curve, attention_of, plan_for, read_text

from .entries import RIGHT_ONES, WRONG_ONES, Entry, namespace, trainable

SEEDS = (0, 1, 2)
OTHER_DRAWS = 100  # added to the seed of a right one's first weights: how far these two come apart is luck
PROMPT, CHARACTERS = "Alice ", 120


class Run(BaseModel):
    """One model. learning, writing: its losses at every step that was examined. stopped: why it went no further.

    transplanted: the loss in writing where the attention stands in a model that learned with the right one.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    seed: int
    draws: int
    learning: dict[int, float]
    writing: dict[int, float]
    text: str
    stopped: str = ""
    transplanted: float | None = None

    @property
    def name(self) -> str:
        """For a file and for the person who waits."""
        return f"{self.id}-{self.seed}-{self.draws}"


def all_runs(folder: Path) -> Iterator[Run]:
    """The right ones first: the others are put into what they learned, which is kept in the folder."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(usable(), mp_context=spawn) as pool:
        yield from _done(pool, folder, ((entry, seed, seed) for entry in RIGHT_ONES for seed in SEEDS))
        others = [(RIGHT_ONES[0], seed, seed + OTHER_DRAWS) for seed in SEEDS]
        yield from _done(pool, folder, [*others, *((entry, seed, seed) for entry in WRONG_ONES for seed in SEEDS)])


def _done(pool: Executor, folder: Path, wanted: Iterable[tuple[Entry, int, int]]) -> Iterator[Run]:
    waiting: list[Future[Run]] = [pool.submit(run, entry, seed, draws, folder) for entry, seed, draws in wanted]
    for future in as_completed(waiting):
        yield future.result()


def run(entry: Entry, seed: int, draws: int, folder: Path, steps: int | None = None) -> Run:
    """Train one model in this process. `steps`: fewer than the plan has."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    trainer = Trainer()
    training = TrainingRun(local(namespace(entry), trainer), text := read_text(), plan_for(text, seed, draws))
    attention = attention_of(trainable(), entry.dropout)
    curve, written, stopped = Curve((), {}), "", ""
    try:
        training.build(attention)
        for so_far in training.train(steps):
            curve = so_far
        written = training.generate(PROMPT, CHARACTERS)
    except TrainingStopped as end:
        stopped = str(end)
    kept = folder / f"{entry.right}-{seed}.safetensors"
    transplanted = None
    if entry not in RIGHT_ONES and not stopped:
        training.build(attention)
        transplanted = _transplanted(training, trainer, kept)
    elif entry in RIGHT_ONES and seed == draws:
        learned = {name: weight.detach() for name, weight in trainer.model.named_parameters()}
        kept.write_bytes(safetensors.torch.save(learned))
    return Run(
        id=entry.id,
        seed=seed,
        draws=draws,
        learning={step: round(curve.recent(step), 4) for step in curve.held_out},
        writing={step: round(loss, 4) for step, loss in curve.held_out.items()},
        text=written,
        stopped=stopped,
        transplanted=transplanted,
    )


def _transplanted(training: TrainingRun, trainer: Trainer, kept: Path) -> float | None:
    """The loss in writing with what the right one learned; None where not every weight has its place."""
    learned = safetensors.torch.load(kept.read_bytes())
    weights = dict(trainer.model.named_parameters())
    if weights.keys() != learned.keys():
        return None
    for name, weight in weights.items():
        weight.data.copy_(learned[name])
    return round(training.evaluate(), 4)
