"""A box for tests that ask how many processes there were."""

from manyheads.box.connection import Connection
from manyheads.box.level import Box, Level
from manyheads.box.worker.limits import Limits


class CountingBox:
    """A box that counts the attempts in it."""

    level = Level.NAMESPACES

    def __init__(self, box: Box) -> None:
        self.attempts = 0
        self._box = box

    def attempt(self, limits: Limits) -> Connection:
        self.attempts += 1
        return self._box.attempt(limits)
