"""Train a language model a few steps at a time, in the box with an attempt's attention or in this process."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from ..box.connection import AttemptEnded
from ..box.worker.answers import Raised, Reply
from ..box.worker.messages import Build
from ..box.worker.training import Trainer
from ..box.worker.training_messages import (
    Evaluate,
    Generate,
    InitModel,
    Training,
    TrainPlan,
    TrainSteps,
)
from ..checks.explain import explain
from ..checks.sanitize import sanitize
from .training_plan import EVALUATE_EVERY, Curve, TrainingText

SECONDS, MOST = 0.3, 25  # how long one message with steps should take, and the most steps in it
Ask = Callable[[Training], Reply]  # may raise AttemptEnded


class TrainingStopped(Exception):
    """The training cannot continue. The text is one sentence for the student."""


@dataclass(frozen=True)
class TrainingRun:
    """The training of one model. Every method raises TrainingStopped."""

    ask: Ask
    text: TrainingText
    plan: TrainPlan

    def build(self, attention: Build) -> None:
        """Build the model, with this module in each of its blocks."""
        self._asked(
            InitModel(attention, self.plan, self.text.training_part, self.text.held_out), "while it was made", ()
        )

    def train(self, steps: int | None = None) -> Iterator[Curve]:
        """Train, and yield the curve so far now and then and at the end. `steps`: fewer than the plan has."""
        total = min(steps or self.plan.steps, self.plan.steps)
        curve = Curve((), {})
        pace = _Pace()
        while curve.steps < total:
            count = min(pace.steps, total - curve.steps, EVALUATE_EVERY - curve.steps % EVALUATE_EVERY)
            at = f"at step {curve.steps + 1} of {self.plan.steps}"
            with pace:
                found = self._asked(TrainSteps(count), at, (count,))
            curve = Curve((*curve.losses, *found.tolist()), curve.held_out)
            self._refuse_nan(curve, count)
            if curve.steps % EVALUATE_EVERY == 0:
                curve = Curve(curve.losses, {**curve.held_out, curve.steps: self.evaluate()})
            yield curve

    def evaluate(self) -> float:
        """Return the loss on the held-out text."""
        return self._asked(Evaluate(), "when it was evaluated", ()).item()

    def generate(self, prompt: str, count: int) -> str:
        """Return the text that the model generates after the prompt."""
        found = self._asked(Generate(self.text.encode(prompt), count), "while it generated text", (count,))
        self._refuse_unknown(found)
        return self.text.decode(found.long())

    def _refuse_unknown(self, ids: Tensor) -> None:
        if not bool(((ids >= 0) & (ids < len(self.text.vocabulary))).all()):
            raise TrainingStopped("The attempt sent characters that are not in the vocabulary.")

    def _asked(self, message: Training, at: str, shape: tuple[int, ...]) -> Tensor:
        """Send a message. Returns the reply's tensor, which must have this shape."""
        return self._answers(message, at, [shape])[0]

    def _answers(self, message: Training, at: str, shapes: Sequence[tuple[int, ...] | None]) -> list[Tensor]:
        """Send a message. Returns the reply's tensors, which must have these shapes; None: one axis of any size."""
        try:
            reply = self.ask(message)
        except AttemptEnded as ended:
            raise TrainingStopped(f"{ended} That was {at}.") from None
        if reply.raised is not None:
            raise TrainingStopped(exception_sentence(reply.raised, at))
        if isinstance(message, InitModel):
            return [self.text.ids[:0]]
        found = [output.tensor for output in reply.outputs if output.tensor is not None]
        fits = [
            not tensor.is_complex() and (tensor.dim() == 1 if shape is None else tensor.shape == shape)
            for tensor, shape in zip(found, shapes, strict=False)
        ]
        if len(found) != len(shapes) or not all(fits):
            raise TrainingStopped(f"The attempt sent something that is not an answer, {at}.")
        return found

    def _refuse_nan(self, curve: Curve, count: int) -> None:
        for step, loss in enumerate(curve.losses[-count:], curve.steps - count + 1):
            if not math.isfinite(loss):
                kind = "NaN (not a number)" if math.isnan(loss) else "infinite"
                raise TrainingStopped(
                    f"The loss became {kind} at step {step} of {self.plan.steps}: there is nothing to learn from."
                )


def exception_sentence(raised: Raised, at: str) -> str:
    """Return one sentence about the student's exception."""
    own = sanitize(raised.message)
    return f"Your code {explain(raised)}, {at}." + (f" Python says: {own}" if own else "")


def local(namespace: Mapping[str, object], trainer: Trainer) -> Ask:
    """Execute the messages with trusted code in this process."""
    return lambda message: trainer.answer(namespace, message, "trusted")


class _Pace:
    """How many steps to send in one message, so that the progress bar moves even if the attempt is slow."""

    def __init__(self) -> None:
        self.steps = 1

    def __enter__(self) -> None:
        self._started = time.monotonic()

    def __exit__(self, *_: object) -> None:
        seconds = max(time.monotonic() - self._started, 1e-6)
        self.steps = max(1, min(MOST, 2 * self.steps, int(self.steps * SECONDS / seconds)))
