"""Train a small language model with a student's attention, in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..box.connection import AttemptEnded
from ..box.level import Box
from ..box.loading import load
from ..box.worker.answers import Output, Raised, Reply
from ..box.worker.limits import Limits
from ..box.worker.messages import Build, Call, InitModel, Training, TrainStep, Write
from ..box.worker.training import NH, STEPS, C, T
from ..checks.explain import explain, is_undefined
from ..checks.sanitize import kind_name, sanitize
from ..course.file import Trainable
from ..errors import CourseFault
from ..submission import AttemptSource

TEXT = Path(__file__).with_name("alice.txt")
REMARK = "#"  # starts a line about the text
SECONDS = 3600.0  # for the whole training; each message has the course's limit for a call
_TRIAL = (2, 5, C)  # the shape of a trial call


class TrainingStopped(CourseFault):
    """The training cannot continue. The text is one sentence for the student, and the command to run next."""

    def __init__(self, said: str) -> None:
        super().__init__(f"{said}\nNext: course check")


def attention_of(trainable: Trainable) -> Build:
    """Return the module to build in each block."""
    sizes = {"C": C, "nh": NH, "T": T}
    arguments = {name: sizes[size] for name, size in trainable.arguments.items()}
    return Build(trainable.module, kwargs=arguments, training=True)


def read_text(path: Path = TEXT) -> str:
    """Return the text, without the lines about it."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(REMARK))


@dataclass(frozen=True)
class TrainingRun:
    """The training of one model. Every method raises TrainingStopped. ask: may raise AttemptEnded."""

    ask: Callable[[Any], Reply]
    text: str

    @property
    def vocabulary(self) -> str:
        """The characters of the text, by number."""
        return "".join(sorted(set(self.text)))

    def numbers(self, text: str) -> Tensor:
        """Return (N,) uint8. Raises ValueError if a character is not in the vocabulary."""
        return torch.tensor(list(map(self.vocabulary.index, text)), dtype=torch.uint8)

    def build(self, attention: Build) -> None:
        """Build the model, with this module in each of its blocks."""
        self.told(InitModel(attention, len(self.vocabulary), self.numbers(self.text)), "while it was made")

    def step(self, number: int) -> float:
        """Take one step. Returns the loss before it."""
        at = f"at step {number} of {STEPS}"
        loss = self._asked(TrainStep(), at, ())
        if not loss.isfinite():
            kind = "NaN (not a number)" if loss.isnan() else "infinite"
            raise TrainingStopped(f"The loss became {kind} {at}: there is nothing to learn from.")
        return loss.item()

    def write(self, prompt: str, count: int) -> str:
        """Return the text that the model writes after the prompt."""
        ids = self._asked(Write(self.numbers(prompt), count), "while it generated text", (count,)).long()
        if not ((ids >= 0) & (ids < len(self.vocabulary))).all():
            raise TrainingStopped("The attempt sent characters that are not in the vocabulary.")
        return "".join(self.vocabulary[i] for i in ids.tolist())

    def _asked(self, message: Training, at: str, shape: tuple[int, ...]) -> Tensor:
        outputs = self.told(message, at).outputs
        found = outputs[0].tensor if len(outputs) == 1 else None
        if found is None or found.is_complex() or found.shape != shape:
            raise TrainingStopped(f"The attempt sent something that is not an answer, {at}.")
        return found

    def told(self, message: Call | Training, at: str, undefined: str = "") -> Reply:
        """Return the reply, which has no exception. undefined: in place of that of a name that the file does not define."""
        with _told_at(at):
            reply = self.ask(message)
        if reply.raised is not None:
            why = is_undefined(reply.raised) and undefined
            raise TrainingStopped(why or _exception_sentence(reply.raised, at))
        return reply


@contextmanager
def _told_at(at: str) -> Iterator[None]:
    try:
        yield
    except AttemptEnded as ended:
        raise TrainingStopped(f"{ended} That was {at}.") from None


@contextmanager
def own_training_run(box: Box, limits: Limits, source: AttemptSource, attention: Build) -> Iterator[TrainingRun]:
    """Open a model that is ready to train, with the attempt's module in each block. Raises TrainingStopped.

    The module is called once before, so that a wrong shape is reported as such, not as an error of the model around it.
    """
    imported, name = f"while {sanitize(source.name)} was imported", attention.target
    with _told_at(imported):
        loaded = load(box, replace(limits, seconds_per_attempt=SECONDS), source.load())
    try:
        if loaded.raised is not None:
            raise TrainingStopped(_exception_sentence(loaded.raised, imported))
        undefined = next((_exception_sentence(part.raised, imported) for part in loaded.stopped if part.raised), "")
        run = TrainingRun(lambda message: loaded.connection.ask(message, limits.seconds_per_call), read_text())
        x = torch.randn(_TRIAL, generator=torch.Generator().manual_seed(0))
        trial = Call(replace(attention, training=False), args=(x,), dtype="float32")
        output = next(iter(run.told(trial, f"in {name}", undefined).outputs), Output("nothing"))
        if output.tensor is None:
            raise TrainingStopped(f"{name} returns {kind_name(output.came)}; a tensor (B, T, C) is asked.")
        if (shape := tuple(output.tensor.shape)) != _TRIAL:
            raise TrainingStopped(f"{name} returns the shape {shape}; (B, T, C) = {_TRIAL} is asked.")
        run.build(attention)
        yield run
    finally:
        loaded.connection.close()


def _exception_sentence(raised: Raised, at: str) -> str:
    own = sanitize(raised.message)
    return f"Your code {explain(raised)}, {at}." + (f" Python says: {own}" if own else "")
