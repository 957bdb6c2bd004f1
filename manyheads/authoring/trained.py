"""Train a small model with the reference's attention: what `course plot` shows of a sentence."""

from __future__ import annotations

import torch
from torch import Tensor

from ..box.worker.training import STEPS, Trainer
from ..checks.local import namespace_of
from ..course import CourseError, Exercise
from ..course.file import Trainable
from ..student.sentence import SENTENCE, TrainedBlock, save_blocks
from ..student.train_model import TrainingRun, TrainingStopped, attention_of, read_text


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
