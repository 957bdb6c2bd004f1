"""The attention weights of a student's module for a sentence, with the weights of a trained model
(`course train`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from ..box.worker.messages import Call
from ..course import CourseError, Exercise
from ..errors import restore
from ..judge.axes import axes_of
from .example import Example
from .train_model import attention_of

SENTENCE = "The keys to the cabinet were on the table"
_TAKEN, _GIVEN, _SHARES, _WEIGHT = (
    "taken ",
    "given ",
    "shares ",
    "weight ",
)  # before a block's number; of a weight its name follows
_MIDDLES = {(word.start() + word.end() - 1) // 2: word[0] for word in re.finditer(r"\S+", SENTENCE)}
# at the middle character of each word
_WORDS = tuple(_MIDDLES.get(at, "") for at in range(len(SENTENCE)))


@dataclass(frozen=True)
class TrainedBlock:
    """The attention of one block of a trained model: input and output for SENTENCE, (1, T, C) each,
    and its weights.

    shares: how each head of the reference shares out its attention, (nh, T, T); None where that was
        not seen.
    """

    module_input: Tensor
    module_output: Tensor
    weights: Mapping[str, Tensor]
    shares: Tensor | None = None


def save_blocks(blocks: Sequence[TrainedBlock]) -> bytes:
    """Return the bytes of the file, which are the same for the same content.

    Weights are stored in half precision.
    """
    tensors: dict[str, Tensor] = {}
    for i, block in enumerate(blocks):
        tensors |= {f"{_TAKEN}{i}": block.module_input, f"{_GIVEN}{i}": block.module_output}
        if block.shares is not None:
            tensors[f"{_SHARES}{i}"] = block.shares.half()
        tensors |= {f"{_WEIGHT}{i} {name}": weight.half() for name, weight in block.weights.items()}
    return bytes(
        safetensors.torch.save({name: t.detach().contiguous() for name, t in tensors.items()})
    )


def read_blocks(path: Path) -> list[TrainedBlock]:
    """Read the file of an exercise. Raises CourseError."""
    try:
        tensors = safetensors.torch.load(path.read_bytes())
        blocks = []
        for i in range(sum(name.startswith(_TAKEN) for name in tensors)):
            prefix = f"{_WEIGHT}{i} "
            weights = {
                name.removeprefix(prefix): t.float()
                for name, t in tensors.items()
                if name.startswith(prefix)
            }
            shares = tensors.get(f"{_SHARES}{i}")
            shares = None if shares is None else shares.float()
            blocks.append(
                TrainedBlock(tensors[f"{_TAKEN}{i}"], tensors[f"{_GIVEN}{i}"], weights, shares)
            )
        return blocks
    except (OSError, ValueError, LookupError, SafetensorError) as error:
        problem = (
            "is missing"
            if isinstance(error, FileNotFoundError)
            else f"cannot be read ({type(error).__name__})"
        )
        raise CourseError(f"{path} {problem}. {restore(path)}") from error


def sentence_examples(exercise: Exercise) -> list[Example]:
    """Return an example for each block; none if the exercise has no module to train.

    Raises CourseError.
    """
    if (train := exercise.train) is None:
        return []
    signatures = {name: exercise.signatures(name) for name in exercise.shapes}
    examples = []
    for number, block in enumerate(read_blocks(exercise.trained), 1):
        build = replace(
            attention_of(train), state=block.weights, training=False, attributes=train.shown_with
        )
        call = Call(build, args=(block.module_input,), dtype="float32")
        description, module_signatures = (
            f"“{SENTENCE}”, block {number} of a trained model",
            signatures.get(train.module, ()),
        )
        fits = [
            (candidate, axes)
            for candidate in module_signatures
            if (axes := axes_of(candidate, call, block.module_output.shape, signatures))
        ]
        for signature, axes in fits[:1]:
            examples.append(
                Example(
                    call,
                    block.module_output,
                    True,
                    signature,
                    axes,
                    tokens=_WORDS,
                    description=description,
                    shares=block.shares,
                )
            )
    return examples
