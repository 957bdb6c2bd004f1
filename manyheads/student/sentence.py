"""The attention weights of a student's module for a sentence, with the weights of a trained model (`course train`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from ..box.worker.answers import Traced
from ..box.worker.messages import Call
from ..course import CourseError, Exercise
from ..errors import restore
from ..judge.axes import axes_of
from .example import Example
from .heads import weights_of
from .plot_content import Band, Panel, all_bands
from .train_model import attention_of

SENTENCE = "The keys to the cabinet were on the table"
_TAKEN, _GIVEN, _WEIGHT = "taken ", "given ", "weight "  # before a block's number; of a weight its name follows
_ALIKE = 1e-3  # the largest difference between equal outputs
_SPACE = "␣"


@dataclass(frozen=True)
class TrainedBlock:
    """The attention of one block of a trained model: input and output for SENTENCE, (1, T, C) each, and its weights."""

    taken: Tensor
    given: Tensor
    weights: Mapping[str, Tensor]


def save_blocks(blocks: Sequence[TrainedBlock]) -> bytes:
    """Return the bytes of the file, which are the same for the same content. Weights are stored in half precision."""
    tensors: dict[str, Tensor] = {}
    for i, block in enumerate(blocks):
        tensors |= {f"{_TAKEN}{i}": block.taken, f"{_GIVEN}{i}": block.given}
        tensors |= {f"{_WEIGHT}{i} {name}": weight.half() for name, weight in block.weights.items()}
    return bytes(safetensors.torch.save({name: t.detach().contiguous() for name, t in tensors.items()}))


def read_blocks(path: Path) -> list[TrainedBlock]:
    """Read the file of an exercise. Raises CourseError."""
    try:
        tensors = safetensors.torch.load(path.read_bytes())
        return [_block(tensors, i) for i in range(sum(name.startswith(_TAKEN) for name in tensors))]
    except (OSError, ValueError, LookupError, SafetensorError) as error:
        problem = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read ({type(error).__name__})"
        raise CourseError(f"{path} {problem}. {restore(path)}") from error


def _block(tensors: Mapping[str, Tensor], i: int) -> TrainedBlock:
    before = f"{_WEIGHT}{i} "
    weights = {name.removeprefix(before): t.float() for name, t in tensors.items() if name.startswith(before)}
    return TrainedBlock(tensors[f"{_TAKEN}{i}"], tensors[f"{_GIVEN}{i}"], weights)


@dataclass(frozen=True)
class SentenceExample(Example):
    """The attention of one block of the trained model, with the block's input for the sentence."""

    block: int = 0

    @property
    def title(self) -> str:
        """The title in a picture."""
        return f"block {self.block + 1} of a trained model"


def sentence_examples(exercise: Exercise) -> list[SentenceExample]:
    """Return an example for each block; none if the exercise has no module to train. Raises CourseError."""
    if exercise.train is None:
        return []
    return list(_examples(exercise, read_blocks(exercise.trained)))


def _examples(exercise: Exercise, blocks: Sequence[TrainedBlock]) -> Iterator[SentenceExample]:
    assert exercise.train is not None
    signatures = {name: exercise.signatures(name) for name in exercise.shapes}
    shown_with = exercise.train.shown_with
    for number, block in enumerate(blocks):
        build = replace(attention_of(exercise.train), state=block.weights, training=False, attributes=shown_with)
        call = Call(build, args=(block.taken,), dtype="float32")
        for signature in signatures.get(exercise.train.module, ()):
            axes = axes_of(signature, call, block.given.shape, signatures)
            if axes is not None:
                yield SentenceExample(call, block.given, True, signature, axes, number)
                break


def every_band(shown: Sequence[tuple[Example, Traced]]) -> list[Band]:
    """Return the bands of all traced examples, those for the sentence last."""
    plain = [each for each in shown if not isinstance(each[0], SentenceExample)]
    own = [sentence_bands(example, traced) for example, traced in shown if isinstance(example, SentenceExample)]
    return [*all_bands(plain), *(band for each in own for band in each)]


def sentence_bands(example: SentenceExample, traced: Traced) -> list[Band]:
    """Return a panel for each of the student's heads, its rows and columns the sentence's characters; empty if none were found."""
    weights = weights_of(traced, example.axes)
    if weights is None:
        return []
    panels = tuple(Panel(f"head {h}", table, "weights") for h, table in enumerate(weights))
    output, wanted = traced.reply.outputs[0].tensor if traced.reply.outputs else None, example.expected
    alike = output is not None and output.shape == wanted.shape and torch.allclose(output, wanted, atol=_ALIKE)
    title = f"“{SENTENCE}”, {example.title}: your heads, {'as' if alike else 'not as'} the reference's"
    return [Band(title, panels, "query", "key", tuple(SENTENCE.replace(" ", _SPACE)))]
