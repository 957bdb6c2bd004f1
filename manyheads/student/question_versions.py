"""What questions are made from: small calls of an attempt, and what its own text and edited versions of it answer to them."""

from __future__ import annotations

import hashlib
import math
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ..box.connection import AttemptEnded, Connection, End
from ..box.level import Box
from ..box.loading import load
from ..box.replies import read_reply
from ..box.traces import read_traced
from ..box.worker import wire
from ..box.worker.answers import Reply, Traced
from ..box.worker.limits import Limits
from ..box.worker.messages import Call, TraceCall
from ..checks.transcript import target_of
from ..course import Exercise
from ..diagnosis.edit_candidates import candidates
from ..diagnosis.edit_text import Edit
from ..diagnosis.recording import Fingerprints
from ..submission import AttemptSource, lines_of
from .choose_example import examples
from .question import Version
from .question_lines import ChangedLine, changed_line, plain_lines, shown_code, sizes_written
from .small_calls import Small, small_call

EDITS, TOGETHER = 32, 16  # versions of what one call reaches, and how many a process answers for together
SECONDS = 2.0  # for the versions that one process answers for: each needs some milliseconds


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
    processes: _Processes
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
        self._calls += [call] * bool(new)
        for text, reply in zip(new, self.processes.replies(call, new), strict=True):
            self._known[id(call), text] = reply
        return [self._known[id(call), text] for text in texts]

    def line(self, number: int) -> str:
        """Return what a line is called, and its code."""
        lines = lines_of(self.source.source)
        return f"Line {number}: {shown_code(lines[number - 1])}" if 0 < number <= len(lines) else ""

    def close(self) -> None:
        """End all processes."""
        self.processes.close()


@dataclass(frozen=True)
class _Known:
    material: Material
    text: str

    def reply(self, call: Call) -> Reply:
        (reply,) = self.material.replies(call, [self.text])
        return reply or Reply()

    def traced(self, call: TraceCall) -> Traced:
        return self.material.processes.traced(call, self.text)


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
        """Raise AttemptEnded where the seconds for all questions were too few: then some are missing."""
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

    seconds: for all that is asked of the attempt; after them nothing more is, and `processes.refuse_late` raises.
    Raises AttemptEnded where the attempt does not come back.
    """
    digest = hashlib.sha256(source.source.encode("utf-8", "surrogatepass")).hexdigest()
    rng = random.Random(f"{seed} {exercise.id} {digest}")
    processes = _Processes(box, limits, source, seconds)
    try:
        once = (example for example in examples(exercise, fingerprints) if not example.call.then)
        chosen = (small_call(processes.traced, exercise, example) for example in once)
        text = source.source
        smalls = tuple(
            replace(
                s,
                versions=_versions(source, target_of(s.call), rng),
                written=sizes_written(text),
                plain=plain_lines(text),
            )
            for s in chosen
            if s is not None
        )
    except AttemptEnded:
        processes.close()
        raise
    return Material(exercise, fingerprints, source, smalls, rng, box, limits, processes)


def _versions(source: AttemptSource, target: str, rng: random.Random) -> tuple[ChangedLine, ...]:
    edits = candidates(source.source, [target])
    changed = [line for edit in edits if (line := changed_line(edit)) is not None]
    return tuple(rng.sample(changed, min(EDITS, len(changed))))
