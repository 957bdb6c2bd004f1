"""Record how an exercise's reference trains, for `course train` on machines that have no reference."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from ..box.worker.language_model import LanguageModel
from ..box.worker.training import Trainer
from ..checks.local import namespace_of
from ..course import Course, CourseError, Exercise
from ..course.file import Trainable
from ..student.recorded_training import SENTENCE, Recorded, random_sample, read, save, setup_of
from ..student.train_model import TrainingRun, TrainingStopped, local
from ..student.training_plan import Curve, TrainingText, attention_of, plan_for, read_text

DRAWS = 4  # runs with different initial weights: how far they differ is chance


def trained_exercises(course: Course) -> Iterator[tuple[Exercise, Trainable]]:
    """Yield the exercises for which course.yaml names a module to train."""
    for exercise in course.exercises:
        if exercise.train is not None:
            yield exercise, exercise.train


def record_curve(exercise: Exercise, trainable: Trainable) -> bytes:
    """Make the file of this exercise, with a run of about twenty seconds for each draw. Raises CourseError."""
    torch.set_num_threads(1)  # as in an attempt's process
    text = read_text()
    namespace = namespace_of(exercise.solution)
    curves, trainer = [], Trainer()
    for draw in reversed(range(DRAWS)):  # draw 0 comes last, because its weights are kept
        run = TrainingRun(local(namespace, trainer), text, plan_for(text, draws=draw))
        curves.append(_run(run, trainable, exercise))
    spread = {
        step: max(c.held_out[step] for c in curves) - min(c.held_out[step] for c in curves)
        for step in curves[-1].held_out
    }
    sentence = _on_sentence(trainer.model, text)
    weights = dict(trainer.model.named_parameters())
    setup = setup_of(trainable, text, plan_for(text))
    return save(Recorded(curves[-1], spread, weights, setup, sentence, random_sample()))


def stale_curves(course: Course) -> list[str]:
    """Return a sentence for every curve that is missing or was recorded with another text or plan."""
    text = read_text()
    return [
        f"{path.relative_to(course.root)} was not recorded with the current text and plan"
        for exercise, trainable in trained_exercises(course)
        if not _is_current(path := exercise.curve, trainable, text)
    ]


def _is_current(path: Path, trainable: Trainable, text: TrainingText) -> bool:
    try:
        return read(path).setup == setup_of(trainable, text, plan_for(text))
    except CourseError:
        return False


@torch.no_grad()
def _on_sentence(model: LanguageModel, text: TrainingText) -> tuple[tuple[Tensor, Tensor], ...]:
    """Input and output of each block's attention for the sentence, with weights rounded as they are saved."""
    seen: list[tuple[Tensor, Tensor]] = []
    for parameter in model.parameters():
        parameter.copy_(parameter.half())
    hooks = [
        block.get_submodule("attention").register_forward_hook(lambda _, args, given: seen.append((args[0], given)))
        for block in model.blocks
    ]
    model.eval()(text.encode(SENTENCE).long()[None])
    for hook in hooks:
        hook.remove()
    return tuple(seen)


def _run(run: TrainingRun, trainable: Trainable, exercise: Exercise) -> Curve:
    try:
        run.build(attention_of(trainable))
        *_, curve = run.train()
    except TrainingStopped as stopped:
        raise CourseError(
            f"the reference of {exercise.id} does not train: {stopped} Next: mend it, or `train` in course.yaml"
        ) from None
    return curve
