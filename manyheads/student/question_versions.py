"""What questions are made from: small calls, the attempt's answers and trace, and the answers of edited versions of it."""

from __future__ import annotations

import ast
import builtins
import hashlib
import io
import math
import random
import time
import tokenize
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from ..box.connection import AttemptEnded, Connection, End
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
from ..diagnosis.edit_candidates import candidates
from ..diagnosis.edit_text import Edit
from ..diagnosis.reached_parts import name_of
from ..diagnosis.recording import Fingerprints
from ..diagnosis.resize import layouts
from ..submission import AttemptSource, lines_of
from ..submission.source_text import printable
from ..submission.unwritten import DEFINITIONS
from .axes import Axes, axes_of
from .choose_example import examples
from .example import Example
from .question import Version

EDITS, TOGETHER = 32, 16  # versions of what one call reaches, and how many a process answers for together
SECONDS = 2.0  # for the versions that one process answers for: each needs some milliseconds
FEW = 24  # numbers that a question can list
CROP = (24, 24, 24, 24)  # the numbers of a traced tensor, all of them where a call is small
# New sizes, in the order of the old ones. Primes, so that no product or half of one is another; some exercises need even
# ones, or multiples.
_SIZES = (
    (4,), (2, 4), (2, 3, 5, 7, 11, 13, 17), (3, 5, 8, 11, 13, 17, 19), (3, 5, 7, 8, 11, 13, 17), (2, 4, 6, 8, 10, 12, 14),
    (1, 2, 3, 4, 5, 6, 7),
)  # fmt: skip
_OF_AXES = frozenset(
    "transpose permute swapaxes swapdims movedim softmax sum mean cat concat stack size unsqueeze squeeze".split()
)
LONGEST = 120  # characters of a line that can be read in an option


@dataclass(frozen=True)
class ChangedLine:
    """An edit of one line: its number, and its text before and after."""

    edit: Edit
    number: int
    before: str
    after: str


@dataclass(frozen=True)
class Small:
    """A small call of one function.

    traced: the attempt's own run of it. versions: of what it reaches, in a random order. written: the numbers in its text.
    plain: its lines that are one statement with one result.
    """

    example: Example
    traced: Traced
    versions: tuple[ChangedLine, ...] = ()
    written: frozenset[int] = frozenset()
    plain: frozenset[int] = frozenset()

    @property
    def call(self) -> Call:
        """The call, in float32."""
        return self.example.call

    @property
    def reply(self) -> Reply:
        """The attempt's own answer."""
        return self.traced.reply

    @property
    def axes(self) -> Axes:
        """The sizes by name."""
        return self.example.axes

    @property
    def runs(self) -> str:
        """The call in words: its sizes by name, its mode, and its whole numbers and truth values, 1 for True."""
        sizes = ", ".join(f"{name} = {size}" for name, size in self.axes.sizes.items())
        mode = ", in eval mode" if isinstance(self.call.subject, Build) else ""
        tables = ((n, v) for n, v in self.example.arguments.items() if isinstance(v, Tensor) and v.dim())
        told = [f" {n} is {v.long().tolist()}." for n, v in tables if not v.is_floating_point() and v.numel() <= FEW]
        return f"{self.example.title} runs with {sizes}{mode}.{''.join(told)}"

    @property
    def names(self) -> dict[int, str]:
        """The name of each size that nothing else in the code can have: no other axis, no half of one, no number written out."""
        sizes = list(self.axes.sizes.values())
        others = {size // 2 for size in sizes if size % 2 == 0} | {2 * size for size in sizes} | self.written
        return {n: name for name, n in self.axes.sizes.items() if sizes.count(n) == 1 and n not in others}

    def named(self, shape: Sequence[int]) -> str:
        """Return a shape in names: (B, T, C); "" where a size has none that is certain."""
        return f"({', '.join(self.names[n] for n in shape)})" if all(n in self.names for n in shape) else ""


@dataclass
class Material:
    """All that templates may look at."""

    exercise: Exercise
    fingerprints: Fingerprints
    source: AttemptSource
    smalls: tuple[Small, ...]
    rng: random.Random
    box: Box
    limits: Limits
    _processes: _Processes
    _known: dict[tuple[int, str], Reply | None] = field(default_factory=dict)
    _calls: list[Call] = field(default_factory=list)  # keeps their ids

    @property
    def own(self) -> Version:
        """The student's own version."""
        return _Known(self, "")

    def version(self, edit: Edit) -> Version:
        """Return the version with this edit."""
        return _Known(self, edit.after)

    def replies(self, call: Call, texts: Sequence[str]) -> list[Reply | None]:
        """Return the replies to a call of the versions with these texts; None where one does not come back."""
        new = [text for text in texts if (id(call), text) not in self._known]
        self._calls.append(call)
        for text, reply in zip(new, self._processes.replies(call, new), strict=True):
            self._known[id(call), text] = reply
        return [self._known[id(call), text] for text in texts]

    def traced(self, call: TraceCall, text: str) -> Traced:
        """Return the trace of a version. Raises AttemptEnded."""
        return self._processes.traced(call, text)

    def line(self, number: int) -> str:
        """Return what a line is called, and its code."""
        lines = lines_of(self.source.source)
        return f"Line {number}: {_code(lines[number - 1])}" if 0 < number <= len(lines) else ""

    def close(self) -> None:
        """End all processes."""
        self._processes.close()

    def refuse_late(self) -> None:
        """Raise AttemptEnded where the seconds for all questions were too few: then some are missing."""
        self._processes.refuse_late()


@dataclass(frozen=True)
class _Known:
    material: Material
    text: str

    def reply(self, call: Call) -> Reply:
        (reply,) = self.material.replies(call, [self.text])
        return reply or Reply()

    def traced(self, call: TraceCall) -> Traced:
        return self.material.traced(call, self.text)


class _Processes:
    """The versions in the box. Many are loaded into one process, one after the other, and answer one call each."""

    def __init__(self, box: Box, limits: Limits, source: AttemptSource, seconds: float) -> None:
        self._box, self._limits, self._source = box, limits, source
        self._seconds, self._until, self._is_late = seconds, time.monotonic() + seconds, False
        self._ended: set[str] = set()  # versions that ended their process, by an endless loop for instance
        self._own: Connection | None = None
        self._shared: Connection | None = None

    def replies(self, call: Call, texts: Sequence[str]) -> list[Reply | None]:
        found: dict[str, Reply | None] = {}
        asked = [text for text in texts if text not in self._ended]
        for start in range(0, len(asked), TOGETHER):
            some = asked[start : start + TOGETHER]
            if not self._in_time():
                break
            try:
                found |= zip(some, self._together(call, some, SECONDS), strict=True)
            except AttemptEnded:
                found |= {text: self._alone(call, text) for text in some}
        return [found.get(text) for text in texts]

    def _alone(self, call: Call, text: str) -> Reply | None:
        """Return the reply of one version; None where it ends its process, after which it is asked no more."""
        if self._in_time():
            try:
                return self._together(call, [text], SECONDS / 2)[0]
            except AttemptEnded:
                self._ended.add(text)
        return None

    def traced(self, call: TraceCall, text: str = "") -> Traced:
        if not self._in_time():
            self.refuse_late()
        if text:
            connection = load(self._box, self._limits, replace(self._source, source=text).load()).connection
            try:
                return connection.ask_for(read_traced, call, self._limits.seconds_per_call)
            finally:
                connection.close()
        self._own = self._own or load(self._box, self._limits, self._source.load()).connection
        try:
            return self._own.ask_for(read_traced, call, self._limits.seconds_per_call)
        except AttemptEnded:
            self._own = None
            raise

    def _in_time(self) -> bool:
        self._is_late = self._is_late or time.monotonic() > self._until
        return not self._is_late

    def refuse_late(self) -> None:
        if self._is_late:
            raise AttemptEnded(End.TIMEOUT, f"Its questions need more than {self._seconds:g} seconds.")

    def _together(self, call: Call, texts: Sequence[str], seconds: float) -> list[Reply | None]:
        message = wire.encode(call)
        sources = [replace(self._source, source=text) if text else self._source for text in texts]
        packed = [part for source in sources for part in (wire.encode(source.load()), message)]
        first = 0.0 if self._shared else self._box.start_seconds
        self._shared = self._shared or self._box.attempt(self._limits)
        try:
            replies = self._shared.ask_all(packed, read_reply, seconds + first)
        except AttemptEnded:
            self._shared = None
            raise
        self._shared.received = 0
        return [None if loaded.raised else reply for loaded, reply in zip(replies[::2], replies[1::2], strict=True)]

    def close(self) -> None:
        for connection in (self._own, self._shared):
            if connection is not None:
                connection.close()
        self._own = self._shared = None


def material_of(
    box: Box,
    limits: Limits,
    exercise: Exercise,
    fingerprints: Fingerprints,
    source: AttemptSource,
    seed: int,
    seconds: float = math.inf,
) -> Material:
    """Gather what questions about this attempt are made from. The same code and seed give the same.

    seconds: for all that is asked of the attempt; after them nothing more is, and `Material.refuse_late` raises.
    Raises AttemptEnded where the attempt does not come back.
    """
    digest = hashlib.sha256(source.source.encode("utf-8", "surrogatepass")).hexdigest()
    rng = random.Random(f"{seed} {exercise.id} {digest}")
    processes = _Processes(box, limits, source, seconds)
    try:
        once = (example for example in examples(exercise, fingerprints) if not example.call.then)
        chosen = (_small(processes, exercise, example) for example in once)
        text = source.source
        smalls = tuple(
            replace(s, versions=_versions(source, target_of(s.call), rng), written=_written(text), plain=_plain(text))
            for s in chosen
            if s is not None
        )
    except AttemptEnded:
        processes.close()
        raise
    return Material(exercise, fingerprints, source, smalls, rng, box, limits, processes)


def _written(text: str) -> frozenset[int]:
    """Return the numbers in a text that may be sizes: those among arguments, but of functions that take axes."""
    calls = [node for node in nodes_of(text) if isinstance(node, ast.Call)]
    given = (
        c for call in calls if name_of(call) not in _OF_AXES for c in (*call.args, *(k.value for k in call.keywords))
    )
    parts = (part for value in given for part in (value.elts if isinstance(value, ast.Tuple | ast.List) else [value]))
    return frozenset(part.value for part in parts if isinstance(part, ast.Constant) and type(part.value) is int)


def nodes_of(text: str) -> list[ast.AST]:
    """Return the nodes of the definitions in a text."""
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        return [node for part in ast.parse(text).body if isinstance(part, DEFINITIONS) for node in ast.walk(part)]
    return []


def _plain(text: str) -> frozenset[int]:
    """Return the lines that are one whole statement, of which a reader can say what its result is."""
    nodes = nodes_of(text)
    statements = [node for node in nodes if isinstance(node, ast.stmt)]
    starts = [node.lineno for node in statements]
    own = {node.name for node in nodes if isinstance(node, DEFINITIONS)} | set(dir(builtins)) | {"append"}
    return frozenset(
        node.lineno
        for node in statements
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Return | ast.Expr)
        and node.lineno == node.end_lineno
        and starts.count(node.lineno) == 1
        and all(isinstance(target, ast.Name | ast.Attribute) for target in getattr(node, "targets", ()))
        and not isinstance(getattr(node, "target", None), ast.Subscript)
        and isinstance(node.value, ast.Call | ast.BinOp | ast.UnaryOp | ast.Subscript | ast.Attribute | ast.Compare)
        and not (isinstance(node.value, ast.Call) and name_of(node.value) in own)
        and not any(isinstance(part, ast.Lambda) for part in ast.walk(node))
    )


def _versions(source: AttemptSource, target: str, rng: random.Random) -> tuple[ChangedLine, ...]:
    edits = candidates(source.source, [target])
    changed = [line for edit in edits if (line := _changed_line(edit)) is not None]
    return tuple(rng.sample(changed, min(EDITS, len(changed))))


def _small(processes: _Processes, exercise: Exercise, example: Example) -> Small | None:
    """Return the example with small sizes that have names, else as it is recorded; None where the attempt fails on it.

    Sizes are preferred of which no two are equal.
    """
    found = None
    for call in (*_resized(example.call), cast(example.call, "float32")):
        try:
            traced = processes.traced(TraceCall(call, CROP))
        except AttemptEnded:
            continue
        output = traced.reply.outputs[0].tensor if traced.reply.outputs else None
        if traced.reply.raised is not None or output is None:
            continue
        axes = _axes(exercise, call, output) if exercise.shapes else example.axes
        if axes is None:
            continue
        small = Small(replace(example, call=call, expected=output, axes=axes, others=(), instead=()), traced)
        if len(set(axes.sizes.values())) == len(axes.sizes):
            return small
        found = found or small
    return found


def _axes(exercise: Exercise, call: Call, output: Tensor) -> Axes | None:
    signatures = {name: exercise.signatures(name) for name in exercise.shapes}
    fits = (axes_of(one, call, output.shape, signatures) for one in signatures.get(target_of(call), ()))
    return next((axes for axes in fits if axes is not None), None)


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


def _changed_line(edit: Edit) -> ChangedLine | None:
    """Return the line that an edit changes; None where it changes several, or none."""
    before, after = edit.before.split("\n"), edit.after.split("\n")
    if len(before) != len(after) or ("self." in edit.after and "self." not in edit.before):
        return None
    places = [place for place, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    if len(places) != 1:
        return None
    (place,) = places
    old, new = _code(before[place]), _code(after[place])
    return ChangedLine(edit, place + 1, old, new) if old != new and len(new) <= LONGEST else None


def _code(line: str) -> str:
    """Return a line as it can be shown, without its comment, which may say what is asked."""
    line = line.strip()
    with suppress(tokenize.TokenError, SyntaxError):  # of a line that is not a whole statement
        for token in tokenize.generate_tokens(io.StringIO(line).readline):
            if token.type == tokenize.COMMENT:
                line = line[: token.start[1]]
    return printable(line.strip())
