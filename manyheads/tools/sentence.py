"""What a student's heads attend to in a sentence, with the weights of a model that has learned (`course train`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from ..box.worker.answers import Traced
from ..box.worker.messages import Call
from ..course import Exercise
from ..public.heads import Heads
from ..training.plan import attention_of
from ..training.recorded import SENTENCE, Recorded, read
from .axes import axes_of
from .calls import Look
from .heads import heads_of
from .plot import Band, Panel, all_bands

_ALIKE = 1e-3  # of an output
_SPACE = "␣"


@dataclass(frozen=True)
class SentenceLook(Look):
    """The attention of one block of the trained model, with what the block takes for the sentence."""

    block: int = 0

    @property
    def title(self) -> str:
        """As a picture names it."""
        return f"block {self.block + 1} of a trained model"


def sentence_looks(exercise: Exercise) -> list[SentenceLook]:
    """One for each block; none where the exercise has no module to train. Raises CourseError."""
    if exercise.train is None:
        return []
    return list(_looks(exercise, read(exercise.curve)))


def _looks(exercise: Exercise, recorded: Recorded) -> Iterator[SentenceLook]:
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
                yield SentenceLook(call, given, True, signature, axes, block)
                break


def every_band(chosen: Sequence[Look], traced: Sequence[Traced]) -> list[Band]:
    """What the calls show, those for the sentence last."""
    pairs = list(zip(chosen, traced, strict=False))
    plain = [(look, each) for look, each in pairs if not isinstance(look, SentenceLook)]
    shown = all_bands([look for look, _ in plain], [each for _, each in plain])
    of_sentence = [
        band for look, each in pairs if isinstance(look, SentenceLook) for band in sentence_bands(look, each)
    ]
    return [*shown, *of_sentence]


def sentence_bands(look: SentenceLook, traced: Traced) -> list[Band]:
    """The student's heads, and below them the reference's where these are other ones; nothing where none were seen."""
    found = heads_of(traced, look.axes)
    if found is None:
        return []
    alike = _is_alike(look, traced)
    shown = [_band(f"your heads, {'as' if alike else 'not as'} the reference's", look, found)]
    if not alike and look.heads is not None:
        shown.append(_band("the reference's heads", look, look.heads))
    return shown


def _band(whose: str, look: SentenceLook, heads: Heads) -> Band:
    """A panel for each head, its rows and columns the sentence's characters."""
    panels = tuple(Panel(f"head {h}", table, "weights") for h, table in enumerate(heads.weights))
    labels = tuple(_SPACE if character == " " else character for character in SENTENCE)
    return Band(f"“{SENTENCE}”, {look.title}: {whose}", panels, "query", "key", labels, labels)


def _is_alike(look: SentenceLook, traced: Traced) -> bool:
    output = traced.reply.outputs[0].tensor if traced.reply.outputs else None
    if output is None or output.shape != look.expected.shape:
        return False
    return torch.allclose(output, look.expected, atol=_ALIKE)
