"""The calls that questions are about, what an attempt does in each, line by line, and what edits of
it answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from ..box.connection import AttemptEnded, Connection, Spent
from ..box.level import Box
from ..box.loading import load
from ..box.replies import read_reply, read_traced
from ..box.worker import wire
from ..box.worker.answers import Reply, Step, Traced
from ..box.worker.limits import Limits
from ..box.worker.messages import Build, Call, TraceCall
from ..checks.cast import cast
from ..judge.axes import Axes
from ..submission import AttemptSource
from .choose_example import with_twin
from .example import Example

CROP = (64, 64, 64, 64)  # the numbers of a traced tensor, all of them in a call that was recorded
SECONDS = 2.0  # for all edits of one call: each needs some milliseconds
FEW = 24  # numbers that a question can list


class Runs:
    """An attempt in one process of the box, and edits of it in another, loaded one after the
    other.
    """

    def __init__(self, box: Box, limits: Limits, source: AttemptSource) -> None:
        self._box, self._limits, self._source = box, limits, source
        self._own: Connection | None = None
        self._edited: Connection | None = None
        # edits that ended their process, by an endless loop for instance
        self._ended: set[str] = set()

    def traced(self, call: Call) -> Traced | None:
        """Return the attempt's own run of a call; None where it does not come back."""
        try:
            self._own = self._own or load(self._box, self._limits, self._source.load()).connection
            return self._own.ask_for(
                read_traced, TraceCall(call, CROP), self._limits.seconds_per_call
            )
        except AttemptEnded:
            self._own = None
            return None

    def replies(self, call: Call, texts: Sequence[str]) -> list[Reply | None]:
        """Return the replies of edited texts to a call; None where one cannot be loaded, or does
        not come back.
        """
        pending = [text for text in texts if text not in self._ended]
        try:
            by_text = (
                dict(zip(pending, self._together(call, pending, SECONDS), strict=True))
                if pending
                else {}
            )
        except AttemptEnded:
            by_text = {text: self._alone(call, text) for text in pending}
        return [by_text.get(text) for text in texts]

    def _alone(self, call: Call, text: str) -> Reply | None:
        try:
            return self._together(call, [text], SECONDS / 2)[0]
        except AttemptEnded:
            self._ended.add(text)
            return None

    def _together(self, call: Call, texts: Sequence[str], seconds: float) -> list[Reply | None]:
        message = wire.encode(call)
        packed = [
            p
            for text in texts
            for p in (wire.encode(replace(self._source, source=text).load()), message)
        ]
        connection, self._edited = self._edited, None
        connection = connection or self._box.attempt(self._limits)
        connection.spent = Spent()
        replies = connection.ask_all(packed, read_reply, seconds)
        self._edited = connection
        return [
            None if loaded.raised else reply
            for loaded, reply in zip(replies[::2], replies[1::2], strict=True)
        ]

    def close(self) -> None:
        """End both processes."""
        for connection in filter(None, (self._own, self._edited)):
            connection.close()


@dataclass(frozen=True)
class Small:
    """A call of one function, in float32.

    traced: the attempt's own run of it. beside: by a step's id the same one in its twin.
    """

    example: Example
    traced: Traced
    twin_steps: Mapping[int, tuple[Axes, Step | None]]

    @property
    def runs(self) -> str:
        """The call in words: its sizes by name, its mode, and its whole numbers and truth values, 1
        for True.
        """
        sizes = ", ".join(f"{name} = {size}" for name, size in self.example.axes.sizes.items())
        mode = ", in eval mode" if isinstance(self.example.call.subject, Build) else ""
        tables = (
            (n, v) for n, v in self.example.arguments.items() if isinstance(v, Tensor) and v.dim()
        )
        sentences = [
            f" {n} is {v.long().tolist()}."
            for n, v in tables
            if not v.is_floating_point() and v.numel() <= FEW
        ]
        return f"{self.example.title} runs with {sizes}{mode}.{''.join(sentences)}"

    def names(self, step: Step) -> list[str]:
        """Return what the axes of a step's output are called; the size where no name holds in the
        twin, too.
        """
        twin_axes, twin = self.twin_steps[id(step)]
        shape = step.outputs[0].shape
        twin_shape = twin.outputs[0].shape if twin and twin.outputs else ()
        if twin is step or len(shape) != len(twin_shape):
            return list(map(str, shape))
        return [
            self.example.axes.name(size, twin_axes, same)
            for size, same in zip(shape, twin_shape, strict=True)
        ]


def small_call(runs: Runs, example: Example) -> Small | None:
    """Return the example with what the attempt does in it, and in its twin; None where the attempt
    fails on it.
    """
    call = cast(example.call, "float32")
    traced = runs.traced(call)
    output = traced.reply.outputs[0].tensor if traced and traced.reply.outputs else None
    if traced is None or traced.reply.raised is not None or output is None:
        return None
    example = with_twin(replace(example, call=call), (example, *example.instead), runs.traced)
    return Small(
        example,
        traced,
        dict(zip(map(id, traced.steps), example.twin_steps(traced.steps), strict=True)),
    )
