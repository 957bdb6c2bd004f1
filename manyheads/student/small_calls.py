"""Small calls that questions are about, what an attempt does in each, line by line, and what edits of it answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..box.connection import AttemptEnded, Connection
from ..box.level import Box
from ..box.loading import load
from ..box.replies import read_reply
from ..box.traces import read_traced
from ..box.worker import wire
from ..box.worker.answers import Reply, Traced
from ..box.worker.limits import Limits
from ..box.worker.messages import Build, Call, TraceCall
from ..checks.cast import cast, map_call
from ..checks.transcript import target_of
from ..course import Exercise
from ..judge.axes import axes_of
from ..submission import AttemptSource
from .example import Example
from .resize import layouts

CROP = (24, 24, 24, 24)  # the numbers of a traced tensor, all of them where a call is small
SECONDS = 2.0  # for all edits of one call: each needs some milliseconds

FEW = 24  # numbers that a question can list
# New sizes, in the order of the old ones. Primes, so that no product or half of one is another; some exercises need even
# ones, or multiples.
_SIZES = (
    (4,), (2, 4), (2, 3, 5, 7, 11, 13, 17), (3, 5, 8, 11, 13, 17, 19), (3, 5, 7, 8, 11, 13, 17), (2, 4, 6, 8, 10, 12, 14),
    (1, 2, 3, 4, 5, 6, 7),
)  # fmt: skip


class Runs:
    """An attempt in one process of the box, and edits of it in another, loaded one after the other."""

    def __init__(self, box: Box, limits: Limits, source: AttemptSource) -> None:
        self._box, self._limits, self._source = box, limits, source
        self._own: Connection | None = None
        self._edited: Connection | None = None
        self._ended: set[str] = set()  # edits that ended their process, by an endless loop for instance

    def traced(self, call: Call) -> Traced | None:
        """Return the attempt's own run of a call; None where it does not come back."""
        try:
            self._own = self._own or load(self._box, self._limits, self._source.load()).connection
            return self._own.ask_for(read_traced, TraceCall(call, CROP), self._limits.seconds_per_call)
        except AttemptEnded:
            self._own = None
            return None

    def replies(self, call: Call, texts: Sequence[str]) -> list[Reply | None]:
        """Return the replies of edited texts to a call; None where one cannot be loaded, or does not come back."""
        asked = [text for text in texts if text not in self._ended]
        try:
            found = dict(zip(asked, self._together(call, asked, SECONDS), strict=True)) if asked else {}
        except AttemptEnded:
            found = {text: self._alone(call, text) for text in asked}
        return [found.get(text) for text in texts]

    def _alone(self, call: Call, text: str) -> Reply | None:
        try:
            return self._together(call, [text], SECONDS / 2)[0]
        except AttemptEnded:
            self._ended.add(text)
            return None

    def _together(self, call: Call, texts: Sequence[str], seconds: float) -> list[Reply | None]:
        message = wire.encode(call)
        packed = [p for text in texts for p in (wire.encode(replace(self._source, source=text).load()), message)]
        connection, self._edited = self._edited, None
        start = 0.0 if connection else self._box.start_seconds
        connection = connection or self._box.attempt(self._limits)
        replies = connection.ask_all(packed, read_reply, seconds + start)
        self._edited, connection.received = connection, 0
        return [None if loaded.raised else reply for loaded, reply in zip(replies[::2], replies[1::2], strict=True)]

    def close(self) -> None:
        """End both processes."""
        for connection in (self._own, self._edited):
            if connection is not None:
                connection.close()


@dataclass(frozen=True)
class Small:
    """A small call of one function, in float32. traced: the attempt's own run of it. written: the numbers in its text."""

    example: Example
    traced: Traced
    written: frozenset[int]

    @property
    def runs(self) -> str:
        """The call in words: its sizes by name, its mode, and its whole numbers and truth values, 1 for True."""
        sizes = ", ".join(f"{name} = {size}" for name, size in self.example.axes.sizes.items())
        mode = ", in eval mode" if isinstance(self.example.call.subject, Build) else ""
        tables = ((n, v) for n, v in self.example.arguments.items() if isinstance(v, Tensor) and v.dim())
        told = [f" {n} is {v.long().tolist()}." for n, v in tables if not v.is_floating_point() and v.numel() <= FEW]
        return f"{self.example.title} runs with {sizes}{mode}.{''.join(told)}"

    @property
    def names(self) -> dict[int, str]:
        """The name of each size that nothing else in the code can have: no other axis, no half of one, no number written out."""
        sizes = list(self.example.axes.sizes.values())
        others = {size // 2 for size in sizes if size % 2 == 0} | {2 * size for size in sizes} | self.written
        return {n: name for name, n in self.example.axes.sizes.items() if sizes.count(n) == 1 and n not in others}

    def named(self, shape: Sequence[int]) -> str:
        """Return a shape in names: (B, T, C); "" where a size has none that is certain."""
        return f"({', '.join(self.names[n] for n in shape)})" if all(n in self.names for n in shape) else ""


def small_call(runs: Runs, exercise: Exercise, example: Example, written: frozenset[int]) -> Small | None:
    """Return the example with small sizes that have names, else as it is recorded; None where the attempt fails on it.

    Sizes are preferred of which no two are equal.
    """
    signatures = {name: exercise.signatures(name) for name in exercise.shapes}
    found = None
    for call in (*_resized(example.call), cast(example.call, "float32")):
        traced = runs.traced(call)
        output = traced.reply.outputs[0].tensor if traced and traced.reply.outputs else None
        if traced is None or traced.reply.raised is not None or output is None:
            continue
        fits = (axes_of(one, call, output.shape, signatures) for one in signatures.get(target_of(call), ()))
        axes = next(filter(None, fits), None) if signatures else example.axes
        if axes is None:
            continue
        small = Small(replace(example, call=call, axes=axes), traced, written)
        if len(set(axes.sizes.values())) == len(axes.sizes):
            return small
        found = found or small
    return found


def _resized(call: Call) -> Iterator[Call]:
    for layout in layouts(call):
        for sizes in _SIZES:
            if len(layout.axes) <= len(sizes):
                yield map_call(layout.at(dict(zip(layout.axes, sizes, strict=False))), _filled)


def _filled(tensor: Tensor) -> Tensor:
    """Return a tensor as it is; whole numbers count upwards, and of truth values some are False, never the first of a row."""
    if tensor.dtype == torch.bool and tensor.dim():
        numbers = torch.arange(tensor.numel()).view(tensor.shape)
        return (numbers % 3 != 2) | (torch.arange(tensor.shape[-1]) == 0)
    if not tensor.is_floating_point() and tensor.dim():
        return torch.arange(tensor.shape[-1], dtype=tensor.dtype).expand(tensor.shape).contiguous()
    return tensor
