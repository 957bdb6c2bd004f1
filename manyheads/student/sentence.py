"""The attention weights of a student's module for a sentence, with the weights of a trained model (`course train`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from ..box.worker.answers import Traced
from ..box.worker.messages import Call
from ..course import Exercise
from .axes import axes_of
from .example import Example
from .heads import weights_of
from .plot_content import Band, Panel, all_bands
from .recorded_training import SENTENCE, Recorded, read
from .training_plan import attention_of

_ALIKE = 1e-3  # the largest difference between equal outputs
_SPACE = "␣"


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
    return list(_examples(exercise, read(exercise.curve)))


def _examples(exercise: Exercise, recorded: Recorded) -> Iterator[SentenceExample]:
    assert exercise.train is not None
    signatures = {name: exercise.signatures(name) for name in exercise.shapes}
    for block, (taken, given) in enumerate(recorded.sentence):
        before = f"blocks.{block}.attention."
        state = {name.removeprefix(before): w for name, w in recorded.weights.items() if name.startswith(before)}
        attention = attention_of(exercise.train)
        build = replace(attention, state=state, training=False, attributes=exercise.train.shown_with)
        call = Call(build, args=(taken,), dtype="float32")
        for signature in signatures.get(exercise.train.module, ()):
            axes = axes_of(signature, call, given.shape, signatures)
            if axes is not None:
                yield SentenceExample(call, given, True, signature, axes, block)
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
