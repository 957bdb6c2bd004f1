"""Let a language model learn, a few steps at a time, wherever it lives: with an attempt's attention or a trusted one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from torch import Tensor

from ..box.connection import AttemptEnded
from ..box.worker.answers import Raised, Reply
from ..box.worker.messages import Build, Evaluate, Generate, InitModel, Training, TrainPlan, TrainSteps
from ..box.worker.training import Trainer
from ..checks.explain import explain
from ..checks.sanitize import sanitize
from .curve import Curve
from .plan import EXAMINE_EVERY
from .text import TrainingText

SECONDS, MOST = 0.3, 25  # that one question for steps may take, and so many steps at most
Ask = Callable[[Training], Reply]  # may raise AttemptEnded


class Stopped(Exception):
    """The model cannot be trained on. The text is one sentence for the student."""


@dataclass(frozen=True)
class Study:
    """One model that learns. Every method raises Stopped."""

    ask: Ask
    text: TrainingText
    plan: TrainPlan

    def prepare(self, attention: Build) -> None:
        """Make the model, with this in each of its blocks."""
        self._asked(InitModel(attention, self.plan, self.text.learned, self.text.held_out), "while it was made", ())

    def learn(self, steps: int | None = None) -> Iterator[Curve]:
        """What is known so far, every now and then, and at the end. `steps`: fewer than the plan has."""
        total = min(steps or self.plan.steps, self.plan.steps)
        curve = Curve((), {})
        pace = _Pace()
        while curve.steps < total:
            count = min(pace.steps, total - curve.steps, EXAMINE_EVERY - curve.steps % EXAMINE_EVERY)
            at = f"at step {curve.steps + 1} of {self.plan.steps}"
            with pace:
                found = self._asked(TrainSteps(count), at, (count,))
            curve = Curve((*curve.losses, *found.tolist()), curve.held_out)
            self._refuse_nan(curve, count)
            if curve.steps % EXAMINE_EVERY == 0:
                curve = Curve(curve.losses, {**curve.held_out, curve.steps: self.examine()})
            yield curve

    def examine(self) -> float:
        """The loss on the held-out text."""
        return self._asked(Evaluate(), "when it was examined", ()).item()

    def write(self, prompt: str, count: int) -> str:
        """How it goes on."""
        found = self._asked(Generate(self.text.encode(prompt), count), "when it was to write", (count,))
        if not bool(((found >= 0) & (found < len(self.text.vocabulary))).all()):
            raise Stopped("The attempt sent characters that there are not.")
        return self.text.decode(found.long())

    def _asked(self, message: Training, at: str, shape: tuple[int, ...]) -> Tensor:
        """The reply's tensor, of this shape."""
        try:
            reply = self.ask(message)
        except AttemptEnded as ended:
            raise Stopped(f"{ended} That was {at}.") from None
        if reply.raised is not None:
            raise Stopped(told(reply.raised, at))
        if isinstance(message, InitModel):
            return self.text.ids[:0]
        tensor = reply.outputs[0].tensor if len(reply.outputs) == 1 else None
        if tensor is None or tensor.shape != shape or tensor.is_complex():
            raise Stopped(f"The attempt sent something that is not an answer, {at}.")
        return tensor

    def _refuse_nan(self, curve: Curve, count: int) -> None:
        for step, loss in enumerate(curve.losses[-count:], curve.steps - count + 1):
            if not math.isfinite(loss):
                kind = "NaN (not a number)" if math.isnan(loss) else "infinite"
                raise Stopped(
                    f"The loss became {kind} at step {step} of {self.plan.steps}: there is nothing to learn from."
                )


def told(raised: Raised, at: str) -> str:
    """One sentence on the student's exception."""
    own = sanitize(raised.message)
    return f"Your code {explain(raised)}, {at}." + (f" Python says: {own}" if own else "")


def local(namespace: Mapping[str, object], learner: Trainer) -> Ask:
    """Ask trusted code in this process."""
    return lambda message: learner.answer(namespace, message, "trusted")


class _Pace:
    """How many steps to ask for at once: so that a bar moves and no question takes long, however slow the attempt."""

    def __init__(self) -> None:
        self.steps = 1

    def __enter__(self) -> None:
        self._started = time.monotonic()

    def __exit__(self, *_: object) -> None:
        seconds = max(time.monotonic() - self._started, 1e-6)
        self.steps = max(1, min(MOST, 2 * self.steps, int(self.steps * SECONDS / seconds)))
