"""One pytest session that runs hidden checks over many attempts.

Starting pytest and collecting costs far more than a check, so it is done once: the
session runs in a thread of its own and its test loop waits for turns.
"""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
import torch

from ..errors import CourseFault
from .belt import Belt
from .plugin import CheckOutcome, JudgePlugin
from .turn import Turn

HANG_SECONDS = 300  # the second belt: a check that hangs in the judge itself ends the judge
_OPTIONS = (
    "-s --disable-plugin-autoload --import-mode=importlib --noconftest -p pytest_timeout "
    "-p no:cacheprovider -p no:terminal -p no:faulthandler -p no:unraisableexception -p no:threadexception "
    "-p no:warnings -p no:logging -p no:junitxml -p no:doctest "
    f"-o timeout={HANG_SECONDS} -o timeout_method=thread"
).split()


class GraderFault(CourseFault):
    """The grader itself is broken: a hidden check that cannot be collected, or that raises an error of its own."""


@dataclass(frozen=True)
class _Stop:
    pass


class CheckSession:
    """Runs turns one after another. Use as a context manager."""

    def __init__(self, files: Sequence[Path], device: str = "cpu") -> None:
        """Collect these check files, without what is for another device alone. Raises GraderFault."""
        self._turns: queue.Queue[Turn | _Stop] = queue.Queue()
        self._answers: queue.Queue[list[CheckOutcome] | BaseException] = queue.Queue()
        for file in files:  # or pytest takes a module of that name from an earlier session, whatever its folder
            sys.modules.pop(file.stem, None)
        # Checks are many and their tensors tiny: waking threads for them costs four times as much.
        torch.set_num_threads(1)
        self._belt = Belt(HANG_SECONDS)
        self._plugin = JudgePlugin(self._next_turn, self._answers.put, device, self._belt)
        arguments = [*_OPTIONS, "-c", "/dev/null", "--rootdir", str(files[0].parent), *map(str, files)]
        self._thread = threading.Thread(target=self._run, args=(arguments,), name="checks", daemon=True)
        self._thread.start()
        self._receive()

    @property
    def checks(self) -> dict[Path, list[CheckOutcome]]:
        """What was collected, by file, as checks that nobody has attempted."""
        return self._plugin.collected

    def run(self, turn: Turn) -> list[CheckOutcome]:
        """Run all checks of the turn's file. Raises GraderFault where the session itself broke."""
        self._turns.put(turn)
        return self._receive()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._turns.put(_Stop())
        self._thread.join()

    def _next_turn(self) -> Turn | None:
        turn = self._turns.get()
        return None if isinstance(turn, _Stop) else turn

    def _receive(self) -> list[CheckOutcome]:
        answer = self._answers.get()
        if isinstance(answer, BaseException):
            raise GraderFault(
                f"the hidden checks cannot be run: {answer}. Next: pytest grader/hidden/checks --collect-only"
            )
        return answer

    def _run(self, arguments: list[str]) -> None:
        try:
            status = pytest.main(arguments, plugins=[self._plugin, self._belt])
            problem = self._plugin.problem or f"pytest ended with status {int(status)}"
        except BaseException as error:
            problem = repr(error)
        self._answers.put(RuntimeError(problem))
