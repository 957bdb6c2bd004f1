"""Several calls of one function or of one instance, the later ones with what the earlier ones returned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from ..box.worker.answers import Reply
from ..box.worker.form import Form, Path
from ..box.worker.messages import Call, FollowUp, Returned
from .answer import Answer

MOST_OUTPUTS = 512  # of one sequence: a reply has room for no more


@dataclass(frozen=True)
class Part:
    """What a call of a sequence will return, or a part of it, to be handed to a later call. It holds no data."""

    step: int
    form: Form = field(repr=False)
    path: Path = ()

    def __getitem__(self, part: int | str) -> Part:
        """A part of it. Raises IndexError or KeyError where none is called so."""
        return replace(self, path=(*self.path, self.form.at(self.path).place(part)))


class CallSequence:
    """Calls that are made in one go, when all are listed: so each implementation is asked the same ones.

    calls = attempt.module("Counter").sequence()
    first = calls(x)
    calls(y, first["state"])
    one, two = calls.ask()
    """

    def __init__(self, call: Call, execute: Callable[[Call], Reply]) -> None:
        """call: without arguments."""
        self._call, self._execute = call, execute
        self._steps: list[FollowUp] = []
        self._mode: bool | None = None

    def train(self, mode: bool = True) -> None:
        """Put the instance in training mode, or in eval mode, before the next call. Raises ValueError before the first one."""
        if not self._steps:
            raise ValueError("the mode of the first call is that of the module: module(…).training().sequence()")
        self._mode = mode

    def __call__(self, *args: Any, **kwargs: Any) -> Part:
        """List one more call."""
        self._steps.append(FollowUp(args, kwargs, self._mode).map(_handed))
        self._mode = None
        return Part(len(self._steps) - 1, self._call.form)

    def ask(self) -> list[Answer]:
        """Make the calls. Returns the answer to each. Raises ValueError where there are none, or too many."""
        if not self._steps:
            raise ValueError("a sequence without calls asks nothing")
        call = self._call.with_steps(tuple(self._steps))
        if call.outputs > MOST_OUTPUTS:
            raise ValueError(f"a sequence has at most {MOST_OUTPUTS} outputs; this one has {call.outputs}")
        reply = self._execute(call)
        return [Answer(call, reply, step) for step in range(len(self._steps))]


def _handed(value: object) -> object:
    return Returned(value.step, value.path) if isinstance(value, Part) else value
