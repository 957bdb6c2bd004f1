"""Train a small language model with a student's attention module.

The model and the module are in a worker process of the box, which computes each training step.
`own_training_run` opens the model. The exercise also comes with the attention of a model that is
already trained. With its parameters, `sentence_examples` makes examples for pictures of the
attention weights in a sentence.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from ..box.connection import Box
from ..box.worker.limits import Limits
from ..box.worker.messages import (
    Build,
    Call,
    FollowUp,
    InitModel,
    Output,
    Training,
    TrainStep,
    Write,
)
from ..box.worker.training import NH, STEPS, C, T
from ..checks.explain_exceptions import kind_name
from ..course import CourseError, Exercise
from ..course.course_yaml_schema import Trainable
from ..files import restore
from ..judge.redact_hidden_inputs import axes_of
from ..submission import Source
from .choose_example_calls import Example
from .loaded_attempt import AttemptStopped, LoadedAttempt, own_loaded_attempt

SENTENCE = "The keys to the cabinet were on the table"
# the names of tensors: each is followed by the block's number, and _WEIGHT also by a weight's name
_TAKEN, _GIVEN, _SHARES, _WEIGHT = "taken ", "given ", "shares ", "weight "
_MIDDLES = {(word.start() + word.end() - 1) // 2: word[0] for word in re.finditer(r"\S+", SENTENCE)}
# for each character of SENTENCE a label: the word if this is its middle character, otherwise ""
_WORDS = tuple(_MIDDLES.get(at, "") for at in range(len(SENTENCE)))


@dataclass(frozen=True)
class TrainedBlock:
    """The attention of one block of a trained model.

    Attributes:
        module_input: The input of the attention module for SENTENCE, (1, T, C).
        module_output: The output of the reference's module, (1, T, C).
        weights: The parameters of the module, by name.
        shares: The attention weights of each head of the reference, (nh, T, T). None if they were
            not observed.
    """

    module_input: Tensor
    module_output: Tensor
    weights: Mapping[str, Tensor]
    shares: Tensor | None = None


def save_blocks(blocks: Sequence[TrainedBlock]) -> bytes:
    """Return the bytes of a safetensors file with these blocks. Equal blocks give equal bytes.

    Parameters and attention weights are stored in half precision.
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
    """Read a file with the bytes of `save_blocks`. Parameters and attention weights are float32.

    Raises:
        CourseError: The file is missing or cannot be read.
    """
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
    """Return an example for each block of the trained model that comes with an exercise.

    The call of an example builds the student's module with the block's parameters, and gives it the
    block's input for SENTENCE. The list is empty if the exercise has no module to train. A block is
    left out if no signature of the module in course.yaml fits the call.

    Raises:
        CourseError: The file of the trained model cannot be read.
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
        description = f"“{SENTENCE}”, block {number} of a trained model"
        module_signatures = signatures.get(train.module, ())
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
                    compares_values=True,
                    signature=signature,
                    axes=axes,
                    tokens=_WORDS,
                    description=description,
                    shares=(block.shares,),
                )
            )
    return examples


TEXT = Path(__file__).with_name("alice.txt")
REMARK = "#"  # starts a line about the text
_TRIAL = (2, 5, C)  # the shape of a trial call
_ROUNDING = 1e-4  # of the largest number: float32 computes one position in another order
FUTURE = (
    "Your module sees the future: another last token changes what it answers at the positions "
    "before it."
)
LARGEST_LOSS = 20.0  # exp(loss) of a greater loss is too large a number to read


def attention_of(trainable: Trainable) -> Build:
    """Return the Build of the module that goes into each block of the model, in training mode."""
    sizes = {"C": C, "nh": NH, "T": T}
    arguments = {name: sizes[size] for name, size in trainable.arguments.items()}
    return Build(trainable.module, kwargs=arguments, training=True)


def read_text(path: Path = TEXT) -> str:
    """Return the text in this file, without the lines that begin with REMARK."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(REMARK))


@dataclass(frozen=True)
class TrainingRun(LoadedAttempt):
    """The training of one model.

    Each method that sends a message raises AttemptStopped if the attempt's process ends, if the
    attempt raises an exception, or if its reply cannot be used.

    Attributes:
        text: The text that the model learns.
        sees_future: Whether a later token changes what the module answers at an earlier position.
    """

    text: str = field(kw_only=True)
    sees_future: bool = False

    @property
    def vocabulary(self) -> str:
        """The characters of the text, sorted. The index of a character is its number."""
        return "".join(sorted(set(self.text)))

    def numbers(self, text: str) -> Tensor:
        """Return the numbers of N characters, (N,) uint8.

        Raises ValueError if a character is not in the vocabulary.
        """
        return torch.tensor(list(map(self.vocabulary.index, text)), dtype=torch.uint8)

    def build(self, attention: Build) -> None:
        """Build the model in the attempt's process, with this module in each of its blocks."""
        self.reply_to(
            InitModel(attention, len(self.vocabulary), self.numbers(self.text)), "while it was made"
        )

    def step(self, number: int) -> float:
        """Take one training step, and return the loss before the step.

        Raises AttemptStopped also if the loss is infinite or NaN.

        Args:
            number: The number of the step, for the error message.
        """
        at = f"at step {number} of {STEPS}"
        loss = self._ask_tensor(TrainStep(), at, ())
        if not loss.isfinite():
            problem = "NaN (not a number)" if loss.isnan() else "infinite"
            raise AttemptStopped(f"The loss became {problem} {at}: there is nothing to learn from.")
        return loss.item()

    def write(self, prompt: str, count: int) -> str:
        """Return the `count` characters that the model writes after the prompt."""
        ids = self._ask_tensor(
            Write(self.numbers(prompt), count), "while it generated text", (count,)
        ).long()
        if not ((ids >= 0) & (ids < len(self.vocabulary))).all():
            raise AttemptStopped("The attempt sent characters that are not in the vocabulary.")
        return "".join(self.vocabulary[i] for i in ids.tolist())

    def _ask_tensor(self, message: Training, at: str, shape: tuple[int, ...]) -> Tensor:
        """Send a message, and return the only output of the reply: a real tensor of this shape.

        Raises AttemptStopped if the reply has any other outputs.
        """
        outputs = self.reply_to(message, at).outputs
        tensor = outputs[0].tensor if len(outputs) == 1 else None
        if tensor is None or tensor.is_complex() or tensor.shape != shape:
            raise AttemptStopped(f"The attempt sent something that is not an answer, {at}.")
        return tensor


@contextmanager
def own_training_run(
    box: Box, limits: Limits, source: Source, attention: Build
) -> Iterator[TrainingRun]:
    """Open a model that is ready to train, with the attempt's module in each block.

    The attempt is loaded in a process of the box, which ends with the context. Before the model is
    built, the module is called alone: a wrong output is then reported as such, not as an error of
    the model around it. The same calls show whether the module sees the future; the training is
    then opened all the same, with `sees_future` set.

    Args:
        box: The box.
        limits: The limits. `seconds_per_call` holds for each message; the whole training may take
            SECONDS.
        source: The attempt.
        attention: The module to build.

    Raises:
        AttemptStopped: The attempt cannot be imported, its module does not return one tensor of
            the input's shape, or the model cannot be built with it.
    """
    name = attention.target
    with own_loaded_attempt(box, limits, source) as attempt:
        run = TrainingRun(attempt.ask, attempt.undefined, text=read_text())
        x = torch.randn(_TRIAL, generator=torch.Generator().manual_seed(0))
        later = x.clone()
        later[:, -1] *= -2  # only the last token differs
        again = (FollowUp((later,)), FollowUp((x,)))
        trial = Call(replace(attention, training=False), args=(x,), then=again, dtype="float32")
        outputs = run.reply_to(trial, f"in {name}").outputs
        output = next(iter(outputs), Output("nothing"))
        if output.tensor is None:
            raise AttemptStopped(
                f"{name} returns {kind_name(output.came)}; a tensor (B, T, C) is asked."
            )
        if (shape := tuple(output.tensor.shape)) != _TRIAL:
            raise AttemptStopped(
                f"{name} returns the shape {shape}; (B, T, C) = {_TRIAL} is asked."
            )
        run = replace(run, sees_future=_sees_future([output.tensor for output in outputs]))
        run.build(attention)
        yield run


def _sees_future(answers: Sequence[Tensor | None]) -> bool:
    """Return whether another last token changes the outputs at earlier positions.

    False is also returned if the outputs do not show it: one is missing, has another shape or is
    not finite, or the first and the third differ, so that the module is random or keeps state
    between calls.

    Args:
        answers: The outputs for an input, for the same input with another last token, and for the
            first input once more.
    """
    if len(answers) != 3 or any(answer is None or answer.shape != _TRIAL for answer in answers):
        return False
    original, edited, repeated = (answer[:, :-1] for answer in answers if answer is not None)
    if not original.isfinite().all():
        return False
    rounding = _ROUNDING * float(original.abs().max())
    is_repeatable = torch.allclose(original, repeated, rtol=0.0, atol=rounding)
    return is_repeatable and not torch.allclose(original, edited, rtol=0.0, atol=rounding)


def loss_words(first_loss: float, last_loss: float, *, sees_future: bool) -> str:
    """Return a text that compares the loss of the last steps with the loss at the start.

    If the module sees the future, the text says instead that the loss means nothing.
    """
    start, end = (math.exp(min(loss, LARGEST_LOSS)) for loss in (first_loss, last_loss))
    if sees_future:
        why = "because the character to predict is in what it reads"
        return (
            f"A loss of {last_loss:.2f} says nothing here, {why}. When it writes, there is no "
            "future to read."
        )
    means = f"means being as unsure as among {end:.1f} equally likely characters"
    return f"A loss of {last_loss:.2f} {means}; at first it was {start:.1f}."
