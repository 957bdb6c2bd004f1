"""Import trusted code, and run it as a replacement for an attempt or with a cache."""

from __future__ import annotations

import dataclasses
import hashlib
import sys
import types
from collections.abc import Callable, Collection, Container, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar

from torch import Tensor

from ..box.connection import AttemptEnded
from ..box.worker.answers import Reply
from ..box.worker.limits import MIB
from ..box.worker.messages import Call
from ..errors import CourseFault
from .explain import is_dtype_fault, is_refusal
from .implementation import LocalRunner, Runner
from .transcript import Exchange, Question


def changes_in(reply: Reply) -> int:
    """Return how often the reply's tensors have been changed in place: where this number grows, a check has altered the reply."""
    return sum(tensor._version for tensor in _tensors(reply))


def _tensors(reply: Reply) -> list[Tensor]:
    tensors = [*(out.tensor for out in reply.outputs), *reply.gradients.values()]
    return [tensor for tensor in tensors if tensor is not None]


def bytes_of(reply: Reply) -> int:
    """Return the size of its tensors."""
    return sum(tensor.nbytes for tensor in _tensors(reply))


# A reply of more bytes is not kept: a mask of a fixed size meets many pairs, each of which answers with megabytes then.
LARGE = MIB // 4
Kept = TypeVar("Kept")


@dataclass
class _Known:
    """What one piece of trusted code has answered. owner: lives as long as this, so that its id stays its own."""

    owner: object
    replies: dict[int, tuple[Reply, int]] = field(default_factory=dict)  # by the call's id, with its changes so far


class Replays:
    """What trusted code (the reference, mutants) answered to calls that are made for one attempt after another."""

    def __init__(self, held: Container[int] = (), hold: Callable[[Call], Call] = lambda call: call) -> None:
        """held: the ids of these calls, which must live as long as this object. Replies to others are not kept.

        hold: gives for a call the equal one that is held from now on.
        """
        self.bytes = 0  # of all tensors that are kept
        self.large_bytes = 0  # of all replies so far that were too large to be kept
        self.hold = hold
        self._held = held
        self._known: dict[Hashable, _Known] = {}  # by whose they are: the id of a namespace, or a pair of mutants
        self._kept: dict[tuple[Hashable, int], tuple[Any, int]] = {}  # with its bytes, by whose it is and the call's id

    def reply(self, runner: LocalRunner, call: Call, whose: Hashable = None) -> Reply:
        """Return the runner's reply, computed once for each call that is held, unless it is LARGE.

        whose: in place of the runner's namespace, where that is made anew each time.
        """
        if id(call) not in self._held:
            return LocalRunner.execute(runner, call)
        replies = self._of(runner, whose).replies
        reply, changes = replies.get(id(call), (None, 0))
        if reply is None or changes != changes_in(reply):
            reply = LocalRunner.execute(runner, call)
            if (size := bytes_of(reply)) <= LARGE:
                replies[id(call)] = (reply, changes_in(reply))
                self.bytes += size
            else:
                self.large_bytes += size
        return reply

    def known_calls(self, runner: LocalRunner, whose: Hashable = None) -> Container[int]:
        """Return the ids of the calls to which the runner's reply is known."""
        known = self._known.get(id(runner.namespace) if whose is None else whose)
        return known.replies if known is not None else ()

    def _of(self, runner: LocalRunner, whose: Hashable) -> _Known:
        key = id(runner.namespace) if whose is None else whose
        if key not in self._known:
            self._known[key] = _Known(runner.namespace if whose is None else whose)
        return self._known[key]

    def kept(self, whose: Hashable, call: Call, make: Callable[[], tuple[Kept, int]]) -> Kept:
        """Return what `make` makes of this call, with its bytes: made once for each call that is held."""
        if id(call) not in self._held:
            return make()[0]
        key = (whose, id(call))
        if key not in self._kept:
            self._kept[key] = make()
            self.bytes += self._kept[key][1]
        kept: Kept = self._kept[key][0]
        return kept

    def forget_calls(self, calls: Collection[int]) -> None:
        """Forget all replies to the calls with these ids, which end."""
        for known in self._known.values():
            for gone in known.replies.keys() & set(calls):
                del known.replies[gone]
        self._known = {key: known for key, known in self._known.items() if known.replies}
        self._kept = {key: kept for key, kept in self._kept.items() if key[1] not in calls}
        self.bytes = sum(bytes_of(reply) for known in self._known.values() for reply, _ in known.replies.values())
        self.bytes += sum(size for _, size in self._kept.values())


@dataclass(frozen=True)
class ReplayRunner(LocalRunner):
    """A local runner that computes only what nobody has asked this code before. whose: as for `Replays.reply`."""

    replays: Replays = field(default_factory=Replays)
    whose: Hashable = None

    def of(self, namespace: Mapping[str, object], whose: Hashable = None) -> ReplayRunner:
        """Return a runner for other code, which must live as long as this one's."""
        return ReplayRunner(namespace, self.device, only_values=True, replays=self.replays, whose=whose)

    def execute(self, call: Call) -> Reply:
        """Return the reply."""
        return self.replays.reply(self, call, self.whose)

    def known_calls(self) -> Container[int]:
        """Return the ids of the calls to which the reply need not be computed."""
        return self.replays.known_calls(self, self.whose)


@dataclass(frozen=True)
class CachedRunner(ReplayRunner):
    """One for the reference, and for one diagnosis, which asks it the same calls many times, whether they are held or not."""

    known: dict[int, tuple[Call, Reply]] = field(
        default_factory=dict
    )  # by the id of the call, which is kept so that the id stays valid
    large_before: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "large_before", self.replays.large_bytes)

    @property
    def large_bytes(self) -> int:
        """Of all replies since this runner was made that were too large to be kept: its own, and those of what is `of` it."""
        return self.replays.large_bytes - self.large_before

    def execute(self, call: Call) -> Reply:
        """Return the reply, computed once for each call."""
        if id(call) not in self.known:
            self.known[id(call)] = (call, super().execute(call))
        return self.known[id(call)][1]


class LocalRecordingRunner:
    """Runs the reference or a mutant in the judge's process as if it were an attempt, and records the exchanges."""

    def __init__(self, namespace: Mapping[str, object], device: str = "cpu") -> None:
        self.check = ""
        self.device = device
        self.transcript: list[Exchange] = []
        self._runner = LocalRunner(namespace, device)

    def execute(self, call: Call) -> Reply:
        """Return the reply, which is recorded. Like an attempt's, it is computed in float32 if float64 raises."""
        reply = as_an_attempts(self._runner, call, self._runner.execute(call))
        self.transcript.append(Exchange(self.check, call, reply))
        return reply

    def execute_all(self, questions: Sequence[Question]) -> list[Reply | AttemptEnded]:
        """Return the reply to each question, one after the other."""
        replies: list[Reply | AttemptEnded] = []
        for question in questions:
            self.check = question.check
            replies.append(self.execute(question.call))
        return replies


def as_an_attempts(runner: Runner, call: Call, reply: Reply) -> Reply:
    """Return the reply as an attempt's would be: computed in float32 if float64 raises."""
    if call.dtype is None and reply.raised is not None and not is_refusal(reply.raised):
        in_single = runner.execute(dataclasses.replace(call, dtype="float32"))
        if in_single.raised is None or is_dtype_fault(reply.raised):
            return in_single
    return reply


# Import trusted code (references and mutants) in the judge's process, as namespaces.


class BrokenReference(CourseFault):
    """A reference cannot be imported. The text names the file and the error."""


@lru_cache(maxsize=256)
def namespace_of(path: Path) -> Mapping[str, object]:
    """Return the names that a trusted source file defines. Its `__main__` part does not run.

    The file may import its neighbours: `from ._shared import softmax`. Raises BrokenReference.
    """
    return namespace_of_source(path.read_text(encoding="utf-8"), path)


def namespace_of_source(source: str, path: Path) -> Mapping[str, object]:
    """Return the names that this source defines if it were the file at `path`. Raises BrokenReference."""
    module = types.ModuleType(f"{_package_of(path.parent)}.{path.stem}")
    module.__file__ = str(path)
    module.__package__ = module.__name__.rpartition(".")[0]
    sys.modules[module.__name__] = module  # dataclasses look up their module here
    try:
        exec(compile(source, str(path), "exec", dont_inherit=True), vars(module))
    except Exception as error:
        raise BrokenReference(f"{path}: {type(error).__name__}: {error}. Next: python {quote(str(path))}") from error
    return vars(module)


def _package_of(folder: Path) -> str:
    """Return the name of a package whose modules are the files of this folder. Each course has its own packages."""
    name = f"trusted_{hashlib.sha256(str(folder).encode()).hexdigest()[:12]}"
    if name not in sys.modules:
        package = types.ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package
    return name
