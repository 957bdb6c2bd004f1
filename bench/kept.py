"""A box whose answers are kept in a file, so that another engine can judge the same answers without running an attempt.

A reply belongs to what was loaded into a process and to a message, the n-th time that the process gets it. What is not
kept yet is asked in a real box and kept, so an engine that asks more fills the file up. A reply is the attempt's own
bytes: whatever reads them is part of what is compared.
"""

from __future__ import annotations

import hashlib
import shelve
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from manyheads.box.connection import Answer, AttemptEnded, Connection, End, Spent
from manyheads.box.level import Box
from manyheads.box.replies import BadReply
from manyheads.box.worker import wire
from manyheads.box.worker.limits import Limits
from manyheads.box.worker.messages import Load, Message

Ask = Callable[[Connection], bytes]  # sends a message to a real process


class KeptBox:
    """Starts a process only for what the file does not hold. `asked`: how many messages a real process has answered."""

    def __init__(self, box: Box, path: Path) -> None:
        """Open the file, or make it."""
        self.level = box.level
        self.start, self.asked = box.attempt, 0
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: shelve.Shelf[tuple[str, bytes]] = shelve.DbfilenameShelf(str(path))

    def attempt(self, limits: Limits) -> Connection:
        """Return a connection that looks into the file first."""
        return _KeptConnection(self, limits)

    def reply(self, message: str, ask: Callable[[], bytes]) -> bytes:
        """Return the reply to what this digest stands for. Raises AttemptEnded where it ended the process."""
        if message not in self._file:
            self.asked += 1
            try:
                self._file[message] = "", ask()
            except AttemptEnded as ended:
                self._file[message] = ended.end.value, str(ended).encode()
        end, reply = self._file[message]
        if end:
            raise AttemptEnded(End(end), reply.decode())
        return bytes(reply)

    def __enter__(self) -> KeptBox:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


class _KeptConnection(Connection):
    def __init__(self, box: KeptBox, limits: Limits) -> None:
        self.spent = Spent()
        self._box, self._its_limits = box, limits
        self._real: Connection | None = None
        self._sent: list[Ask] = []  # so far, for a process that is started late
        self._loaded = hashlib.sha256()
        self._counts: Counter[bytes] = Counter()

    def ask_for(self, read: Callable[[bytes], Answer], message: Message, seconds: float) -> Answer:
        data = wire.encode(message)
        if isinstance(message, Load):
            self._loaded.update(data)
        return self._answered(read, data, lambda process: process.ask_for(bytes, message, seconds))

    def ask_all(self, packed: Sequence[bytes], read: Callable[[bytes], Answer], seconds: float) -> list[Answer]:
        def asking(data: bytes) -> Ask:
            return lambda process: process.ask_all([data], bytes, seconds)[0]

        return [self._answered(read, data, asking(data)) for data in packed]

    def close(self) -> None:
        if self._real is not None:
            self._real.close()

    def _answered(self, read: Callable[[bytes], Answer], data: bytes, ask: Ask) -> Answer:
        self._counts[data] += 1
        loaded = self._loaded.copy()
        loaded.update(b"%d %s" % (self._counts[data], data))
        reply = self._box.reply(loaded.hexdigest(), lambda: ask(self._process()))
        self._sent.append(ask)
        self.spent.received += len(reply)
        try:
            return read(reply)
        except BadReply as error:
            self.close()
            raise AttemptEnded(End.BAD_REPLY, f"The attempt sent something that is not an answer: {error}.") from None

    def _process(self) -> Connection:
        """Return the real process, which has been told all that this connection was."""
        if self._real is None:
            self._real = self._box.start(self._its_limits)
            for ask in self._sent:
                ask(self._real)
        return self._real
