"""Make the files of one exercise as students get them.

Text is the same bytes every time. A recording is the same numbers; if the one on disk is equivalent, it is kept.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from ..box.worker.training import STEPS, Trainer
from ..checks.local import namespace_of
from ..checks.outcome import CheckOutcome
from ..course import CourseError, Exercise
from ..course.file import Trainable
from ..judge.run_checks import Catalogue
from ..student.sentence import SENTENCE, TrainedBlock, save_blocks
from ..student.train_model import TrainingRun, TrainingStopped, attention_of, read_text
from .compare_recordings import same_fingerprints
from .stub_notebook import Group, stub_notebook


@dataclass(frozen=True)
class Released:
    """A file of exercises/ as it must be. alike: whether what lies there is equivalent; a recording may differ by rounding."""

    path: Path
    content: bytes
    alike: Callable[[bytes, bytes], bool] = operator.eq

    def is_in_step(self) -> bool:
        """Return whether the file on disk is as it must be."""
        return self.path.exists() and self.alike(self.path.read_bytes(), self.content)


def files_of(catalogue: Catalogue, exercise: Exercise, stub: str, new: bytes) -> Iterator[Released]:
    """Yield the files of an exercise. new: its fingerprint file, as it is recorded now."""
    yield Released(exercise.script, stub.encode())
    notebook = stub_notebook(stub, exercise.id, groups(catalogue, exercise))
    yield Released(exercise.notebook, notebook.encode())
    for source, figure in zip(exercise.figure_sources, exercise.figures, strict=True):
        yield Released(figure, source.read_bytes())
    yield Released(exercise.fingerprints, new, same_fingerprints)
    if exercise.train is not None:  # what is there is kept as it is: to make it takes twenty seconds
        path = exercise.trained
        yield Released(path, path.read_bytes() if path.exists() else trained_blocks(exercise, exercise.train))


def groups(catalogue: Catalogue, exercise: Exercise) -> list[Group]:
    """Return the hidden checks of an exercise, grouped by layer."""
    layers: dict[str, list[CheckOutcome]] = {}
    for check in sorted(catalogue.checks(exercise), key=lambda c: c.layer):
        layers.setdefault(check.layer.name.lower(), []).append(check)
    return [
        Group(name, sum(c.points for c in checks), tuple(c.title for c in checks), tuple(c.id for c in checks))
        for name, checks in layers.items()
    ]


def trained_blocks(exercise: Exercise, trainable: Trainable, steps: int = STEPS) -> bytes:
    """Return the file of this exercise, after about twenty seconds. Raises CourseError."""
    trainer, namespace = Trainer(), namespace_of(exercise.solution)
    run = TrainingRun(lambda message: trainer.answer(namespace, message, "the reference"), read_text())
    try:
        run.build(attention_of(trainable))
        for step in range(1, steps + 1):
            run.step(step)
    except TrainingStopped as stopped:
        raise CourseError(
            f"the reference of {exercise.id} does not train: {stopped} Next: mend it, or `train` in course.yaml"
        ) from None
    return _blocks(trainer, run.numbers(SENTENCE).long())


@torch.no_grad()
def _blocks(trainer: Trainer, ids: Tensor) -> bytes:
    """Return what each block's attention does with the tokens, with weights rounded as they are saved."""
    blocks: list[TrainedBlock] = []
    for parameter in trainer.model.parameters():
        parameter.copy_(parameter.half())
    for block in trainer.model.blocks:
        attention = block.get_submodule("attention")
        attention.register_forward_hook(
            lambda module, args, given: blocks.append(TrainedBlock(args[0], given, dict(module.named_parameters())))
        )
    trainer.model.eval()(ids[None])
    return save_blocks(blocks)
